"""Strata: the groups of rows that share the values of some columns, as one printable label a row."""

from collections.abc import Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from datamill.operators.declaration import Need

GROUPABLE = ("string", "int*", "uint*", "double", "float*", "bool", "json")
NULL_LABEL = "null"
_SEPARATOR = "\x1f"


def group_needs(columns: Sequence[str], param: str) -> list[Need]:
    """Needs of columns that name groups."""
    return [Need(column, dtypes=GROUPABLE, field=param) for column in columns]


def labels(table: pa.Table, columns: Sequence[str]) -> pl.Series:
    """One label a row; nulls form a group of their own, distinct from the text `null`. No columns: one group."""
    if not columns:
        return pl.repeat("", table.num_rows, dtype=pl.String, eager=True)
    frame = pl.from_arrow(table.select(list(columns)))
    assert isinstance(frame, pl.DataFrame)
    parts: list[Any] = []
    for column in columns:
        quoted = pl.concat_str([pl.lit("="), pl.col(column).cast(pl.String)])
        parts.append(pl.coalesce(quoted, pl.lit(NULL_LABEL)))
    return frame.select(pl.concat_str(parts, separator=_SEPARATOR)).to_series()


def shown(label: str) -> str:
    """A label as people read it."""
    return ", ".join(part.removeprefix("=") for part in label.split(_SEPARATOR))
