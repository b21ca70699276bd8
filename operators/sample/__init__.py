"""Operators of the family `sample`."""
