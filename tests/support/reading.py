"""Short ways to read bytes through the whole reading service."""

import tempfile
from pathlib import Path
from typing import Any

from datamill.services.reading.source import SourceSpec
from datamill.services.reading.whole import SourceTable, read_whole


def read_bytes(data: bytes, name: str = "in.jsonl", **options: Any) -> SourceTable:
    """Everything that a file with these bytes gives; any share of broken records is accepted unless said otherwise."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / name).write_bytes(data)
        return read_whole(SourceSpec("src", name, Path(folder), **{"max_bad": 1.0, **options}))


def data_rows(table: SourceTable) -> list[dict[str, Any]]:
    """Data columns of the rows."""
    return table.rows.drop_columns(["_id", "_ord", "_src"]).to_pylist()


def refused(table: SourceTable) -> list[tuple[str, str, int]]:
    """Reason, place and offset of the refused records."""
    return [(f["reason"], f["src"], f["offset"]) for f in table.fates.to_pylist() if f["fate"] == "quarantined"]


def remarks(table: SourceTable) -> list[tuple[str, str]]:
    """Reason and place of the remarks on rows that stay."""
    return [(f["reason"], f["src"]) for f in table.fates.to_pylist() if f["fate"] == "noted"]


def codes(table: SourceTable) -> list[str]:
    """Codes of the findings."""
    return [issue.code for issue in table.findings]
