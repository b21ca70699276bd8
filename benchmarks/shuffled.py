"""What every global operator moves: bytes a document through shuffles and to the driver, and passes over the data.

    python benchmarks/shuffled.py --corpus DIR [--documents 50000]

`DIR` holds `corpus.parquet` (columns `id` and `text`). The operators run on the in-memory reference engine, whose
primitives are counted: Arrow bytes of every table that goes into a shuffle or is collected, and how often the input is
read from its first to its last row. The figures do not depend on the engine; engines add their framing.
"""

import argparse
import json
import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from datamill.operators.declaration import Context
from datamill.operators.dedup import minhash
from datamill.operators.registry import find
from datamill.services.engines.protocol import TableFunction
from datamill.services.engines.tables import TableDataset
from datamill.services.records import row_id

RESULTS = Path(__file__).parent / "results"
CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("dedup.exact", "dedup.exact", {"columns": ["text"]}),
    ("dedup.minhash, clustered on the driver", "dedup.minhash", {"threshold": 0.8}),
    ("dedup.minhash, without the driver", "dedup.minhash", {"threshold": 0.8}),
    ("sample.random", "sample.random", {"n": 1000}),
    ("sample.stratified", "sample.stratified", {"by": "kind", "n": 1000}),
    ("split", "split", {"ratios": [0.9, 0.1], "stratify_by": "kind"}),
    ("filter.topk", "filter.topk", {"column": "score", "n": 1000}),
    ("report.stats", "report.stats", {}),
]


@dataclass
class Moved:
    """Bytes and passes of one operator."""

    shuffled: int = 0
    shuffles: int = 0
    collected: int = 0
    passes: int = 0


@dataclass(frozen=True)
class Counted:
    """The reference dataset with its primitives counted; `source` marks the input itself."""

    data: TableDataset
    moved: Moved
    source: bool = False

    @property
    def schema(self) -> pa.Schema:
        """Schema of the rows."""
        return self.data.schema

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return self.data.num_rows

    @property
    def digest(self) -> str:
        """Content key of the rows."""
        return self.data.digest

    def map_tables(self, function: TableFunction, *, columns: Sequence[str] | None = None) -> "Counted":
        """A pass when it is over the input."""
        self.moved.passes += self.source
        return Counted(self.data.map_tables(function, columns=columns), self.moved)

    def shuffle(self, key: str, function: TableFunction) -> "Counted":
        """Counts what goes in."""
        self.moved.shuffles += 1
        self.moved.shuffled += sum(part.nbytes for part in self.data.partitions)
        return Counted(self.data.shuffle(key, function), self.moved)

    def semi_join(self, other: pa.Table, on: str) -> "Counted":
        """A pass when it is over the input."""
        self.moved.passes += self.source
        return Counted(self.data.semi_join(other, on), self.moved)

    def anti_join(self, other: pa.Table, on: str) -> "Counted":
        """A pass when it is over the input."""
        self.moved.passes += self.source
        return Counted(self.data.anti_join(other, on), self.moved)

    def union(self, other: "Counted") -> "Counted":
        """Rows of both."""
        return Counted(self.data.union(other.data), self.moved)

    def keep(self) -> "Counted":
        """Everything is in memory."""
        return self

    def tables(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """A pass when it is over the input."""
        self.moved.passes += self.source
        return self.data.tables(columns)

    def collect(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Counts what comes out."""
        table = self.data.collect(columns)
        self.moved.collected += table.nbytes
        return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--documents", type=int, default=50_000)
    options = parser.parse_args()
    rows = _rows(options.corpus / "corpus.parquet", options.documents)
    found = [_moved(name, operator, params, rows) for name, operator, params in CASES]
    result = {
        "date": datetime.now(UTC).date().isoformat(), "documents": rows.num_rows, "bytes": rows["text"].nbytes,
        "machine": {"cores": os.cpu_count(), "python": platform.python_version()}, "operators": found,
    }  # fmt: skip
    (RESULTS / "shuffled.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    (RESULTS / "shuffled.md").write_text(_markdown(result), encoding="utf-8")
    print(_markdown(result))


def _rows(path: Path, count: int) -> pa.Table:
    table = pq.read_table(path).slice(0, count)
    return pa.table(
        {
            "_id": pa.array([row_id("corpus", i) for i in range(table.num_rows)]),
            "_ord": pa.array(range(table.num_rows), pa.int64()),
            "_src": pa.array([f"corpus:{i + 1}" for i in range(table.num_rows)]),
            "text": table["text"].cast(pa.string()),
            "kind": pa.array([f"k{i % 7}" for i in range(table.num_rows)]),
            "score": pa.array([float(i * 7919 % 1000) for i in range(table.num_rows)]),
        }
    )


def _moved(name: str, operator_id: str, params: dict[str, Any], rows: pa.Table) -> dict[str, Any]:
    moved = Moved()
    limit, minhash.DRIVER_PAIRS = minhash.DRIVER_PAIRS, -1 if "without" in name else minhash.DRIVER_PAIRS
    try:
        operator = find(operator_id)
        data = Counted(TableDataset.of(rows, 8), moved, source=True)
        decided = operator.run([data], operator.params.model_validate(params), Context("step", seed=1))
        inside = moved.collected
        decisions = decided.collect()
    finally:
        minhash.DRIVER_PAIRS = limit
    count = rows.num_rows
    return {
        "operator": name, "shuffles": moved.shuffles, "shuffled_per_doc": round(moved.shuffled / count, 1),
        "driver_per_doc": round(inside / count, 1), "decisions_per_doc": round(decisions.nbytes / count, 1),
        "passes": moved.passes,
    }  # fmt: skip


def _markdown(result: dict[str, Any]) -> str:
    lines = [
        f"# What global operators move: {result['documents']:,} documents, {result['bytes'] / 1e6:,.0f} MB of text",
        "",
        f"{result['date']}; `python benchmarks/shuffled.py --corpus DIR --documents {result['documents']}`",
        "",
        "| operator | shuffles | shuffled B/doc | to the driver B/doc | decisions B/doc | passes over the input |",
        "|---|---|---|---|---|---|",
        *(
            f"| {o['operator']} | {o['shuffles']} | {o['shuffled_per_doc']} | {o['driver_per_doc']} | "
            f"{o['decisions_per_doc']} | {o['passes']} |"
            for o in result["operators"]
        ),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
