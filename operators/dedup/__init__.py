"""Operators of the family `dedup`."""
