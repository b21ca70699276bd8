"""Operators of the family `format`."""
