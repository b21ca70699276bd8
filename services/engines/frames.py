"""`Dataset` over frames of chunks: what Ray Data and Spark have in common.

A frame is the engine's own lazy collection with the columns of `chunks.FRAME_SCHEMA`. An engine brings four
operations (`FrameEngine`); meaning, order, empty results and schemas are settled here once for all of them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Generic, Protocol, TypeVar

import pyarrow as pa
import xxhash

from datamill.services.engines.chunks import Chunk, ChunkFunction, Mapped, ReduceBucket, Split, in_order
from datamill.services.engines.protocol import Shard, TableFunction
from datamill.services.engines.tables import conform, join, sort_rows, table_digest

FrameT = TypeVar("FrameT")
BUCKET_BYTES = 32 << 20
"""Bytes at rest that become one bucket of a shuffle; a bucket is held in memory by one worker."""
MAX_BUCKETS = 4096


class FrameEngine(Protocol[FrameT]):
    """What an engine does with its frames."""

    workers: int

    def map_frame(self, frame: FrameT, function: ChunkFunction) -> FrameT:
        """Apply `function` to every chunk."""
        ...

    def group_frame(self, frame: FrameT, function: ReduceBucket, buckets: int) -> FrameT:
        """Bring the chunks of each part together and apply `function` to each group."""
        ...

    def union_frames(self, frames: Sequence[FrameT]) -> FrameT:
        """Chunks of all frames."""
        ...

    def keep_frame(self, frame: FrameT) -> FrameT:
        """Compute the frame once; later uses read what was computed."""
        ...

    def chunks(self, frame: FrameT) -> Iterator[Chunk]:
        """All chunks on the driver, in any order."""
        ...


@dataclass(frozen=True)
class FrameDataset(Generic[FrameT]):
    """A frame, the schema of its tables and, when it is shards at rest, those shards.

    Attributes:
        frame: the engine's collection.
        arrow_schema: schema shared by all tables.
        engine: who carries it out.
        parts: how many parts the frame has, for numbering a union.
        buckets: how many buckets a shuffle of it is cut into.
        shards: the shards, as long as nothing was done to them.
        pending: maps not yet handed to the engine: they run in one go with what follows them.
    """

    frame: FrameT
    arrow_schema: pa.Schema
    engine: FrameEngine[FrameT]
    parts: int
    buckets: int
    shards: tuple[Shard, ...] | None = None
    pending: Mapped = field(default_factory=Mapped)

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema shared by all tables."""
        return self.arrow_schema

    @cached_property
    def num_rows(self) -> int:
        """Rows over all parts; counted where they are unless they are at rest."""
        if self.shards is not None:
            return sum(shard.num_rows for shard in self.shards)
        return sum(table["rows"].to_pylist()[0] for table in self.map_tables(_count).tables())

    @cached_property
    def digest(self) -> str:
        """Content key: that of the shards at rest, else of all rows in total order (collects them)."""
        if self.shards is not None:
            return xxhash.xxh3_128_hexdigest("\0".join(shard.digest for shard in self.shards).encode())
        return table_digest(sort_rows(self.collect()))

    def map_tables(self, function: TableFunction, *, columns: Sequence[str] | None = None) -> "FrameDataset[FrameT]":
        """Apply `function` to every table, lazily."""
        names = None if columns is None else tuple(columns)
        schema = function(_empty(self.arrow_schema, names)).schema
        return replace(self, arrow_schema=schema, shards=None, pending=self.pending.then(function, names))

    def shuffle(self, key: str, function: TableFunction) -> "FrameDataset[FrameT]":
        """Hash-shuffle by `key`, then apply `function` to every bucket, lazily."""
        split = self.engine.map_frame(self.frame, Split(self.pending, key, self.buckets))
        frame = self.engine.group_frame(split, ReduceBucket(key, function), self.buckets)
        schema = function(self.arrow_schema.empty_table()).schema
        return FrameDataset(frame, schema, self.engine, self.buckets, self.buckets)

    def union(self, other: "FrameDataset[FrameT]") -> "FrameDataset[FrameT]":
        """Rows of both; a column that one lacks is null there."""
        schema = pa.unify_schemas([self.arrow_schema, other.arrow_schema], promote_options="permissive")
        first, second = (
            part if part.arrow_schema == schema else part.map_tables(partial(conform, schema=schema))
            for part in (self, other)
        )
        moved = replace(second, pending=second.pending.moved(self.parts))
        frame = self.engine.union_frames([first.computed(), moved.computed()])
        parts, buckets = self.parts + other.parts, max(self.buckets, other.buckets)
        return FrameDataset(frame, schema, self.engine, parts, buckets)

    def semi_join(self, other: pa.Table, on: str) -> "FrameDataset[FrameT]":
        """Rows whose `on` occurs in `other`."""
        return self.map_tables(partial(join, other=other.select([on]), on=on, how="semi"))

    def anti_join(self, other: pa.Table, on: str) -> "FrameDataset[FrameT]":
        """Rows whose `on` does not occur in `other`."""
        return self.map_tables(partial(join, other=other.select([on]), on=on, how="anti"))

    def keep(self) -> "FrameDataset[FrameT]":
        """The same rows, computed once however often they are used."""
        return replace(self, frame=self.engine.keep_frame(self.computed()), pending=Mapped())

    def computed(self) -> FrameT:
        """The frame with the pending maps handed to the engine."""
        return self.frame if self.pending == Mapped() else self.engine.map_frame(self.frame, self.pending)

    def tables(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Tables by part, on the driver."""
        yield from in_order(self.engine.chunks(self.computed()), columns)

    def collect(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows on the driver."""
        tables = list(self.tables(columns))
        return pa.concat_tables(tables, promote_options="permissive") if tables else _empty(self.arrow_schema, columns)


def num_buckets(shards: Sequence[Shard], workers: int) -> int:
    """Buckets for shuffles of these shards: grows with the bytes, never fewer than the workers."""
    size = sum(shard.path.stat().st_size for shard in shards)
    return min(MAX_BUCKETS, max(workers, 1 + size // BUCKET_BYTES))


def _empty(schema: pa.Schema, columns: Sequence[str] | None) -> pa.Table:
    table = schema.empty_table()
    return table if columns is None else table.select(list(columns))


def _count(table: pa.Table) -> pa.Table:
    return pa.table({"rows": pa.array([table.num_rows], pa.int64())})
