"""Batch steps on one shard: the unit of work that workers run.

A chain is a run of consecutive batch steps; each step of it is committed on its own, so a chain that is killed
goes on at the first step that is not there yet. Rows pass from step to step in memory and are written once a step.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from datamill.errors import DatamillError
from datamill.operators.declaration import Bound, Context, Operator, Params
from datamill.operators.registry import find
from datamill.services.engines.local import broadcast_value
from datamill.services.engines.protocol import Outcome, Shard
from datamill.services.engines.shards import read_shard
from datamill.services.records import ID, SRC, Fate, fates
from datamill.services.storage.units import Unit, UnitStore, unit_key
from datamill.workflows.ledger import balance_books


@dataclass(frozen=True)
class StepCall:
    """Everything a worker needs to apply one step.

    Attributes:
        step: step id.
        operator: operator id.
        params: parameters as plain data.
        key: content key of the step (operator, parameters, files, seed).
        seed: seed of the step.
        on_error: `fail`, `drop` or `keep` for rows that raise.
        project: project folder.
        resources: broadcast file of what `prepare` returned, or None.
        settings: services an LLM operator needs.
    """

    step: str
    operator: str
    params: Mapping[str, Any]
    key: str
    seed: int
    on_error: str
    project: Path
    resources: Path | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def context(self) -> Context:
        """The operator's view of the call."""
        value = broadcast_value(self.resources) if self.resources else None
        return Context(self.step, self.seed, self.project, value, {}, self.settings)

    @property
    def asks_again(self) -> bool:
        """Whether failed rows are worth another try: calls to a model fail for reasons that pass."""
        return find(self.operator).bound is Bound.LLM

    def bind(self) -> tuple[Operator[Any], Params]:
        """Operator and validated parameters."""
        operator = find(self.operator)
        return operator, operator.params.model_validate(dict(self.params))


def has_failed(unit: Unit) -> bool:
    """Whether rows of the unit failed; such a unit is computed again, at the price of the failed calls alone."""
    mark = f"reason.{Fate.FAILED}:", f"noted.{Fate.FAILED}:"
    return any(name.startswith(mark) and count for name, count in unit.counts.items())


@dataclass(frozen=True)
class UnitReport:
    """What a worker tells about a unit it has, computed or found."""

    step: str
    shard: int
    unit: Unit
    reused: bool

    @property
    def handle(self) -> Shard:
        """The unit's rows as a shard."""
        return Shard(self.unit.rows_path, self.unit.num_rows, self.unit.digest)


@dataclass(frozen=True)
class ChainTask:
    """A chain of calls, applied to shards by workers."""

    store: UnitStore
    calls: tuple[StepCall, ...]
    reuse: bool = True

    def __call__(self, item: tuple[int, Shard]) -> list[UnitReport]:
        """Units of all calls for one shard."""
        number, shard = item
        reports: list[UnitReport] = []
        rows: pa.Table | None = None
        digest = shard.digest
        for call in self.calls:
            key = unit_key(call.key, digest)
            unit = self.store.load(key) if self.reuse else None
            if unit is not None and call.asks_again and has_failed(unit):
                unit = None
            reused = unit is not None
            if unit is None:
                before = rows if rows is not None else self._rows_before(shard, reports)
                unit, rows = self._compute(call, key, before)
            else:
                rows = None
            reports.append(UnitReport(call.step, number, unit, reused))
            digest = unit.digest
        return reports

    def _rows_before(self, shard: Shard, reports: Sequence[UnitReport]) -> pa.Table:
        return reports[-1].unit.rows() if reports else read_shard(shard.path)

    def _compute(self, call: StepCall, key: str, before: pa.Table) -> tuple[Unit, pa.Table]:
        started = time.perf_counter()
        outcome = apply_call(call, before)
        books = balance_books(call.step, before, outcome.rows, outcome.fates)
        fate_rows = with_source(outcome.fates, before)
        seconds = time.perf_counter() - started
        return self.store.commit(key, outcome.rows, fate_rows, books.flat(), seconds), outcome.rows


def apply_call(call: StepCall, before: pa.Table) -> Outcome:
    """Apply one batch step; rows that raise are found by halving and treated as `on_error` says."""
    operator, params = call.bind()
    context = call.context()
    try:
        return run_operator(operator, before, params, context)
    except DatamillError:
        raise
    except Exception as error:
        if call.on_error == "fail":
            raise step_error(call.step, operator.id, error, before) from error
        if before.num_rows <= 1:
            return _failed_row(call, before, error)
        middle = before.num_rows // 2
        halves = [apply_call(call, before.slice(0, middle)), apply_call(call, before.slice(middle))]
        rows = pa.concat_tables([half.rows for half in halves if half.rows.num_rows] or [halves[0].rows])
        return Outcome(rows, pa.concat_tables([half.fates for half in halves]))


def run_operator(operator: Operator[Any], rows: pa.Table, params: Params, context: Context) -> Outcome:
    """Call a batch operator and check that it returned an outcome."""
    outcome = operator.run(rows, params, context)
    if not isinstance(outcome, Outcome):
        raise TypeError(f"{operator.id} returned {type(outcome).__name__}, not an Outcome")
    return outcome


def step_error(step: str, operator_id: str, error: Exception, rows: pa.Table) -> DatamillError:
    """`DM-RUN-001`: the operator raised; names the step and the rows it was given, once."""
    first = rows[SRC][0].as_py() if rows.num_rows else "an empty shard"
    return DatamillError(
        "DM-RUN-001",
        f"{operator_id} raised {type(error).__name__}: {str(error)[:300]} (shard starting at {first})",
        step=step,
        fix="set on_error: drop for this step to set such rows aside, then run the same command again",
    )


def _failed_row(call: StepCall, row: pa.Table, error: Exception) -> Outcome:
    if not row.num_rows:
        raise error
    detail = f"{type(error).__name__}: {error}"[:500]
    record = {"id": row[ID][0].as_py(), "fate": Fate.FAILED, "reason": "operator_raised", "detail": detail}
    kept = row if call.on_error == "keep" else row.slice(0, 0)
    return Outcome(kept, fates([record]))


def with_source(fate_rows: pa.Table, before: pa.Table) -> pa.Table:
    """Fill the `src` of fates from the rows they speak of."""
    if not fate_rows.num_rows or SRC not in before.column_names:
        return fate_rows
    import polars as pl

    places = pl.DataFrame({"id": pl.Series(before[ID]), "_place": pl.Series(before[SRC])}).unique("id")
    frame = pl.from_arrow(fate_rows)
    assert isinstance(frame, pl.DataFrame)
    frame = frame.join(places, on="id", how="left", maintain_order="left")
    frame = frame.with_columns(src=pl.coalesce("src", "_place")).drop("_place")
    return frame.to_arrow().cast(fate_rows.schema)
