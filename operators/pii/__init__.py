"""Operators of the family `pii`."""
