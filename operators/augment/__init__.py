"""Operators of the family `augment`."""
