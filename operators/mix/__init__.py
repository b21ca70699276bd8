"""Operators of the family `mix`."""
