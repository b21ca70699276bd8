"""Before and after: lengths of text columns and shares of label columns, as exact counts over all rows.

Lengths are counted in powers-of-two bins of characters, so the histograms of shards add up. Cost: one pass over the
columns shown, a shard at a time.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from datamill.operators.declaration import ColumnType

MAX_TEXTS = 3
MAX_LABELS = 4
MAX_VALUES = 12
LABELS = ("lang", "source", "domain", "split", "math_ok", "quality", "license")


def columns_to_show(schema: "dict[str, ColumnType]") -> tuple[list[str], list[str]]:
    """Text columns and label columns worth a picture."""
    strings = [name for name, kind in schema.items() if kind.dtype == "string" and kind.semantic != "label"]
    labels = [name for name in schema if name in LABELS]
    chats = [name for name, kind in schema.items() if kind.semantic == "chat"]
    texts = [name for name in strings if name not in labels and not name.endswith("_id")]
    return [*chats, *texts][:MAX_TEXTS], labels[:MAX_LABELS]


def distributions(tables: Iterable[pa.Table], texts: Sequence[str], labels: Sequence[str]) -> dict[str, Any]:
    """Histograms of lengths and counts of labels.

    Returns:
        `{"rows": n, "lengths": {column: [[from, to, count], ...]}, "labels": {column: [[value, count], ...]}}`.
    """
    lengths: dict[str, Counter[int]] = {name: Counter() for name in texts}
    values: dict[str, Counter[str]] = {name: Counter() for name in labels}
    rows = 0
    for table in tables:
        rows += table.num_rows
        for name in texts:
            if name in table.column_names:
                lengths[name].update(_bins(table[name]))
        for name in labels:
            if name in table.column_names:
                values[name].update(str(value) for value in table[name].to_pylist())
    return {
        "rows": rows,
        "lengths": {name: [[_low(b), _high(b), counts[b]] for b in sorted(counts)] for name, counts in lengths.items()},
        "labels": {name: _top(counts) for name, counts in values.items()},
    }


def _bins(column: pa.ChunkedArray) -> Counter[int]:
    series = pl.from_arrow(column)
    assert isinstance(series, pl.Series)
    if series.dtype != pl.String:
        return Counter(_chat_chars(value).bit_length() for value in column.to_pylist())
    bins: Counter[int] = Counter()
    for length, count in series.str.len_chars().fill_null(0).value_counts().iter_rows():
        bins[int(length).bit_length()] += int(count)
    return bins


def _chat_chars(value: Any) -> int:
    if not isinstance(value, list):
        return 0
    return sum(len(str(turn.get("content") or turn.get("value") or "")) for turn in value if isinstance(turn, dict))


def _low(number: int) -> int:
    return 0 if number == 0 else 1 << (number - 1)


def _high(number: int) -> int:
    return (1 << number) - 1


def _top(counts: Counter[str]) -> list[list[Any]]:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    shown = [[name[:60], count] for name, count in ordered[:MAX_VALUES]]
    rest = sum(count for _, count in ordered[MAX_VALUES:])
    return [*shown, ["(other)", rest]] if rest else shown
