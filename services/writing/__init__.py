"""Files that leave datamill: jsonl, json, csv and parquet with deterministic bytes."""

from datamill.services.writing.rows import WrittenFile, write_rows

__all__ = ["WrittenFile", "write_rows"]
