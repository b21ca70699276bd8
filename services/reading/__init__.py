"""Readers: bytes of real files to Arrow rows, nothing lost."""
