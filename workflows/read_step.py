"""Reading an input as committed shards: one unit per batch of a chunk, and one that says a chunk is whole.

Chunks are read in order; a chunk that was read whole before is not opened again. The share of quarantined records
is judged over the whole input, so that it does not depend on how the bytes were cut.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from datamill.services.reading.reader import check_bad, read_chunk
from datamill.services.reading.source import Chunk, SourceSpec
from datamill.services.records import FATE_SCHEMA
from datamill.services.storage.units import UnitStore, unit_key
from datamill.workflows.chain import UnitReport
from datamill.workflows.ledger import books_of_source
from datamill.workflows.plan import PlanStep
from datamill.workflows.sources import read_source

if TYPE_CHECKING:
    from datamill.workflows.runner import Runner

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
        chunk_key = unit_key(self.key, chunk.digest, place, str(self.source.shard_rows), str(self.limit))
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
        for part, batch in enumerate(read_chunk(self.source, chunk, self.schema)):
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
