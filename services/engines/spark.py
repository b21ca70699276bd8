"""The Spark engine: units as tasks of a `mapInArrow`, global operators on DataFrames of chunks.

It promises the rows of the local engine, on the master that `run.spark.master` or `spark.master` names or on one it
starts and stops. A task that dies with its executor is run again; units are committed by rename, so a task that ran
twice leaves one unit. Frames are described in `frames`; a shuffle is `groupBy(part).applyInArrow`.
Cost: start-up of a JVM (seconds), and per hop one copy of the bytes through the JVM, which spills to disk.
"""

import pickle
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from datamill.errors import DatamillError
from datamill.services.engines.calls import Reply, UnitCall, carried, carrying
from datamill.services.engines.chunks import PART, PAYLOAD, Chunk, ChunkFunction, ReduceBucket, at_rest
from datamill.services.engines.frames import FrameDataset, num_buckets
from datamill.services.engines.protocol import Dataset, Shard
from datamill.services.engines.scratch import scratch_folder
from datamill.services.engines.spark_session import SparkConnection

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Item = TypeVar("Item")
Result = TypeVar("Result")
COLUMNS = f"{PART} int, {PAYLOAD} binary"
FRAME = pa.schema([pa.field(PART, pa.int32()), pa.field(PAYLOAD, pa.binary())])
SHIPPED_BYTES = 1 << 20
"""A function larger than this (a broadcast table is bound to it) is broadcast once per executor."""


class SparkEngine:
    """Runs functions over shards on Spark.

    Args:
        workers: tasks at once of a Spark that is started here; the number of usable cores when None.
        master: Spark master URL; `spark.master` of `conf`, else a local start, when None.
        conf: `spark.*` settings.
        scratch: folder all workers can read, in which this engine makes one of its own; the system's temporary folder
            when None (enough for a local start).

    Raises:
        DatamillError: `DM-ENGINE-020` to `-022` (exit 6) and `-024` (exit 3), see `SparkConnection.open`.
    """

    def __init__(
        self,
        workers: int | None = None,
        master: str | None = None,
        conf: Mapping[str, str] | None = None,
        scratch: Path | None = None,
    ) -> None:
        self.scratch = scratch_folder(scratch)
        try:
            self.connection = SparkConnection.open(master, workers, conf or {}, self.scratch)
        except BaseException:
            rmtree(self.scratch, ignore_errors=True)
            raise
        self.workers = self.connection.cpus
        self.links = self.connection.links

    def map_units(
        self, task: Callable[[Item], Result], items: Sequence[Item], *, parallel: bool = True, bound: str = "cpu"
    ) -> Iterator[tuple[int, Result]]:
        """Apply `task` to every item; see `protocol.Engine`. Spark hands results over in the order of items."""
        if not parallel or len(items) < 2:
            yield from ((index, task(item)) for index, item in enumerate(items))
            return
        frame = self._from_chunks([(index, pickle.dumps(item)) for index, item in enumerate(items)])
        self.connection.session.sparkContext.setJobDescription(f"{len(items)} units, {bound} bound")
        for index, reply in self.chunks(self.map_frame(frame, UnitCall(task))):
            yield index, Reply.of(reply).value()

    def dataset(self, shards: Sequence[Shard], schema: pa.Schema) -> Dataset:
        """Handle on committed shards."""
        chosen = tuple(shards)
        buckets = num_buckets(chosen, self.workers)
        return FrameDataset(self._from_chunks(at_rest(chosen)), schema, self, len(chosen), buckets, chosen)

    def broadcast(self, value: Any, name: str) -> Path:
        """Make `value` readable by every worker, as a file below the scratch folder."""
        path = self.scratch / f"broadcast-{name}.pickle"
        path.write_bytes(pickle.dumps(value))
        return path

    def map_frame(self, frame: "DataFrame", function: ChunkFunction) -> "DataFrame":
        """`mapInArrow` over the chunks of each partition."""
        shipped = self._shipped(function)

        def on_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            with carrying():
                call = shipped.load()
                for batch in batches:
                    for chunk in chunks_of(batch):
                        yield from (batch_of(made) for made in call(chunk))

        with _no_pandas():
            return frame.mapInArrow(on_batches, COLUMNS)

    def group_frame(self, frame: "DataFrame", function: ReduceBucket, buckets: int) -> "DataFrame":
        """`groupBy(part).applyInArrow`."""
        shipped = self._shipped(function)

        def on_group(group: pa.Table) -> pa.Table:
            with carrying():
                pieces = [payload.as_buffer() for payload in group[PAYLOAD]]
                return pa.Table.from_batches([batch_of(shipped.load()(group[PART][0].as_py(), pieces))])

        with _no_pandas():
            return frame.repartition(buckets, PART).groupBy(PART).applyInArrow(on_group, COLUMNS)

    def union_frames(self, frames: Sequence["DataFrame"]) -> "DataFrame":
        """Rows of all frames."""
        whole = frames[0]
        for frame in frames[1:]:
            whole = whole.unionAll(frame)
        return whole

    def keep_frame(self, frame: "DataFrame") -> "DataFrame":
        """Persisted on the executors' disks."""
        from pyspark import StorageLevel

        kept = frame.persist(StorageLevel.DISK_ONLY)
        with self._errors():
            kept.count()
        return kept

    def chunks(self, frame: "DataFrame") -> Iterator[Chunk]:
        """Chunks, one partition at a time on the driver."""
        with self._errors():
            for row in frame.toLocalIterator(prefetchPartitions=True):
                yield row[0], row[1]

    def close(self) -> None:
        """Stop a Spark started here, leave one that was there, remove the scratch folder."""
        self.connection.close()
        rmtree(self.scratch, ignore_errors=True)

    def __enter__(self) -> "SparkEngine":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _from_chunks(self, chunks: Sequence[Chunk]) -> "DataFrame":
        """A frame with a partition per chunk, so that every chunk is a task of its own."""
        context = self.connection.session.sparkContext
        rows = context.parallelize([(part, bytearray(data)) for part, data in chunks], max(1, len(chunks)))
        return self.connection.session.createDataFrame(rows, COLUMNS)

    def _shipped(self, function: Any) -> "Shipped":
        from pyspark import cloudpickle

        data = cloudpickle.dumps(function)
        if len(data) > SHIPPED_BYTES:
            return Shipped(None, self.connection.session.sparkContext.broadcast(data))
        return Shipped(data, None)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """What a function raised comes out as it was raised, without the traces of workers."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            yield
        except (PySparkException, Py4JError) as error:
            raise original(error) from None


class Shipped:
    """A pickled function on its way to workers, by itself or as a broadcast."""

    def __init__(self, data: bytes | None, broadcast: Any) -> None:
        self.data = data
        self.broadcast = broadcast

    def load(self) -> Any:
        """The function."""
        data = self.broadcast.value if self.data is None else self.data
        return pickle.loads(data)  # noqa: S301  sent by this run's driver


@contextmanager
def _no_pandas() -> Iterator[None]:
    """PySpark warns of pandas 3 where it only looks for its version; no function here touches pandas."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
        yield


def batch_of(chunk: Chunk) -> pa.RecordBatch:
    """One chunk as a record batch with the frame's columns."""
    return pa.record_batch([[chunk[0]], [chunk[1]]], schema=FRAME)


def chunks_of(batch: pa.RecordBatch) -> Iterator[Chunk]:
    """Chunks of a batch."""
    for part, payload in zip(batch.column(PART).to_pylist(), batch.column(PAYLOAD), strict=True):
        yield part, payload.as_buffer()


def original(error: BaseException) -> BaseException:
    """The error of the function behind an error of Spark; `DM-ENGINE-023` where there is none."""
    found = carried(str(error))
    if found is not None:
        return found
    lines = [line for line in str(error).strip().splitlines() if line.strip()] or [type(error).__name__]
    return DatamillError(
        "DM-ENGINE-023", f"Spark gave up: {lines[0][:300]}",
        fix="run the same command again: finished units are kept; `datamill doctor` says what Spark has",
    )  # fmt: skip
