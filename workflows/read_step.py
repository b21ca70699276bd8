"""Reading an input as committed shards: one unit per batch of a chunk, and one that says a chunk is whole.

Chunks are read in order; a chunk that was read whole before is not opened again. Small batches that follow each other
become one unit, because each unit costs three durable files here and again in every step below. The share of
quarantined records is judged over the whole input, so that it does not depend on how the bytes were cut.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from datamill.services.reading.reader import check_bad, read_chunk
from datamill.services.reading.source import Batch, Chunk, SourceSpec
from datamill.services.records import FATE_SCHEMA
from datamill.services.storage.units import UnitStore, unit_key
from datamill.workflows.chain import UnitReport
from datamill.workflows.ledger import books_of_source
from datamill.workflows.plan import PlanStep
from datamill.workflows.sources import read_source

if TYPE_CHECKING:
    from datamill.workflows.runner import Runner

MERGED_BYTES = 16 << 20
CUT = "2"  # how chunks are cut into units; part of their keys, so that units of two cuts are never mixed
NOTHING = {"in": 0, "out": 0, "expanded": 0}


@dataclass(frozen=True)
class ReadTask:
    """Reads one chunk; run by workers."""

    store: UnitStore
    step: str
    key: str
    source: SourceSpec
    schema: pa.Schema
    limit: int | None
    reuse: bool

    def __call__(self, item: tuple[int, Chunk]) -> list[UnitReport]:
        """Units of one chunk, in order."""
        _, chunk = item
        place = f"{chunk.file.relative}:{chunk.start}-{chunk.end}:{chunk.file.index}:{chunk.first_line}"
        chunk_key = unit_key(self.key, CUT, chunk.digest, place, str(self.source.shard_rows), str(self.limit))
        marker = self.store.load(chunk_key) if self.reuse else None
        if marker is not None:
            found = [self.store.load(unit_key(chunk_key, str(part))) for part in range(marker.extra["parts"])]
            if all(found):
                return [UnitReport(self.step, 0, unit, reused=True) for unit in found if unit is not None]
        return self._read(chunk, chunk_key)

    def _read(self, chunk: Chunk, chunk_key: str) -> list[UnitReport]:
        reports: list[UnitReport] = []
        empty: pa.Table | None = None
        rows = 0
        most = self.source.shard_rows if self.limit is None else min(self.limit, self.source.shard_rows)
        for part, batch in enumerate(merged(read_chunk(self.source, chunk, self.schema), most, MERGED_BYTES)):
            kept = batch.rows if self.limit is None else batch.rows.slice(0, max(0, self.limit - rows))
            rows += kept.num_rows
            books = books_of_source(self.step, kept, batch.fates)
            key = unit_key(chunk_key, str(part))
            unit = self.store.commit(key, kept, batch.fates, books.flat(), 0.0, {"blank": batch.num_blank})
            reports.append(UnitReport(self.step, 0, unit, reused=False))
            empty = kept.slice(0, 0)
            if self.limit is not None and rows >= self.limit:
                break
        parts = len(reports)
        marker_rows = empty if empty is not None else pa.table({})
        self.store.commit(chunk_key, marker_rows, FATE_SCHEMA.empty_table(), NOTHING, 0.0, {"parts": parts})
        return reports


def merged(batches: Iterable[Batch], max_rows: int, max_bytes: int) -> Iterator[Batch]:
    """The batches, those that follow each other put together as long as both bounds hold.

    Args:
        batches: batches of one chunk, in order.
        max_rows: rows up to which batches are put together; a batch that has more by itself stays as it is.
        max_bytes: bytes of rows, likewise.
    """
    waiting: list[Batch] = []
    rows = size = 0
    for batch in batches:
        more_rows, more_bytes = batch.rows.num_rows, batch.rows.nbytes
        if waiting and (rows + more_rows > max_rows or size + more_bytes > max_bytes):
            yield _one(waiting)
            waiting, rows, size = [], 0, 0
        waiting.append(batch)
        rows, size = rows + more_rows, size + more_bytes
        if rows >= max_rows or size >= max_bytes:  # full: the next batch need not be read to know
            yield _one(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield _one(waiting)


def _one(batches: Sequence[Batch]) -> Batch:
    if len(batches) == 1:
        return batches[0]
    return Batch(
        pa.concat_tables([batch.rows for batch in batches]),
        pa.concat_tables([batch.fates for batch in batches]),
        sum(batch.num_blank for batch in batches),
        sum(batch.num_bad for batch in batches),
    )


def read_input(runner: "Runner", step: PlanStep) -> None:
    """Read all chunks of an input and make them the result of `step`."""
    options = runner.options
    source, chunks = read_source(step, runner.policy, runner.plan.run.shard_rows)
    assert step.arrow is not None
    key = step.key(0)
    task = ReadTask(runner.store, step.id, key, source, step.arrow, options.limit, runner.reuses(step))
    by_chunk: dict[int, list[UnitReport]] = {}
    for index, reports in runner.engine.map_units(task, list(enumerate(chunks)), bound=step.bound):
        by_chunk[index] = reports
        rows = sum(report.unit.num_rows for report in reports)
        runner.events.emit("unit_done", step=step.id, shard=index, of=len(chunks), rows=rows)
        runner.check_stop(step.id)
    reports = [report for index in sorted(by_chunk) for report in by_chunk[index]]
    runner.add_reports(step.id, limited(reports, options.limit))
    books = runner.results[step.id].books
    check_bad(source, books.rows_out, books.rows_in - books.rows_out, quarantined(reports))


def limited(reports: Sequence[UnitReport], limit: int | None) -> list[UnitReport]:
    """The first units that hold `limit` rows together (the last one may hold more)."""
    if limit is None:
        return list(reports)
    kept: list[UnitReport] = []
    rows = 0
    for report in reports:
        if rows >= limit and kept:
            break
        kept.append(report)
        rows += report.unit.num_rows
    return kept


def quarantined(reports: Sequence[UnitReport]) -> pa.Table:
    """Fates of the first units that have quarantined records."""
    bad = [report.unit.fates() for report in reports if any(k.startswith("gone.") for k in report.unit.counts)]
    return pa.concat_tables(bad[:3]) if bad else FATE_SCHEMA.empty_table()
