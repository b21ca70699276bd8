"""Tables in flight on a cluster: every row a distributed engine moves carries one whole Arrow table.

A frame on Ray Data or Spark has two columns: `part` (int32: the shard, later the bucket, the rows belong to) and
`payload` (binary: a pickled `Shard` still at rest, or a table as an Arrow IPC stream). So types arrive exactly as
they were sent (unsigned integers, nested lists, nulls), the engine plans over thousands of rows where there are
millions of records, and both engines share the functions below.

Cost: one copy of the bytes per hop; a table in flight is a shard or a bucket, never more.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from datamill.services.engines.protocol import Shard, TableFunction
from datamill.services.engines.shards import bucket_of, read_shard
from datamill.services.engines.tables import call_placed, sort_by_key

PART = "part"
PAYLOAD = "payload"
FRAME_SCHEMA = pa.schema([pa.field(PART, pa.int32()), pa.field(PAYLOAD, pa.large_binary())])
"""Schema of a frame; Spark spells `payload` as `binary`."""

Chunk = tuple[int, bytes]
"""One row of a frame: its part and its payload."""

_STREAM_MAGIC = b"\xff\xff\xff\xff"  # continuation marker every Arrow IPC stream begins with


def encode(table: pa.Table) -> bytes:
    """A table as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def load(payload: bytes | memoryview | pa.Buffer, columns: Sequence[str] | None = None) -> pa.Table:
    """The table behind a payload, projected to `columns`."""
    view = memoryview(payload)
    if bytes(view[:4]) == _STREAM_MAGIC:
        table = pa.ipc.open_stream(pa.py_buffer(payload)).read_all()
        return table if columns is None else table.select(list(columns))
    shard: Shard = pickle.loads(view)  # noqa: S301  written by this run's driver
    return read_shard(shard.path, columns)


def at_rest(shards: Sequence[Shard]) -> list[Chunk]:
    """Chunks that name shards; workers read them where they are needed."""
    return [(part, pickle.dumps(shard)) for part, shard in enumerate(shards)]


@dataclass(frozen=True)
class Mapped:
    """Maps of one chunk after each other, without a stop in between.

    Attributes:
        maps: functions with the columns each is given (None: all of them).
        offset: added to the part, so that frames put together keep their parts apart.
    """

    maps: tuple[tuple[TableFunction, tuple[str, ...] | None], ...] = ()
    offset: int = 0

    def then(self, function: TableFunction, columns: tuple[str, ...] | None) -> "Mapped":
        """These maps and one more."""
        return Mapped((*self.maps, (function, columns)), self.offset)

    def moved(self, offset: int) -> "Mapped":
        """The same maps, parts counted from `offset` on."""
        return Mapped(self.maps, self.offset + offset)

    def table(self, chunk: Chunk) -> pa.Table:
        """What becomes of the table of a chunk."""
        part, payload = chunk
        table = load(payload, self.maps[0][1] if self.maps else None)
        for number, (function, columns) in enumerate(self.maps):
            given = table if number == 0 or columns is None else table.select(list(columns))
            table = call_placed(function, given, f"shard {part}")
        return table

    def __call__(self, chunk: Chunk) -> Iterator[Chunk]:
        """The chunk with its table mapped."""
        payload = encode(self.table(chunk)) if self.maps else bytes(memoryview(chunk[1]))
        yield chunk[0] + self.offset, payload


@dataclass(frozen=True)
class Split:
    """First half of a shuffle: one chunk becomes a piece per bucket it has rows for, after the maps before it.

    A piece remembers which part it came from, so that a bucket can be put together in one order whatever arrived first.
    """

    before: Mapped
    key: str
    buckets: int

    def __call__(self, chunk: Chunk) -> Iterator[Chunk]:
        """`(bucket, part and table)` for every bucket that gets rows."""
        table = self.before.table(chunk)
        part = chunk[0] + self.before.offset
        bucket = bucket_of(table, self.key, self.buckets)
        for target in bucket.unique().sort().to_list():
            piece = table if self.buckets == 1 else table.filter((bucket == target).to_arrow())
            yield int(target), part.to_bytes(4, "big") + encode(piece)


@dataclass(frozen=True)
class ReduceBucket:
    """Second half of a shuffle: all pieces of one bucket, sorted by key, through the function."""

    key: str
    function: TableFunction

    def __call__(self, bucket: int, pieces: Iterable[bytes | memoryview]) -> Chunk:
        """The bucket's result as one chunk."""
        ordered = sorted(pieces, key=lambda piece: bytes(memoryview(piece)[:4]))
        tables = [load(memoryview(piece)[4:]) for piece in ordered]
        whole = pa.concat_tables(tables, promote_options="permissive")
        table = sort_by_key(whole, self.key)
        return bucket, encode(call_placed(self.function, table, f"groups of `{self.key}`"))


ChunkFunction = Callable[[Chunk], Iterator[Chunk]]


def in_order(chunks: Iterable[Chunk], columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """Tables of chunks, by part."""
    for _, payload in sorted(chunks, key=lambda chunk: chunk[0]):
        yield load(payload, columns)
