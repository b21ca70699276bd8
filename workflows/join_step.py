"""Joining branches (`mix.concat`): rows of several parents one after another.

A row that arrives by two branches is kept once, from the first parent, and counted as merged; columns that one
parent lacks are null. Every shard is a unit of its own.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from datamill.services.engines.protocol import Outcome, Shard
from datamill.services.engines.shards import read_shard
from datamill.services.engines.tables import conform
from datamill.services.records import ID, Fate, fates
from datamill.services.storage.units import UnitStore, unit_key
from datamill.workflows.chain import StepCall, UnitReport, with_source
from datamill.workflows.ledger import Books, balance_books

PARENT = "_parent"
SAME_ROW = "same_row_from_another_branch"


def joined_arrow_schema(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """Arrow schema of the union of several parents; a column that one of them lacks may be null."""
    plain = [schema.remove_metadata() for schema in schemas if schema.names]
    if not plain:
        return pa.schema([])
    union = pa.unify_schemas(plain, promote_options="permissive")
    shared = set.intersection(*(set(schema.names) for schema in plain))
    return pa.schema([field if field.name in shared else field.with_nullable(True) for field in union])


@dataclass(frozen=True)
class JoinTask:
    """Brings one shard of one parent into the common shape; run by workers.

    The operator sees the shard with its parent's name in the column `_parent` and returns what goes on.
    """

    store: UnitStore
    call: StepCall
    parents: tuple[str, ...]
    shards: tuple[Shard, ...]
    schema: pa.Schema
    reuse: bool = True

    def __call__(self, item: tuple[int, Shard]) -> list[UnitReport]:
        """The unit of one shard."""
        number, shard = item
        parent = self.parents[number]
        earlier = [
            other for other, name in zip(self.shards, self.parents, strict=True)
            if self.parents.index(name) < self.parents.index(parent)
        ]  # fmt: skip
        # what an operator prepared (shares of a mixture) depends on every parent, not only on the ones before
        others = earlier if self.call.resources is None else self.shards
        key = unit_key(self.call.key, shard.digest, parent, str(number), *(other.digest for other in others))
        unit = self.store.load(key) if self.reuse else None
        if unit is not None:
            return [UnitReport(self.call.step, number, unit, reused=True)]
        started = time.perf_counter()
        outcome, doubled = self._join(shard, parent, earlier)
        books = Books(doubled.num_rows, 0, 0, *_merged_counts(doubled.num_rows)) + outcome[0]
        rows, left = outcome[1].rows, pa.concat_tables([doubled, outcome[1].fates])
        unit = self.store.commit(key, rows, left, books.flat(), time.perf_counter() - started)
        return [UnitReport(self.call.step, number, unit, reused=False)]

    def _join(self, shard: Shard, parent: str, earlier: Sequence[Shard]) -> tuple[tuple[Books, Outcome], pa.Table]:
        before = read_shard(shard.path)
        rows = conform(before, self.schema)
        doubled = fates()
        if earlier:
            known = pa.concat_tables([read_shard(other.path, [ID]) for other in earlier])[ID]
            again = pc.is_in(rows[ID], value_set=pc.unique(known))
            doubled = with_source(_merged(rows.filter(again)), before)
            rows = rows.filter(pc.invert(again))
        operator, params = self.call.bind()
        named = rows.append_column(PARENT, pa.repeat(pa.scalar(parent), rows.num_rows))
        outcome = operator.run(named, params, self.call.context())
        books = balance_books(self.call.step, rows, outcome.rows, outcome.fates)
        return (books, Outcome(outcome.rows, with_source(outcome.fates, before))), doubled


def _merged_counts(count: int) -> tuple[dict[str, int], dict[str, int]]:
    merged = Fate.MERGED.value
    return ({merged: count}, {f"{merged}:{SAME_ROW}": count}) if count else ({}, {})


def _merged(rows: pa.Table) -> pa.Table:
    ids = rows[ID].to_pylist()
    return fates([{"id": i, "fate": Fate.MERGED, "reason": SAME_ROW, "into": i} for i in ids])
