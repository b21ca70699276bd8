"""Operators of the family `lang`."""
