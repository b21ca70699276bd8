"""Durable state: atomic files, committed units of work, run folders."""
