"""Functions that workers of every engine can import, and rows of awkward types to try them on."""

import os
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
from support.tables import table

from datamill.errors import DatamillError

ROWS = table(
    {"number": pa.uint64(), "nested": pa.list_(pa.struct({"role": pa.string()})), "nothing": pa.null()},
    text=[f"text {i % 7}" if i % 5 else None for i in range(50)],
    number=[2**64 - 1 - i * i % 11 for i in range(50)],
    nested=[[{"role": "user"}] * (i % 3) if i % 4 else None for i in range(50)],
    nothing=[None] * 50,
)


def doubled(rows: pa.Table) -> pa.Table:
    frame = pl.from_arrow(rows.drop_columns(["nothing"]))
    assert isinstance(frame, pl.DataFrame)
    made = frame.filter(pl.col("_ord") % 3 != 0).with_columns(pl.col("_ord") * 2).to_arrow()
    return made.cast(pa.schema([ROWS.schema.field(name) for name in made.column_names]))


def groups(rows: pa.Table) -> pa.Table:
    """Relies on groups being whole and together, as a shuffle promises."""
    frame = pl.from_arrow(rows.select(["text", "_ord"]))
    assert isinstance(frame, pl.DataFrame)
    assert frame.get_column("text").rle_id().n_unique() == frame.get_column("text").n_unique()
    made = frame.group_by("text").agg(pl.col("_ord").min(), pl.len().cast(pl.Int64).alias("size")).sort("_ord")
    return made.to_arrow().cast(pa.schema({"text": pa.string(), "_ord": pa.int64(), "size": pa.int64()}))


def boom(rows: pa.Table) -> pa.Table:
    if rows.num_rows and rows["_ord"][0].as_py() >= 25:
        raise DatamillError("DM-TEST-001", "a row from the second half", step="x", fix="none")
    return rows


def square(item: int) -> int:
    return item * item


def refuse(item: int) -> int:
    if item == 3:
        raise ValueError("item 3")
    return item


def number_of_process(_item: int) -> int:
    return os.getpid()


def read_broadcast(path: Path) -> Any:
    from datamill.services.engines.local import broadcast_value

    return broadcast_value(path)
