"""Operators of the family `columns`."""
