"""Compiled passes over text columns."""
