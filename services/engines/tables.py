"""An in-memory `Dataset`: the reference meaning of the protocol, used by tests and for small tables.

It holds its partitions as Arrow tables and does everything in one process, in the plainest way that is right.
"""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from datamill.errors import DatamillError
from datamill.services.engines.protocol import TableFunction
from datamill.services.records import ID, ORD


def table_digest(table: pa.Table) -> str:
    """Content key of a table: schema and values, independent of chunking."""
    hasher = xxhash.xxh3_128(str(table.schema.remove_metadata()).encode())
    sink = pa.PythonFile(_HashedStream(hasher), mode="w")  # what is only hashed is not copied first
    with pa.ipc.new_stream(sink, table.schema.remove_metadata()) as writer:
        for batch in table.combine_chunks().to_batches():
            writer.write_batch(batch)
    return hasher.hexdigest()


class _HashedStream(io.RawIOBase):
    """A stream that hashes what is written to it."""

    def __init__(self, hasher: "xxhash.xxh3_128") -> None:
        self._hasher = hasher

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, data: Any) -> int:
        """Hash `data`; returns its length in bytes."""
        self._hasher.update(data)
        return memoryview(data).nbytes


def call_placed(function: TableFunction, table: pa.Table, place: str) -> pa.Table:
    """Call `function`; an exception of its own is told which rows it was given, by `place` and the first `_id`.

    The note travels with the exception from a worker to the driver.
    """
    try:
        return function(table)
    except (DatamillError, OSError):  # they say themselves what is wrong
        raise
    except Exception as error:
        row = f" from row {table[ID][0].as_py()} on" if ID in table.column_names and table.num_rows else ""
        error.add_note(f"{place}{row}")
        raise


def sort_rows(table: pa.Table) -> pa.Table:
    """Rows in total order `(_ord, _id)` when both columns are there."""
    if ORD in table.column_names and ID in table.column_names:
        return table.sort_by([(ORD, "ascending"), (ID, "ascending")])
    return table


@dataclass(frozen=True)
class TableDataset:
    """Partitions held in memory; see `protocol.Dataset` for the meaning of the methods."""

    partitions: tuple[pa.Table, ...]

    @classmethod
    def of(cls, table: pa.Table, num_partitions: int = 1) -> "TableDataset":
        """Cut `table` into `num_partitions` runs of nearly equal length (some may be empty)."""
        bounds = [table.num_rows * i // num_partitions for i in range(num_partitions + 1)]
        return cls(tuple(table.slice(lo, hi - lo) for lo, hi in pairwise(bounds)))

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema shared by all partitions."""
        return self.partitions[0].schema

    @property
    def num_rows(self) -> int:
        """Rows over all partitions."""
        return sum(part.num_rows for part in self.partitions)

    @property
    def digest(self) -> str:
        """Content key of the rows in total order."""
        return table_digest(sort_rows(self.collect()))

    def map_tables(self, function: TableFunction, *, columns: Sequence[str] | None = None) -> "TableDataset":
        """Apply `function` to every partition."""
        return TableDataset(tuple(function(_project(part, columns)) for part in self.partitions))

    def shuffle(self, key: str, function: TableFunction) -> "TableDataset":
        """One partition holds every group: the simplest correct shuffle."""
        return TableDataset((function(sort_by_key(self.collect(), key)),))

    def semi_join(self, other: pa.Table, on: str) -> "TableDataset":
        """Rows whose `on` occurs in `other`."""
        return TableDataset(tuple(join(part, other, on, "semi") for part in self.partitions))

    def anti_join(self, other: pa.Table, on: str) -> "TableDataset":
        """Rows whose `on` does not occur in `other`."""
        return TableDataset(tuple(join(part, other, on, "anti") for part in self.partitions))

    def union(self, other: "TableDataset") -> "TableDataset":
        """Partitions of both, in one schema."""
        schema = pa.unify_schemas([self.schema, other.schema], promote_options="permissive")
        return TableDataset(tuple(conform(part, schema) for part in (*self.partitions, *other.partitions)))

    def keep(self) -> "TableDataset":
        """Everything is in memory already."""
        return self

    def tables(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Partitions one at a time."""
        for part in self.partitions:
            yield _project(part, columns)

    def collect(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows."""
        return pa.concat_tables(list(self.tables(columns)), promote_options="permissive")


def sort_by_key(table: pa.Table, key: str) -> pa.Table:
    """`table` with equal keys adjacent and ascending; types are kept. Polars finds the order twice as fast as Arrow."""
    order = polars_function(table.select([key])).get_column(key).arg_sort()
    return table.take(order.to_arrow())


def conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """`table` with exactly the columns of `schema`, absent ones null."""
    columns = [
        table[field.name].cast(field.type) if field.name in table.column_names else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def join(table: pa.Table, other: pa.Table, on: str, how: str) -> pa.Table:
    """Semi or anti join that keeps the order of `table`."""
    hit = pc.is_in(table[on], value_set=other[on].combine_chunks())
    return table.filter(hit if how == "semi" else pc.invert(hit))


def _project(table: pa.Table, columns: Sequence[str] | None) -> pa.Table:
    return table if columns is None else table.select(list(columns))


def polars_function(table: pa.Table) -> pl.DataFrame:
    """Zero-copy view of an Arrow table as a polars frame."""
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame
