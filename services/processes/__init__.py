"""Processes with a lifetime of their own that may hang and are then killed."""
