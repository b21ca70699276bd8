"""`Dataset` over shards on disk, for engines that map functions over files.

Results of primitives are written as Arrow IPC files below the engine's scratch folder and memory-mapped when read,
so a dataset of any size costs one shard of memory. Shuffles write one file per input shard and partition and read
them back per partition; the number of partitions grows with the data and cannot change the result, because a
partition holds whole groups and functions see them sorted by key.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from datamill.services.engines.protocol import Shard, TableFunction
from datamill.services.engines.tables import call_placed, conform, join, sort_by_key, table_digest

if TYPE_CHECKING:
    from datamill.services.engines.local import LocalEngine

PARTITION_BYTES = 128 << 20
MAX_PARTITIONS = 256
_serial = itertools.count()


@dataclass(frozen=True)
class ShardDataset:
    """Shards on disk; see `protocol.Dataset` for the meaning of the methods."""

    shards: tuple[Shard, ...]
    arrow_schema: pa.Schema
    engine: "LocalEngine"

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema shared by all shards."""
        return self.arrow_schema

    @property
    def num_rows(self) -> int:
        """Rows over all shards."""
        return sum(shard.num_rows for shard in self.shards)

    @cached_property
    def digest(self) -> str:
        """Content key of the shards in order."""
        return xxhash.xxh3_128_hexdigest("\0".join(shard.digest for shard in self.shards).encode())

    def map_tables(self, function: TableFunction, *, columns: Sequence[str] | None = None) -> "ShardDataset":
        """Apply `function` to every shard, in parallel."""
        task = partial(_map_shard, function, None if columns is None else tuple(columns), self._folder("map"))
        return self._gather(task, list(enumerate(self.shards)))

    def shuffle(self, key: str, function: TableFunction) -> "ShardDataset":
        """Hash-shuffle by `key`, then apply `function` per partition, in parallel."""
        size = sum(shard.path.stat().st_size for shard in self.shards)
        partitions = min(MAX_PARTITIONS, 1 + size // PARTITION_BYTES)
        folder = self._folder("shuffle")
        split = partial(_split_shard, key, partitions, folder)
        pieces: list[list[Path]] = [[] for _ in range(partitions)]
        for _, written in sorted(self.engine.map_units(split, list(enumerate(self.shards)))):
            for number, path in written:
                pieces[number].append(path)
        reduce = partial(_reduce_partition, key, function, folder, self.arrow_schema)
        return self._gather(reduce, [(number, tuple(files)) for number, files in enumerate(pieces)])

    def semi_join(self, other: pa.Table, on: str) -> "ShardDataset":
        """Rows whose `on` occurs in `other`."""
        return self.map_tables(partial(join, other=other.select([on]), on=on, how="semi"))

    def anti_join(self, other: pa.Table, on: str) -> "ShardDataset":
        """Rows whose `on` does not occur in `other`."""
        return self.map_tables(partial(join, other=other.select([on]), on=on, how="anti"))

    def union(self, other: "ShardDataset") -> "ShardDataset":
        """Shards of both; those of another schema are written anew."""
        schema = pa.unify_schemas([self.arrow_schema, other.arrow_schema], promote_options="permissive")
        first, second = (
            part if part.arrow_schema == schema else part.map_tables(partial(conform, schema=schema))
            for part in (self, other)
        )
        return ShardDataset((*first.shards, *second.shards), schema, self.engine)

    def keep(self) -> "ShardDataset":
        """Everything is on disk already."""
        return self

    def tables(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Shards one at a time, in order."""
        for shard in self.shards:
            yield read_shard(shard.path, columns)

    def collect(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows in this process."""
        schema = self.arrow_schema if columns is None else pa.schema([self.arrow_schema.field(c) for c in columns])
        tables = list(self.tables(columns))
        return pa.concat_tables(tables, promote_options="permissive") if tables else schema.empty_table()

    def _folder(self, what: str) -> Path:
        folder = self.engine.scratch / f"{next(_serial):05d}-{what}"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _gather(self, task: "partial[tuple[Shard, pa.Schema]]", items: Sequence[object]) -> "ShardDataset":
        results = [result for _, result in sorted(self.engine.map_units(task, items), key=lambda pair: pair[0])]
        schema = results[0][1] if results else self.arrow_schema
        return ShardDataset(tuple(shard for shard, _ in results), schema, self.engine)


def read_shard(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """A shard from a Parquet unit or an Arrow IPC file, memory-mapped."""
    wanted = None if columns is None else list(columns)
    if path.suffix == ".arrow":
        table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        return table if wanted is None else table.select(wanted)
    with pq.ParquetFile(path, memory_map=True) as file:
        return file.read(columns=wanted)


def write_file(table: pa.Table, path: Path) -> None:
    """Write an Arrow IPC file that `read_shard` maps into memory."""
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


def write_shard(table: pa.Table, path: Path) -> Shard:
    """Write an intermediate shard."""
    write_file(table, path)
    return Shard(path, table.num_rows, table_digest(table))


def bucket_of(table: pa.Table, key: str, buckets: int) -> pl.Series:
    """Bucket of every row, 0 to `buckets` - 1, the same in every process for equal keys."""
    frame = pl.from_arrow(table.select([key]))
    assert isinstance(frame, pl.DataFrame)
    return frame.get_column(key).hash(seed=0) % buckets


def _map_shard(
    function: TableFunction, columns: tuple[str, ...] | None, folder: Path, item: tuple[int, Shard]
) -> tuple[Shard, pa.Schema]:
    number, shard = item
    table = call_placed(function, read_shard(shard.path, columns), f"shard {number}")
    return write_shard(table, folder / f"{number:06d}.arrow"), table.schema


def _split_shard(key: str, partitions: int, folder: Path, item: tuple[int, Shard]) -> list[tuple[int, Path]]:
    number, shard = item
    if partitions == 1:
        return [(0, shard.path)]
    table = read_shard(shard.path)
    bucket = bucket_of(table, key, partitions)
    written = []
    for target in bucket.unique().sort().to_list():
        path = folder / f"{number:06d}-{target:04d}.arrow"
        write_shard(table.filter((bucket == target).to_arrow()), path)
        written.append((int(target), path))
    return written


def _reduce_partition(
    key: str, function: TableFunction, folder: Path, schema: pa.Schema, item: tuple[int, tuple[Path, ...]]
) -> tuple[Shard, pa.Schema]:
    number, files = item
    tables = [read_shard(path) for path in files] or [schema.empty_table()]
    whole = sort_by_key(pa.concat_tables(tables, promote_options="permissive"), key)
    table = call_placed(function, whole, f"groups of `{key}`")
    return write_shard(table, folder / f"out-{number:06d}.arrow"), table.schema
