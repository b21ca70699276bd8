"""Operators of the family `report`."""
