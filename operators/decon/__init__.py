"""Operators of the family `decon`."""
