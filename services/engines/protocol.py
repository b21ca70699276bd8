"""The engine protocol: the few primitives every operator is written on.

An engine runs *functions over Arrow tables* on a partitioned dataset and knows no operator. The primitives were
chosen so that the embedded engine, Ray Data and Spark can all carry them out without a change in any operator
(docs/adr/0006-tables-in-flight.md maps each primitive to each engine).

A batch function sees any subset of the rows, in any order, so it may not depend on partitioning. Functions and
their bound arguments must be picklable: module-level functions or `functools.partial` of them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from datamill.services.records import FATE_SCHEMA


def _no_fates() -> pa.Table:
    return FATE_SCHEMA.empty_table()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a batch function makes of a batch: surviving rows and the fates of all others.

    Attributes:
        rows: the rows that go on, system columns included.
        fates: one record per row that left or was expanded, in `FATE_SCHEMA`.
    """

    rows: pa.Table
    fates: pa.Table = field(default_factory=_no_fates)


@dataclass(frozen=True, slots=True)
class Shard:
    """One partition at rest.

    Attributes:
        path: Parquet or Arrow IPC file.
        num_rows: rows in it.
        digest: content digest of its rows.
    """

    path: Path
    num_rows: int
    digest: str


BatchFunction = Callable[[pa.Table], Outcome]
TableFunction = Callable[[pa.Table], pa.Table]


class Dataset(Protocol):
    """A handle on partitioned rows. Handles are cheap; rows stay where the engine keeps them."""

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema shared by all partitions."""
        ...

    @property
    def num_rows(self) -> int:
        """Rows over all partitions."""
        ...

    @property
    def digest(self) -> str:
        """Content key of the rows: equal digests mean byte-equal rows in the same total order."""
        ...

    def map_tables(self, function: TableFunction, *, columns: Sequence[str] | None = None) -> "Dataset":
        """Apply `function` to every partition; `columns` projects the input first."""
        ...

    def shuffle(self, key: str, function: TableFunction) -> "Dataset":
        """Hash-shuffle by `key`, then apply `function` to tables sorted by `key` that hold whole groups."""
        ...

    def semi_join(self, other: pa.Table, on: str) -> "Dataset":
        """Rows whose `on` occurs in the (small, broadcast) table `other`."""
        ...

    def anti_join(self, other: pa.Table, on: str) -> "Dataset":
        """Rows whose `on` does not occur in the (small, broadcast) table `other`."""
        ...

    def union(self, other: Any) -> "Dataset":
        """Rows of this dataset and of `other`, which lives on the same engine; absent columns are null."""
        ...

    def keep(self) -> "Dataset":
        """The same rows, computed once however often they are used."""
        ...

    def tables(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Partitions in total order, one at a time, on the caller's machine."""
        ...

    def collect(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows on the caller's machine; for decisions and statistics, not for data."""
        ...


Item = TypeVar("Item")
Result = TypeVar("Result")


class Engine(Protocol):
    """Where functions over shards run. Engines know shards and functions, never operators."""

    workers: int

    @property
    def links(self) -> Mapping[str, str]:
        """Pages where a person can watch the engine, by name."""
        ...

    def map_units(
        self, task: Callable[[Item], Result], items: Sequence[Item], *, parallel: bool = True, bound: str = "cpu"
    ) -> Iterator[tuple[int, Result]]:
        """Apply a picklable task to every item; `(index, result)` in order of arrival. Tasks commit durable units.

        `bound` says what limits the task (`io`, `cpu`, `gpu`); `parallel=False` keeps it in the calling process.
        """
        ...

    def dataset(self, shards: Sequence[Shard], schema: pa.Schema) -> Dataset:
        """Handle on shards at rest, for global operators."""
        ...

    def broadcast(self, value: Any, name: str) -> Path:
        """Make a picklable value readable by every worker."""
        ...

    def close(self) -> None:
        """Give back workers and scratch space; a cluster that was there before keeps running."""
        ...
