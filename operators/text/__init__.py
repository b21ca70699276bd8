"""Operators of the family `text`."""
