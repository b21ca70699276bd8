"""Estimates before consent: rows after each step, seconds, LLM calls and money.

The cheap part of a plan (no gpu or llm step) is run in memory on a sample spread evenly over each input; pass rates
are carried over to all rows. A step that cannot be run on the sample keeps the rows of its parent and says so.
Duplicates found in a sample understate those in the whole, so inputs of up to `WHOLE_ROWS` rows are taken whole.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from datamill.errors import DatamillError
from datamill.operators.declaration import Bound, Context, Effect, Operator, Params
from datamill.operators.registry import find
from datamill.services.engines.tables import TableDataset, conform
from datamill.services.llm.budget import PICO, Prices
from datamill.services.reading.reader import read_chunk
from datamill.services.reading.source import Chunk, SourceSpec
from datamill.services.records import SYSTEM_COLUMNS
from datamill.workflows.chain import run_operator
from datamill.workflows.decisions import added_columns, apply_decisions, decide
from datamill.workflows.join_step import PARENT, joined_arrow_schema
from datamill.workflows.paths import PathPolicy
from datamill.workflows.plan import Plan, PlanStep
from datamill.workflows.sources import read_source

SAMPLE_ROWS = 2000
WHOLE_ROWS = 20_000
CHARS_PER_TOKEN = 4.0
PROMPT_TOKENS = 220
REPLY_TOKENS = 12


@dataclass(frozen=True)
class StepEstimate:
    """What one step is expected to do.

    Attributes:
        step: step id.
        rows: expected rows after it.
        seconds: expected seconds of computing (one worker).
        llm_calls: expected requests to a language model.
        llm_tokens: expected prompt and completion tokens of them.
        measured: whether it was run on the sample.
        note: what limits the estimate.
    """

    step: str
    rows: int
    seconds: float
    llm_calls: int = 0
    llm_tokens: tuple[int, int] = (0, 0)
    measured: bool = True
    note: str = ""


@dataclass(frozen=True)
class Estimate:
    """An estimate of a plan.

    Attributes:
        steps: one estimate a step, in plan order.
        sample_rows: rows that were looked at.
        seconds: expected seconds of the whole run.
        llm_usd: expected money for LLM steps.
    """

    steps: tuple[StepEstimate, ...]
    sample_rows: int
    seconds: float
    llm_usd: float = 0.0

    def rows(self, step: str) -> int | None:
        """Expected rows after `step`."""
        return next((item.rows for item in self.steps if item.step == step), None)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


@dataclass
class _Sampled:
    table: pa.Table
    rows: float


def estimate_plan(
    plan: Plan, project: Path, allow_paths: Sequence[str] = (), prices: Prices | None = None, sample: int = SAMPLE_ROWS
) -> Estimate:
    """Estimate `plan` by running its cheap part on a sample.

    Args:
        plan: compiled plan.
        project: project folder.
        allow_paths: further paths that may be read.
        prices: what tokens of the LLM endpoint cost; nothing when None.
        sample: rows looked at per input when the input is large.
    """
    estimates, _, looked = _walk(plan, project, allow_paths, sample)
    tokens = [sum(item.llm_tokens[side] for item in estimates) for side in (0, 1)]
    usd = (prices or Prices()).cost(*tokens) / PICO
    return Estimate(tuple(estimates), looked, sum(item.seconds for item in estimates), usd)


def sample_rows(
    plan: Plan, step: str, project: Path, allow_paths: Sequence[str] = (), count: int = 5
) -> tuple[list[dict[str, Any]], int, int]:
    """The first rows a step leaves of the sample, without system columns.

    Returns:
        The rows, the number of rows the step left of the sample, and the number of sampled rows that went in.
        A step that was not run on the sample (gpu, llm) shows the rows that would go in.
    """
    _, state, looked = _walk(plan, project, allow_paths, SAMPLE_ROWS)
    table = state[step].table
    needs = plan.step(step).needs
    before = sum(state[name].table.num_rows for name in needs) if needs else looked
    names = [name for name in table.column_names if name not in SYSTEM_COLUMNS]
    return table.select(names).slice(0, count).to_pylist(), table.num_rows, before


def _walk(
    plan: Plan, project: Path, allow_paths: Sequence[str], sample: int
) -> tuple[list[StepEstimate], dict[str, _Sampled], int]:
    """Run the cheap part on a sample: estimates, the sample after each step, rows looked at."""
    policy = PathPolicy.of(project, allow_paths)
    state: dict[str, _Sampled] = {}
    estimates: list[StepEstimate] = []
    looked = 0
    for step in plan.steps:
        started = time.perf_counter()
        if step.is_source:
            state[step.id] = sampled = _sample_input(plan, step, policy, sample)
            looked += sampled.table.num_rows
            estimates.append(StepEstimate(step.id, round(sampled.rows), time.perf_counter() - started))
            continue
        estimates.append(_estimate_step(plan, step, state, project, started))
    return estimates, state, looked


def _estimate_step(
    plan: Plan, step: PlanStep, state: dict[str, _Sampled], project: Path, started: float
) -> StepEstimate:
    parents = [state[name] for name in step.needs]
    total = sum(parent.rows for parent in parents)
    if step.bound in {Bound.LLM.value, Bound.GPU.value}:
        state[step.id] = _Sampled(parents[0].table, total * _expansion(step))
        calls = round(total * float(step.params.get("n", 1))) if step.bound == Bound.LLM.value else 0
        tokens = _tokens(step, parents[0].table, calls)
        return StepEstimate(step.id, round(state[step.id].rows), 0.0, calls, tokens, False, "not run on the sample")
    try:
        table = _run_on_sample(plan, step, state, project)
    except DatamillError as error:
        state[step.id] = _Sampled(parents[0].table, total)
        return StepEstimate(step.id, round(total), measured=False, seconds=0.0, note=error.issues[0].message)
    looked = sum(parent.table.num_rows for parent in parents)
    scale = total / looked if looked else 0.0
    rows = _scaled_rows(step, parents[0].table, table.num_rows, scale)
    state[step.id] = _Sampled(table, rows)
    return StepEstimate(step.id, round(rows), (time.perf_counter() - started) * max(scale, 1.0))


def _tokens(step: PlanStep, table: pa.Table, calls: int) -> tuple[int, int]:
    """Expected prompt and completion tokens: the text goes in once and comes back about as long."""
    column = str(step.params.get("column", ""))
    if not calls or column not in table.column_names or not table.num_rows:
        return (calls * PROMPT_TOKENS, calls * REPLY_TOKENS)
    chars = sum(len(str(text)) for text in table[column].to_pylist() if text is not None) / table.num_rows
    text = chars / CHARS_PER_TOKEN
    return (round(calls * (PROMPT_TOKENS + text)), round(calls * (REPLY_TOKENS + text)))


def _scaled_rows(step: PlanStep, before: pa.Table, rows: int, scale: float) -> float:
    """Rows after a step on all rows, from `rows` after it on the sample `before`; a fixed number is not scaled up."""
    params = step.params
    if step.operator in {"sample.random", "sample.stratified"} and params.get("n") is not None:
        return min(float(params["n"]), float(before.num_rows) * scale)
    quota = {"filter.topk": params.get("n"), "sample.stratified": params.get("max_per_group")}.get(step.operator)
    if quota is None:
        return rows * scale
    return sum((min(float(quota), size * scale) for size in _group_sizes(step, before)), 0.0)


def _group_sizes(step: PlanStep, before: pa.Table) -> list[int]:
    """Rows of each group the step gives a quota to; rows it leaves out for a missing number do not count."""
    if step.operator == "filter.topk" and step.params["on_null"] == "drop":
        before = before.filter(pc.is_valid(before[step.params["column"]]))
    by = step.params.get("by")
    if not by:
        return [before.num_rows]
    counts: list[int] = before.group_by(list(by)).aggregate([([], "count_all")])["count_all"].to_pylist()
    return counts


def _expansion(step: PlanStep) -> float:
    if step.effect != Effect.EXPAND.value:
        return 1.0
    keep = 1 if step.params.get("keep_original", True) else 0
    return float(step.params.get("n", 1)) + keep


def _run_on_sample(plan: Plan, step: PlanStep, state: Mapping[str, _Sampled], project: Path) -> pa.Table:
    operator = find(step.operator)
    params = operator.params.model_validate(dict(step.params))
    sides = {name: TableDataset.of(state[name].table) for name in step.sides}
    context = Context(step.id, plan.step_seed(step.id), project, None, sides)
    tables = [state[name].table for name in step.needs]
    if operator.is_global:
        decisions, _ = decide(step.operator, step.params, [TableDataset.of(tables[0])], context)
        added = added_columns(decisions, plan.step(step.needs[0]).schema, step.schema)
        return apply_decisions(tables[0], decisions, added).rows
    if operator.effect is Effect.JOIN:
        return _join_samples(operator, params, context, dict(zip(step.needs, tables, strict=True)))
    if operator.prepare is not None:
        resources = operator.prepare(params, context)
        context = Context(step.id, context.seed, project, resources, sides)
    return run_operator(operator, tables[0], params, context).rows


def _join_samples(
    operator: Operator[Any], params: Params, context: Context, tables: Mapping[str, pa.Table]
) -> pa.Table:
    schema = joined_arrow_schema([table.schema for table in tables.values()])
    if operator.prepare is not None:
        inputs = {name: TableDataset.of(table) for name, table in tables.items()}
        prepared = operator.prepare(params, replace(context, inputs=inputs))
        context = replace(context, resources=prepared)
    shaped = {name: conform(table, schema) for name, table in tables.items()}
    named = [table.append_column(PARENT, pa.repeat(pa.scalar(name), table.num_rows)) for name, table in shaped.items()]
    return pa.concat_tables([run_operator(operator, table, params, context).rows for table in named])


def _sample_input(plan: Plan, step: PlanStep, policy: PathPolicy, sample: int) -> _Sampled:
    source, chunks = read_source(step, policy, plan.run.shard_rows)
    newlines = sum(chunk.num_newlines for chunk in chunks)
    schema = step.arrow
    assert schema is not None
    if newlines <= WHOLE_ROWS:
        tables = [batch.rows for chunk in chunks for batch in read_chunk(source, chunk, schema)]
        table = pa.concat_tables(tables) if tables else pa.table({})
        return _Sampled(table, float(table.num_rows))
    return _spread_sample(source, chunks, schema, sample)


def _spread_sample(source: SourceSpec, chunks: Sequence[Chunk], schema: pa.Schema, sample: int) -> _Sampled:
    """The first rows of evenly spread chunks, scaled by the bytes they came from."""
    chosen = chunks[:: max(1, len(chunks) // 8)]
    tables, per_chunk = [], max(1, sample // len(chosen))
    density = 0.0
    for chunk in chosen:
        batch = next(iter(read_chunk(source, chunk, schema)), None)
        if batch is not None:
            tables.append(batch.rows.slice(0, per_chunk))
            density += chunk.num_newlines / max(1, chunk.end - chunk.start)
    table = pa.concat_tables(tables) if tables else pa.table({})
    size = sum(chunk.end - chunk.start for chunk in chunks)
    return _Sampled(table, density / len(chosen) * size if density else float(table.num_rows))
