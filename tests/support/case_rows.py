"""Rows of a case as a dataset."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from datamill.services.engines.tables import TableDataset
from datamill.services.records import row_id


def load_rows(path: Path, partitions: int = 1) -> tuple[TableDataset, dict[str, Any]]:
    """The JSON lines of a file as a dataset with `text`, and the case's own id of every row."""
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    ids = [row_id(path.name, i) for i in range(len(records))]
    table = pa.table(
        {
            "_id": pa.array(ids, pa.string()),
            "_ord": pa.array(range(len(records)), pa.int64()),
            "_src": pa.array([f"{path.name}:{i + 1}" for i in range(len(records))], pa.string()),
            "text": pa.array([record["text"] for record in records], pa.string()),
        }
    )
    return TableDataset.of(table, partitions), {key: r.get("id") for key, r in zip(ids, records, strict=True)}
