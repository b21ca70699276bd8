"""Quality gates: measured after the run, each a number held against bounds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from datamill.services.engines.protocol import Shard
from datamill.services.engines.shards import read_shard
from datamill.services.records import SYSTEM_COLUMNS
from datamill.workflows.plan import Plan
from datamill.workflows.runner import StepResult
from datamill.workflows.spec import CheckSpec


@dataclass(frozen=True)
class GateResult:
    """A gate after the run.

    Attributes:
        on: step or output.
        metric: what was measured.
        value: the measured number.
        min: lower bound, if any.
        max: upper bound, if any.
        passed: whether the value lies within the bounds.
    """

    on: str
    metric: str
    value: float
    min: float | None
    max: float | None
    passed: bool

    def text(self) -> str:
        """`near drop_rate 0.61 > max 0.5`."""
        bound = f" < min {self.min:g}" if self.min is not None and self.value < self.min else ""
        bound = f" > max {self.max:g}" if self.max is not None and self.value > self.max else bound
        return f"{self.on} {self.metric} {self.value:.6g}{bound}"


def check_gates(plan: Plan, results: Mapping[str, StepResult]) -> list[GateResult]:
    """Measure every gate whose step was run."""
    gates = []
    for check in plan.checks:
        step = plan.outputs[check.on].source if check.on in plan.outputs else check.on
        if step in results:
            value = measure(check, results[step])
            low = check.min is None or value >= check.min
            high = check.max is None or value <= check.max
            gates.append(GateResult(check.on, check.metric, value, check.min, check.max, low and high))
    return gates


def measure(check: CheckSpec, result: StepResult) -> float:
    """The number a gate looks at; rates are shares in [0, 1]."""
    books = result.books
    if check.metric == "rows":
        return float(books.rows_out)
    if check.metric == "drop_rate":
        return sum(books.gone.values()) / books.rows_in if books.rows_in else 0.0
    if check.metric == "duplicate_rate":
        return duplicate_rate(result.shards)
    return null_rate(result.shards)


def duplicate_rate(shards: Sequence[Shard]) -> float:
    """Share of rows that repeat an earlier row in all data columns (128-bit hashes of rows)."""
    seen: set[bytes] = set()
    rows = 0
    for shard in shards:
        frame = _data(shard)
        rows += frame.height
        first = frame.hash_rows(seed=1).to_numpy()
        second = frame.hash_rows(seed=2).to_numpy()
        seen.update(a.tobytes() + b.tobytes() for a, b in zip(first, second, strict=True))
    return (rows - len(seen)) / rows if rows else 0.0


def null_rate(shards: Sequence[Shard]) -> float:
    """Share of null cells in data columns."""
    nulls = cells = 0
    for shard in shards:
        frame = _data(shard)
        nulls += sum(frame.null_count().row(0)) if frame.width else 0
        cells += frame.height * frame.width
    return nulls / cells if cells else 0.0


def _data(shard: Shard) -> pl.DataFrame:
    table = read_shard(shard.path)
    frame = pl.from_arrow(table.drop_columns([c for c in SYSTEM_COLUMNS if c in table.column_names]))
    assert isinstance(frame, pl.DataFrame)
    return frame
