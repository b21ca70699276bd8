"""The Ray engine: units as tasks of a Ray Data stream, global operators on Ray Data frames.

It promises the rows of the local engine, on a cluster that is there (`RAY_ADDRESS`, `run.ray.address`) or on one it
starts and stops. A task that dies with its worker or node is run again elsewhere; units are committed by rename, so a
task that ran twice leaves one unit. Frames are described in `frames`; a shuffle is Ray Data's hash shuffle.
Cost: start-up of Ray (seconds), and per hop one copy of the bytes through the object store, which spills to disk.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from datamill.errors import DatamillError
from datamill.services.engines.calls import Reply, UnitCall, carried, carrying
from datamill.services.engines.chunks import FRAME_SCHEMA, PART, PAYLOAD, Chunk, ChunkFunction, ReduceBucket, at_rest
from datamill.services.engines.frames import FrameDataset, num_buckets
from datamill.services.engines.protocol import Dataset, Shard
from datamill.services.engines.ray_session import RaySession
from datamill.services.engines.scratch import scratch_folder

if TYPE_CHECKING:
    import ray.data

Item = TypeVar("Item")
Result = TypeVar("Result")
RESOURCES: dict[str, dict[str, float]] = {"io": {"num_cpus": 0.5}, "cpu": {"num_cpus": 1}, "gpu": {"num_gpus": 1}}
"""What Ray sets aside for a task, by its bound: two tasks that wait for disks share a core, a GPU is never shared."""
SHIPPED_BYTES = 1 << 20
"""A function larger than this (a broadcast table is bound to it) goes through the object store once."""


class RayEngine:
    """Runs functions over shards on Ray.

    Args:
        workers: CPUs of a Ray that is started here; the number of usable cores when None.
        address: cluster to join; the one that `RAY_ADDRESS` names, else a local start, when None.
        scratch: folder all workers can read, in which this engine makes one of its own; the system's temporary folder
            when None (enough for a local start).

    Raises:
        DatamillError: `DM-ENGINE-010` Ray is not installed, `DM-ENGINE-011` the cluster cannot be reached (exit 6
            both), `DM-ENGINE-013` a node does not see `scratch` (exit 3).
    """

    def __init__(self, workers: int | None = None, address: str | None = None, scratch: Path | None = None) -> None:
        self.scratch = scratch_folder(scratch)
        try:
            self.session = RaySession.open(address, workers, self.scratch)
        except BaseException:
            rmtree(self.scratch, ignore_errors=True)
            raise
        self.workers = self.session.cpus
        self.links = self.session.links

    def map_units(
        self, task: Callable[[Item], Result], items: Sequence[Item], *, parallel: bool = True, bound: str = "cpu"
    ) -> Iterator[tuple[int, Result]]:
        """Apply `task` to every item; see `protocol.Engine`. Ray Data keeps no more tasks in flight than fit."""
        if not parallel or len(items) < 2:
            yield from ((index, task(item)) for index, item in enumerate(items))
            return
        frame = self._from_chunks([(index, pickle.dumps(item)) for index, item in enumerate(items)])
        replies = frame.map_batches(OnBlock(self._shipped(UnitCall(task))), **_WHOLE, **RESOURCES[bound])
        for index, reply in self.chunks(replies):
            yield index, Reply.of(reply).value()

    def dataset(self, shards: Sequence[Shard], schema: pa.Schema) -> Dataset:
        """Handle on committed shards."""
        chosen = tuple(shards)
        frame = self._from_chunks(at_rest(chosen))
        buckets = num_buckets(chosen, self.workers)
        return FrameDataset(frame, schema, self, len(chosen), buckets, chosen)

    def broadcast(self, value: Any, name: str) -> Path:
        """Make `value` readable by every worker, as a file below the scratch folder."""
        path = self.scratch / f"broadcast-{name}.pickle"
        path.write_bytes(pickle.dumps(value))
        return path

    def map_frame(self, frame: "ray.data.Dataset", function: ChunkFunction) -> "ray.data.Dataset":
        """`map_batches` over the chunks of each block."""
        return frame.map_batches(OnBlock(self._shipped(function)), **_WHOLE)

    def group_frame(self, frame: "ray.data.Dataset", function: ReduceBucket, buckets: int) -> "ray.data.Dataset":
        """`groupby(part).map_groups`, on the hash shuffle."""
        grouped = frame.groupby(PART, num_partitions=buckets)
        return grouped.map_groups(OnGroup(self._shipped(function)), batch_format="pyarrow")

    def union_frames(self, frames: Sequence["ray.data.Dataset"]) -> "ray.data.Dataset":
        """Blocks of all frames."""
        return frames[0].union(*frames[1:])

    def keep_frame(self, frame: "ray.data.Dataset") -> "ray.data.Dataset":
        """Blocks computed once, in the object store."""
        with self._errors():
            return frame.materialize()

    def chunks(self, frame: "ray.data.Dataset") -> Iterator[Chunk]:
        """Chunks as they arrive."""
        with self._errors():
            for block in frame.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0):
                yield from chunks_of(block)

    def close(self) -> None:
        """Stop a Ray started here, leave one that was there, remove the scratch folder."""
        self.session.close()
        rmtree(self.scratch, ignore_errors=True)

    def __enter__(self) -> "RayEngine":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _from_chunks(self, chunks: Sequence[Chunk]) -> "ray.data.Dataset":
        """A frame with a block per chunk, so that every chunk is a task of its own."""
        import ray.data

        if not chunks:
            return ray.data.from_arrow(FRAME_SCHEMA.empty_table())
        return ray.data.from_arrow([table_of([chunk]) for chunk in chunks])

    def _shipped(self, function: Any) -> Any:
        import ray
        from ray import cloudpickle

        data = cloudpickle.dumps(function)
        return Stored(ray.put(data)) if len(data) > SHIPPED_BYTES else function

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """What a function raised comes out as it was raised, without the traces of workers."""
        import ray.exceptions

        try:
            yield
        except ray.exceptions.RayError as error:
            raise original(error) from None


_WHOLE: dict[str, Any] = {"batch_size": None, "batch_format": "pyarrow", "zero_copy_batch": True}


class Stored:
    """A function in the object store, read once per worker."""

    def __init__(self, reference: Any) -> None:
        self.reference = reference

    def __call__(self, *arguments: Any) -> Any:
        """Call the stored function."""
        return _stored(self.reference)(*arguments)


_functions: dict[Any, Any] = {}


def _stored(reference: Any) -> Any:
    import ray

    if reference not in _functions:
        if len(_functions) > 8:
            _functions.clear()
        _functions[reference] = pickle.loads(ray.get(reference))  # noqa: S301  put there by this run's driver
    return _functions[reference]


class OnBlock:
    """A function of chunks as a function of blocks."""

    def __init__(self, function: ChunkFunction) -> None:
        self.function = function

    def __call__(self, block: pa.Table) -> Iterator[pa.Table]:
        """One small block per chunk that comes out."""
        with carrying():
            for chunk in chunks_of(block):
                for made in self.function(chunk):
                    yield table_of([made])


class OnGroup:
    """A reduction as a function of the block that holds a group."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.__name__ = "reduce_bucket"  # Ray Data names the operation after it

    def __call__(self, group: pa.Table) -> pa.Table:
        """The bucket's chunk."""
        pieces = [payload.as_buffer() for payload in group[PAYLOAD]]
        with carrying():
            return table_of([self.function(group[PART][0].as_py(), pieces)])


def table_of(chunks: Iterable[Chunk]) -> pa.Table:
    """Chunks as a table with the frame's columns."""
    listed = list(chunks)
    return pa.table([[part for part, _ in listed], [payload for _, payload in listed]], schema=FRAME_SCHEMA)


def chunks_of(block: pa.Table) -> Iterator[Chunk]:
    """Chunks of a block; one that came out empty has no columns."""
    if PART not in block.column_names:
        return
    for part, payload in zip(block[PART].to_pylist(), block[PAYLOAD], strict=True):
        yield part, payload.as_buffer()


def original(error: BaseException) -> BaseException:
    """The error of the function behind an error of Ray; `DM-ENGINE-012` where there is none."""
    found = carried(str(error))
    if found is not None:
        return found
    last = str(error).strip().splitlines()[-1:] or [type(error).__name__]
    return DatamillError(
        "DM-ENGINE-012", f"Ray gave up: {last[0][:300]}",
        fix="run the same command again: finished units are kept; `datamill doctor` says what Ray has",
    )  # fmt: skip
