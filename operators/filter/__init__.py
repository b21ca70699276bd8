"""Operators of the family `filter`."""
