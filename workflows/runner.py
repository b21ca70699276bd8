"""Carries out an approved plan: step by step, shard by shard, every unit durable as soon as it is computed.

The same command after a crash finds the finished units by content and computes only the rest. Books of every step
are checked as they are made; a failed check, a failed operator or an interrupt leaves the run resumable.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from datamill.errors import DatamillError, ExitCode
from datamill.operators.declaration import Context, Effect
from datamill.operators.registry import find
from datamill.services.engines.protocol import Engine, Shard
from datamill.services.engines.shards import read_shard
from datamill.services.storage.units import UnitStore, unit_key
from datamill.workflows.chain import ChainTask, StepCall, UnitReport
from datamill.workflows.decisions import DecisionTask, added_columns, decide, decision_unit
from datamill.workflows.events import EventStream
from datamill.workflows.join_step import JoinTask
from datamill.workflows.ledger import Books
from datamill.workflows.paths import PathPolicy
from datamill.workflows.plan import Plan, PlanStep, sha256
from datamill.workflows.read_step import read_input


@dataclass
class StepResult:
    """What a step left behind.

    Attributes:
        shards: surviving rows, in order.
        books: ledger counters.
        fates: files with the fates of each shard.
        reused: shards that were found and not computed.
        seconds: wall time spent on it in this run; steps that ran as one chain share its time by their work.
        work: seconds of computing in its units, in whichever run that was.
        stats: statistics a report step made.
    """

    shards: list[Shard] = field(default_factory=list)
    books: Books = field(default_factory=Books)
    fates: list[Path] = field(default_factory=list)
    reused: int = 0
    seconds: float = 0.0
    work: float = 0.0
    stats: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RunOptions:
    """How a plan is carried out; nothing here changes its result.

    Attributes:
        reuse: whether finished units are used (`--fresh` turns it off).
        until: last step to run.
        from_step: first step to compute anew, with everything below it; what stands above is reused.
        keep_going: whether steps that do not depend on a failed one still run. Steps then run one by one: each reads
            the shards its parent wrote, where otherwise a chain of batch steps keeps them in memory.
        limit: rows read from each input at most.
        deadline: `time.monotonic()` value after which the run stops, resumable.
        settings: services for LLM operators.
    """

    reuse: bool = True
    until: str | None = None
    from_step: str | None = None
    keep_going: bool = False
    limit: int | None = None
    deadline: float | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


class InterruptedRunError(DatamillError):
    """The person pressed Ctrl-C; finished units are kept."""

    def __init__(self, step: str) -> None:
        message = f"interrupted in `{step}`; finished units are kept"
        super().__init__("DM-RUN-130", message, exit_code=ExitCode.INTERRUPTED, step=step)
        self._step = step

    def __reduce__(self) -> tuple[Any, ...]:
        return InterruptedRunError, (self._step,)


class Runner:
    """One pass over a plan.

    Args:
        plan: the compiled plan.
        engine: where the work is done.
        store: committed units.
        policy: which paths may be touched.
        events: where news goes.
        options: see `RunOptions`.

    Attributes:
        results: what each step left behind, by step id.
        failures: errors of steps that failed, by step id; filled with `keep_going` alone.
        not_run: steps left out because something they need failed.
    """

    def __init__(
        self, plan: Plan, engine: Engine, store: UnitStore, policy: PathPolicy, events: EventStream, options: RunOptions
    ) -> None:
        self.plan = plan
        self.engine = engine
        self.store = store
        self.policy = policy
        self.events = events
        self.options = options
        self.results: dict[str, StepResult] = {}
        self.failures: dict[str, DatamillError] = {}
        self.not_run: list[str] = []
        self._anew = plan.downstream(options.from_step) if options.from_step else frozenset()
        self.stopping = threading.Event()

    def run(self) -> dict[str, StepResult]:
        """Carry out all steps; results by step id.

        Raises:
            DatamillError: the first failure, after events are written; `InterruptedRunError` after Ctrl-C. With
                `keep_going` failures are collected in `failures`, and only a spent budget or Ctrl-C stops the run.
        """
        with self._graceful_interrupt():
            for chain in self._chains():
                if self.options.keep_going:
                    self._attempt(chain[0])
                else:
                    self._carry_out(chain)
        return self.results

    def _carry_out(self, chain: Sequence[PlanStep]) -> None:
        started = time.perf_counter()
        self.events.emit("step_started", steps=[step.id for step in chain])
        self._dispatch(chain)
        seconds = time.perf_counter() - started
        for step, share in zip(chain, self._shares(chain), strict=True):
            self._finish(step, seconds * share)

    def _attempt(self, step: PlanStep) -> None:
        """Carry out a step unless something it needs has failed; its own failure is noted, not raised."""
        missing = [name for name in (*step.needs, *step.sides) if name in self.failures or name in self.not_run]
        if missing:
            self.not_run.append(step.id)
            self.events.emit("step_skipped", step=step.id, needs=missing)
            return
        try:
            self._carry_out([step])
        except DatamillError as error:
            if error.exit_code in {ExitCode.INTERRUPTED, ExitCode.BUDGET_EXCEEDED}:
                raise
            self.results.pop(step.id, None)  # an input with too many broken records has left some rows already
            self.failures[step.id] = error
            self.events.emit("step_failed", step=step.id, code=error.code, message=error.issues[0].message)

    def reuses(self, step: PlanStep) -> bool:
        """Whether finished units of `step` may be used."""
        return self.options.reuse and step.id not in self._anew

    def _chains(self) -> Iterator[list[PlanStep]]:
        """Group batch steps whose only consumer is the next batch step; other steps stand alone."""
        wanted = self._wanted()
        chain: list[PlanStep] = []
        for step in self.plan.steps:
            if step.id not in wanted:
                continue
            if chain and not self._continues(chain[-1], step):
                yield chain
                chain = []
            chain.append(step)
        if chain:
            yield chain

    def _continues(self, before: PlanStep, step: PlanStep) -> bool:
        batch = {Effect.MAP.value, Effect.FILTER.value, Effect.EXPAND.value}
        llm = "llm" in {before.bound, step.bound}
        if self.options.keep_going or self.reuses(before) != self.reuses(step):
            return False
        return {before.effect, step.effect} <= batch and step.needs == (before.id,) and not llm

    def _wanted(self) -> frozenset[str]:
        if self.options.until is None:
            return frozenset(step.id for step in self.plan.steps)
        return self.plan.upstream(self.options.until)

    def _dispatch(self, chain: Sequence[PlanStep]) -> None:
        kind = chain[0].effect
        if kind == Effect.SOURCE:
            read_input(self, chain[0])
        elif kind in {Effect.GLOBAL, Effect.AGGREGATE}:
            self._run_global(chain[0])
        elif kind == Effect.JOIN:
            self._run_join(chain[0])
        else:
            self._run_chain(chain)

    def _run_chain(self, chain: Sequence[PlanStep]) -> None:
        calls = tuple(self.call(step) for step in chain)
        shards = self.results[chain[0].needs[0]].shards
        task = ChainTask(self.store, calls, self.reuses(chain[0]))
        self._collect(chain, task, shards, parallel=chain[0].bound != "llm")

    def _run_global(self, step: PlanStep) -> None:
        parent = self.results[step.needs[0]]
        sides = {name: self._dataset(name) for name in step.sides}
        data = self._dataset(step.needs[0])
        side_digests = [side.digest for side in sides.values()]
        key = unit_key(step.key(self.plan.step_seed(step.id)), data.digest, *side_digests)
        unit = self.store.load(key) if self.reuses(step) else None
        if unit is None:
            started = time.perf_counter()
            context = self.context(step, sides)
            decisions, stats = decide(step.operator, step.params, [data], context)
            unit = decision_unit(self.store, key, decisions, stats, time.perf_counter() - started)
        decisions = unit.rows()
        added = added_columns(decisions, self.plan.step(step.needs[0]).schema, step.schema)
        task = DecisionTask(self.store, step.id, key, unit.rows_path, added, self.reuses(step))
        self._collect([step], task, parent.shards, parallel=decisions.num_rows > 50_000)
        self.results[step.id].stats = unit.extra

    def _run_join(self, step: PlanStep) -> None:
        parents = [(name, self.results[name].shards) for name in step.needs]
        items = [shard for _, shards in parents for shard in shards]
        names = [name for name, shards in parents for _ in shards]
        task = JoinTask(
            self.store, self.call(step), tuple(names), tuple(items), self._arrow_schema(step), self.reuses(step)
        )
        self._collect([step], task, items, parallel=True)

    def _arrow_schema(self, step: PlanStep) -> pa.Schema:
        from datamill.workflows.join_step import joined_arrow_schema

        return joined_arrow_schema([self._dataset(name).schema for name in step.needs])

    def _dataset(self, name: str) -> Any:
        shards = self.results[name].shards
        schema = read_shard(shards[0].path).schema if shards else pa.schema([])
        return self.engine.dataset(shards, schema)

    def call(self, step: PlanStep) -> StepCall:
        """The call that workers get for a batch step."""
        operator = find(step.operator)
        resources = None
        if operator.prepare is not None:
            params = operator.params.model_validate(dict(step.params))
            names = (*step.needs, *step.sides) if operator.effect is Effect.JOIN else step.sides
            value = operator.prepare(params, self.context(step, {name: self._dataset(name) for name in names}))
            resources = self.engine.broadcast(value, step.id)
        seed = self.plan.step_seed(step.id)
        return StepCall(
            step.id, step.operator, step.params, self._key(step, seed), seed, step.on_error, self.policy.project,
            resources, self.options.settings,
        )  # fmt: skip

    def _key(self, step: PlanStep, seed: int) -> str:
        """Content key of a step; the model that answers is part of what an LLM step does."""
        key = step.key(seed)
        if step.bound != "llm":
            return key
        service = self.options.settings.get("llm") or {}
        return sha256([key, step.params.get("model") or service.get("model")])

    def context(self, step: PlanStep, sides: Mapping[str, Any]) -> Context:
        """Context of an operator that runs on the driver."""
        seed = self.plan.step_seed(step.id)
        return Context(step.id, seed, self.policy.project, None, sides, self.options.settings)

    def _collect(
        self,
        chain: Sequence[PlanStep],
        task: Callable[[tuple[int, Shard]], list[UnitReport]],
        shards: Sequence[Shard],
        *,
        parallel: bool,
    ) -> None:
        reports: dict[str, dict[int, UnitReport]] = {step.id: {} for step in chain}
        bound = _bound(chain)
        for _, done in self.engine.map_units(task, list(enumerate(shards)), parallel=parallel, bound=bound):
            for report in done:
                reports[report.step][report.shard] = report
                self._progress(report, len(shards))
            self.check_stop(chain[-1].id)
        for step in chain:
            self.add_reports(step.id, [reports[step.id][number] for number in sorted(reports[step.id])])

    def add_reports(self, step: str, reports: Sequence[UnitReport]) -> None:
        """Make the units of a step its result."""
        result = self.results.setdefault(step, StepResult())
        for report in reports:
            result.shards.append(report.handle)
            result.books += Books.from_flat(report.unit.counts)
            result.fates.append(report.unit.fates_path)
            result.reused += report.reused
            result.work += report.unit.seconds

    def _progress(self, report: UnitReport, total: int) -> None:
        facts = {"shard": report.shard, "of": total, "reused": report.reused, "rows": report.unit.num_rows}
        self.events.emit("unit_done", step=report.step, key=report.unit.key, **facts)

    def check_stop(self, step: str) -> None:
        """Stop between units when asked to, or when the time is up."""
        if self.stopping.is_set():
            raise InterruptedRunError(step)
        if self.options.deadline is not None and time.monotonic() > self.options.deadline:
            message = f"the wall clock budget ended in `{step}`; finished units are kept"
            raise DatamillError("DM-RUN-007", message, exit_code=ExitCode.BUDGET_EXCEEDED, step=step)

    def _shares(self, chain: Sequence[PlanStep]) -> list[float]:
        work = [self.results[step.id].work if step.id in self.results else 0.0 for step in chain]
        total = sum(work)
        return [part / total for part in work] if total > 0 else [1 / len(chain)] * len(chain)

    def _finish(self, step: PlanStep, seconds: float) -> None:
        result = self.results.setdefault(step.id, StepResult())
        result.seconds = seconds
        self.events.emit(
            "step_done", step=step.id, operator=step.operator, seconds=round(seconds, 3), reused=result.reused,
            shards=len(result.shards), books=result.books.flat(),
        )  # fmt: skip

    @contextmanager
    def _graceful_interrupt(self) -> Iterator[None]:
        """First Ctrl-C: stop after the units in hand. Second: now."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def on_signal(_number: int, _frame: Any) -> None:
            if self.stopping.is_set():
                raise KeyboardInterrupt
            self.stopping.set()
            self.events.emit("stopping", message="stopping after the units in hand; press again to stop now")

        before = signal.signal(signal.SIGINT, on_signal)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


def _bound(chain: Sequence[PlanStep]) -> str:
    """What limits a chain that runs as one task: the scarcest of what its steps need."""
    bounds = {step.bound for step in chain}
    return next((bound for bound in ("gpu", "cpu") if bound in bounds), "io")
