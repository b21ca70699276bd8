"""Carries out `report.stats`: partial counts per partition, added up; exact and independent of partitioning."""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from datamill.operators.report.stats import METADATA_KEY, StatsParams
from datamill.services.benchmarks.tokens import words
from datamill.services.engines.protocol import Dataset
from datamill.services.engines.tables import TableDataset
from datamill.services.records import ID, SYSTEM_COLUMNS

COUNT_SCHEMA: Final = pa.schema(
    [("column", pa.string()), ("measure", pa.string()), ("value", pa.string()), ("count", pa.int64())]
)
"""One line per column, measure and distinct value: how many rows have it."""

HASH_SCHEMA: Final = pa.schema([("hash", pa.string()), ("count", pa.int64())])
LENGTHS: Final = ("chars", "words")


def measure(dataset: Dataset, params: StatsParams) -> Dataset:
    """The report as a dataset without rows; see `read_stats`."""
    report = json.dumps(collect_stats(dataset, params), ensure_ascii=False, sort_keys=True)
    empty = pa.schema([pa.field(ID, pa.string())], metadata={METADATA_KEY: report.encode("utf-8", "replace")})
    return TableDataset((empty.empty_table(),))


def read_stats(dataset: Dataset) -> dict[str, Any] | None:
    """The report that `report.stats` left in the schema metadata of its decisions."""
    metadata = dataset.schema.metadata or {}
    return json.loads(metadata[METADATA_KEY]) if METADATA_KEY in metadata else None


def collect_stats(dataset: Dataset, params: StatsParams) -> dict[str, Any]:
    """Measure `dataset` as `params` says."""
    columns = params.columns or text_columns(dataset.schema)
    names = list(dict.fromkeys([*columns, *params.by]))
    counter = partial(count_table, columns=columns, by=params.by)
    counts: dict[tuple[str, str], Counter[str]] = {}
    for line in dataset.map_tables(counter, columns=names).collect().to_pylist():
        counts.setdefault((line["column"], line["measure"]), Counter())[line["value"]] += line["count"]
    rows = dataset.num_rows
    report: dict[str, Any] = {"rows": rows, "columns": {}, "by": {}}
    for column in columns:
        report["columns"][column] = _column_report(counts, column, rows, params.quantiles)
    for column in params.by:
        report["by"][column] = _value_report(counts.get((column, "value"), Counter()), rows, params.top)
    if params.duplicates and columns:
        report["duplicates"] = _duplicates(dataset, columns, rows)
    return report


def text_columns(schema: pa.Schema) -> tuple[str, ...]:
    """Names of the string columns that are not datamill's own."""
    return tuple(field.name for field in schema if pa.types.is_string(field.type) and field.name not in SYSTEM_COLUMNS)


def count_table(table: pa.Table, columns: Sequence[str], by: Sequence[str]) -> pa.Table:
    """Partial counts of one partition in `COUNT_SCHEMA`."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for column in columns:
        for text in table[column].to_pylist():
            if text is None:
                counts[column, "null", ""] += 1
                continue
            counts[column, "empty", ""] += not text.strip()
            counts[column, "chars", str(len(text))] += 1
            counts[column, "words", str(len(words(text)))] += 1
    for column in by:
        for value in table[column].cast(pa.string()).to_pylist():
            counts[column, "value", "" if value is None else f"={value}"] += 1
    lines = [(*key, count) for key, count in sorted(counts.items())]
    return pa.Table.from_pylist([dict(zip(COUNT_SCHEMA.names, line, strict=True)) for line in lines], COUNT_SCHEMA)


def quantile(counts: Mapping[int, int], share: float) -> int:
    """Smallest value that at least `share` of the rows do not exceed (inverse distribution function)."""
    total = sum(counts.values())
    needed = max(1, math.ceil(share * total - 1e-9))
    seen = 0
    for value in sorted(counts):
        seen += counts[value]
        if seen >= needed:
            return value
    raise ValueError("quantile of no values")


def hash_table(table: pa.Table) -> pa.Table:
    """One content hash per row, in `HASH_SCHEMA`."""
    rows = zip(*(table[name].to_pylist() for name in table.column_names), strict=True)
    hashes = [xxhash.xxh3_128_hexdigest(json.dumps(row, ensure_ascii=True, default=str).encode()) for row in rows]
    return pa.table({"hash": pa.array(hashes, pa.string()), "count": pa.repeat(pa.scalar(1, pa.int64()), len(hashes))})


def distinct_table(table: pa.Table) -> pa.Table:
    """Number of distinct hashes of a shuffle partition, as one line."""
    number = pc.count_distinct(table["hash"]).as_py()
    return pa.Table.from_pylist([{"hash": "", "count": number}], HASH_SCHEMA)


def _duplicates(dataset: Dataset, columns: Sequence[str], rows: int) -> dict[str, Any]:
    distinct = dataset.map_tables(hash_table, columns=list(columns)).shuffle("hash", distinct_table)
    unique = sum(distinct.collect()["count"].to_pylist())
    return {"rows": rows - unique, "share": (rows - unique) / rows if rows else 0.0}


def _column_report(
    counts: Mapping[tuple[str, str], Counter[str]], column: str, rows: int, quantiles: Sequence[float]
) -> dict[str, Any]:
    nulls = counts.get((column, "null"), Counter()).total()
    report: dict[str, Any] = {
        "nulls": nulls,
        "null_share": nulls / rows if rows else 0.0,
        "empty": counts.get((column, "empty"), Counter()).total(),
    }
    for name in LENGTHS:
        histogram = {int(value): count for value, count in counts.get((column, name), Counter()).items()}
        report[name] = _length_report(histogram, quantiles) if histogram else None
    return report


def _length_report(histogram: Mapping[int, int], quantiles: Sequence[float]) -> dict[str, Any]:
    total = sum(value * count for value, count in histogram.items())
    return {
        "min": min(histogram),
        "max": max(histogram),
        "mean": total / sum(histogram.values()),
        "quantiles": {f"{share:g}": quantile(histogram, share) for share in quantiles},
        "histogram": _binned(histogram),
    }


def _binned(histogram: Mapping[int, int]) -> list[dict[str, int]]:
    """Counts in bins that double in width: 0, 1, 2-3, 4-7, ..."""
    bins: Counter[int] = Counter()
    for value, count in histogram.items():
        bins[value.bit_length()] += count
    return [{"from": 1 << (bit - 1) if bit else 0, "to": (1 << bit) - 1, "count": bins[bit]} for bit in sorted(bins)]


def _value_report(values: Counter[str], rows: int, top: int) -> dict[str, Any]:
    ordered = sorted(values.items(), key=lambda item: (-item[1], item[0]))
    listed = [
        {"value": value[1:] if value else None, "count": count, "share": count / rows} for value, count in ordered[:top]
    ]
    return {"distinct": len(values) - ("" in values), "top": listed}
