"""Datasets and runs shared by the deduplication tests."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from datamill.operators.declaration import Context, registered
from datamill.operators.registry import catalogue
from datamill.services.engines.tables import TableDataset

Decisions = dict[str, dict[str, Any]]


def dataset(texts: Sequence[str | None], partitions: int = 1, prefix: str = "r", **columns: Any) -> TableDataset:
    count = len(texts)
    table = pa.table(
        {
            "_id": pa.array([f"{prefix}{i}" for i in range(count)], pa.string()),
            "_ord": pa.array(range(count), pa.int64()),
            "_src": pa.array([f"f:{i}" for i in range(count)], pa.string()),
            "text": pa.array(list(texts), pa.string()),
            **columns,
        }
    )
    return TableDataset.of(table, partitions)


@pytest.fixture
def make() -> Callable[..., TableDataset]:
    return dataset


@pytest.fixture
def decide(tmp_path: Path) -> Callable[..., Decisions]:
    catalogue()

    def run(operator_id: str, data: Any, inputs: Mapping[str, Any] | None = None, **params: Any) -> Decisions:
        operator = registered()[operator_id]
        data = data if isinstance(data, TableDataset) else dataset(data)
        context = Context("dedup", project=tmp_path, inputs=inputs or {})
        decided = operator.run([data], operator.params(**params), context).collect()
        return {row["_id"]: row for row in decided.to_pylist()}

    return run
