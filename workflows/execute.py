"""From an approved plan to a finished run: lock, record, run, outputs, gates, ledger files, report.

`run_plan` is the one door: command line, chat and Python API all go through it, and it asks for the approval of the
plan's digest before anything else.
"""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from datamill.errors import DatamillError, ExitCode
from datamill.services.engines.choose import EngineChoice, open_engine
from datamill.services.engines.protocol import Engine
from datamill.services.storage.atomic import remove_leftovers
from datamill.services.storage.units import UnitStore
from datamill.workflows.approval import require
from datamill.workflows.check_steps import content_digest
from datamill.workflows.events import EventStream, Listener, silent
from datamill.workflows.gates import GateResult, check_gates
from datamill.workflows.llm_steps import check_llm, llm_steps, service_settings, usage_of
from datamill.workflows.lock import run_lock
from datamill.workflows.outputs import WrittenOutput, check_targets, write_output
from datamill.workflows.paths import STATE_FOLDER, PathPolicy
from datamill.workflows.plan import Plan
from datamill.workflows.recheck import recheck_paths
from datamill.workflows.registration import register_outputs
from datamill.workflows.report import write_report
from datamill.workflows.run_files import write_run_files
from datamill.workflows.run_record import RUNS, RunRecord, new_run, point_latest, unfinished
from datamill.workflows.runner import InterruptedRunError, Runner, RunOptions, StepResult

STORE = "store"


@dataclass(frozen=True)
class RunRequest:
    """How a plan is to be run.

    Attributes:
        project: project folder.
        executor: `local`, `ray` or `spark`.
        workers: worker processes, the number of cores when None.
        options: see `RunOptions`.
        allow_paths: further paths that may be read.
        overwrite: the person's yes to replacing files datamill did not write.
        command: the command that would run this again.
        listener: gets every event.
        asked: the person's words, kept in the run's record.
        history: how the plan came about: `turns`, `changes` since the first draft, `planner` and `planner_cost`.
        budget_usd: LLM money the person allowed for this run; the plan's budget when None.
    """

    project: Path
    executor: str = "local"
    workers: int | None = None
    options: RunOptions = field(default_factory=RunOptions)
    allow_paths: tuple[str, ...] = ()
    overwrite: bool = False
    command: str = "datamill run"
    listener: Listener = silent
    asked: str = ""
    history: Mapping[str, Any] = field(default_factory=dict)
    budget_usd: float | None = None


@dataclass(frozen=True)
class RunResult:
    """A finished run.

    Attributes:
        run_id: name of the run.
        folder: its folder.
        status: `done` or `gate_failed`.
        rows_in: rows (and quarantined records) of all inputs.
        rows_out: rows of all outputs.
        outputs: files written.
        gates: gates measured.
        steps: ledger counters by step.
        seconds: wall time of this attempt.
        resumed: whether an unfinished run was continued.
    """

    run_id: str
    folder: Path
    status: str
    rows_in: int
    rows_out: int
    outputs: tuple[WrittenOutput, ...]
    gates: tuple[GateResult, ...]
    steps: Mapping[str, Mapping[str, int]]
    seconds: float
    resumed: bool

    @property
    def exit_code(self) -> ExitCode:
        """5 when a gate failed."""
        return ExitCode.OK if self.status == "done" else ExitCode.GATE_FAILED


def make_engine(request: RunRequest, plan: Plan) -> Engine:
    """The engine a request names, reached as the plan's `run` block says."""
    ray, spark = plan.run.ray, plan.run.spark
    scratch = None if request.executor == "local" else request.project / STATE_FOLDER  # where workers read units
    return open_engine(EngineChoice(request.executor, request.workers, ray.address, spark.master, spark.conf, scratch))


def run_plan(plan: Plan, request: RunRequest) -> RunResult:
    """Run an approved plan, or go on with its unfinished run.

    Raises:
        DatamillError: exit 4 without approval, 6 without an endpoint that a step needs, 7 when the expected cost
            passes the budget; otherwise whatever stopped the run, which stays resumable.
    """
    approval = require(request.project, plan, f"{request.command} --approve {plan.short}")
    check_llm(plan, request.project, request.allow_paths, request.budget_usd)
    recheck_paths(plan, PathPolicy.of(request.project, request.allow_paths))
    recheck(plan, PathPolicy.of(request.project, request.allow_paths))
    with run_lock(request.project, plan.digest):
        check_targets(request.project, plan, request.overwrite)
        previous = unfinished(request.project, plan.digest)
        record = previous or new_run(
            request.project, plan, asdict(approval), request.command, request.asked, request.history
        )
        point_latest(request.project, record.folder)
        _remove_leftovers(request.project, plan)
        events = EventStream(record.folder / "events.jsonl", request.listener)
        events.emit("run_started", run=record.id, digest=plan.digest, resumed=previous is not None)
        try:
            return _run(plan, request, record, events, resumed=previous is not None)
        except DatamillError as error:
            status = "interrupted" if isinstance(error, InterruptedRunError) else "failed"
            record.update(status=status, error=[issue.to_dict() for issue in error.issues])
            events.emit("run_stopped", status=status, code=error.code, message=str(error))
            raise
        except KeyboardInterrupt:
            record.update(status="interrupted")
            events.emit("run_stopped", status="interrupted")
            raise


def recheck(plan: Plan, policy: PathPolicy) -> None:
    """What was allowed when the plan was compiled must be allowed, and the same, now.

    Raises:
        DatamillError: `DM-PATH-...` for a path that may no longer be touched, `DM-RUN-010` for a file among the
            parameters whose content changed.
    """
    sources = [policy.resolve(str(step.params["path"])) for step in plan.steps if step.is_source]
    issues = [policy.check_write(output.path, name, sources) for name, output in plan.outputs.items()]
    for step in plan.steps:
        paths = [str(step.params["path"])] if step.is_source else list(step.files)
        issues += [policy.check_read(path, step.id) for path in paths]
    found = [issue for issue in issues if issue is not None]
    if found:
        raise DatamillError(found[0].code, found[0].message, exit_code=ExitCode.INVALID, issues=found)
    for step in (step for step in plan.steps if not step.is_source):
        for path, digest in step.files.items():
            target = policy.resolve(path)
            if not target.exists() or content_digest(target) != digest:
                message = f"`{path}` has changed since the plan was made"
                raise DatamillError("DM-RUN-010", message, step=step.id, fix="review and approve the plan again")


def _remove_leftovers(project: Path, plan: Plan) -> None:
    """Clear what killed runs left half written, wherever a run writes."""
    remove_leftovers(project / STATE_FOLDER)
    remove_leftovers(project / RUNS)
    for folder in {(project / output.path).parent for output in plan.outputs.values()}:
        remove_leftovers(folder)


def _run(plan: Plan, request: RunRequest, record: RunRecord, events: EventStream, *, resumed: bool) -> RunResult:
    started = time.perf_counter()
    record.update(status="running")
    policy = PathPolicy.of(request.project, request.allow_paths)
    store = UnitStore(request.project / STATE_FOLDER / STORE)
    engine = make_engine(request, plan)
    try:
        runner = Runner(plan, engine, store, policy, events, _options(plan, request, record))
        results = runner.run()
    finally:
        engine.close()
        if llm_steps(plan):
            record.update(llm=usage_of(record.folder))
    partial = request.options.until is not None
    outputs = () if partial else _write_outputs(plan, request, policy, results, events)
    gates = tuple(check_gates(plan, results))
    failed = [gate for gate in gates if not gate.passed]
    status = "gate_failed" if failed else "partial" if partial else "done"
    seconds = time.perf_counter() - started
    books = {name: result.books.flat() for name, result in results.items()}
    state = record.update(
        status=status, finished=datetime.now(UTC).isoformat(timespec="seconds"), seconds=round(seconds, 3), steps=books,
        outputs=[asdict(output) for output in outputs], gates=[asdict(gate) for gate in gates],
    )  # fmt: skip
    write_run_files(record, plan, results, state, request.project)
    write_report(request.project, record, plan)
    rows_in = sum(results[s.id].books.rows_in for s in plan.steps if s.is_source and s.id in results)
    rows_out = sum(output.rows for output in outputs)
    events.emit("run_done", status=status, rows_in=rows_in, rows_out=rows_out, seconds=round(seconds, 3))
    return RunResult(
        record.id, record.folder, status, rows_in, rows_out, outputs, gates, books, seconds, resumed
    )  # fmt: skip


def _options(plan: Plan, request: RunRequest, record: RunRecord) -> RunOptions:
    """The options with what LLM steps need; a caller's own settings stand."""
    services = service_settings(plan, request.project, record.folder, request.budget_usd)
    return replace(request.options, settings={**services, **request.options.settings})


def _write_outputs(
    plan: Plan, request: RunRequest, policy: PathPolicy, results: Mapping[str, StepResult], events: EventStream
) -> tuple[WrittenOutput, ...]:
    written = []
    for name, output in plan.outputs.items():
        result = results[output.source]
        file = write_output(request.project, name, output, result.shards, plan)
        events.emit("output_written", output=name, path=output.path, rows=file.rows, reused=file.reused)
        written.append(file)
    register_outputs(policy, plan, written, results, request.command)
    return tuple(written)
