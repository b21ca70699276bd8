"""From an approved plan to a finished run: lock, record, run, outputs, gates, ledger files, report.

`run_plan` is the one door: command line, chat and Python API all go through it, and it asks for the approval of the
plan's digest before anything else. Of several processes that ask for the same plan at once one runs it.
"""

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from datamill.errors import DatamillError, ExitCode, Issue
from datamill.services.engines.choose import EngineChoice, open_engine
from datamill.services.engines.protocol import Engine
from datamill.services.storage.atomic import remove_leftovers
from datamill.services.storage.units import UnitStore
from datamill.workflows.approval import require
from datamill.workflows.check_steps import content_digest
from datamill.workflows.events import EventStream, Listener, silent
from datamill.workflows.gates import GateResult, check_gates
from datamill.workflows.ledger import Books
from datamill.workflows.llm_steps import check_llm, llm_steps, service_settings, usage_of
from datamill.workflows.lock import run_lock
from datamill.workflows.outputs import WrittenOutput, check_targets, write_output
from datamill.workflows.paths import STATE_FOLDER, PathPolicy
from datamill.workflows.plan import Plan
from datamill.workflows.recheck import recheck_paths
from datamill.workflows.registration import register_outputs
from datamill.workflows.report import write_report
from datamill.workflows.run_files import write_run_files
from datamill.workflows.run_record import RUNS, RunRecord, finished, new_run, point_latest, unfinished
from datamill.workflows.runner import InterruptedRunError, Runner, RunOptions, StepResult
from datamill.workflows.span import check_span
from datamill.workflows.timing import time_spent

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
        wait: whether to wait while another process runs this plan, and take its result; refused at once when False.
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
    wait: bool = False


@dataclass(frozen=True)
class RunResult:
    """A finished run.

    Attributes:
        run_id: name of the run.
        folder: its folder.
        status: `done`, `gate_failed`, or `partial` when the run was to stop before the end.
        rows_in: rows (and quarantined records) of all inputs.
        rows_out: rows of all outputs.
        outputs: files written.
        gates: gates measured.
        steps: ledger counters by step.
        seconds: wall time of this attempt.
        resumed: whether an unfinished run was continued.
        waited: whether another process ran the plan while this one waited for it.
        spent: wall seconds by kind, see `timing.KINDS`.
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
    waited: bool = False
    spent: Mapping[str, float] = field(default_factory=dict)

    @property
    def exit_code(self) -> ExitCode:
        """5 when a gate failed."""
        return ExitCode.GATE_FAILED if self.status == "gate_failed" else ExitCode.OK


def make_engine(request: RunRequest, plan: Plan) -> Engine:
    """The engine a request names, reached as the plan's `run` block says."""
    ray, spark = plan.run.ray, plan.run.spark
    scratch = None if request.executor == "local" else request.project / STATE_FOLDER  # where workers read units
    return open_engine(EngineChoice(request.executor, request.workers, ray.address, spark.master, spark.conf, scratch))


def run_plan(plan: Plan, request: RunRequest) -> RunResult:
    """Run an approved plan, or go on with its unfinished run.

    Raises:
        DatamillError: exit 2 for options that contradict each other, 4 without approval, 6 without an endpoint that a
            step needs, 7 when the expected cost passes the budget; otherwise whatever stopped the run, which stays
            resumable. With `keep_going` that is `DM-RUN-002`, which names every failed step.
    """
    check_span(plan, request.options)
    approval = require(request.project, plan, f"{request.command} --approve {plan.short}")
    check_llm(plan, request.project, request.allow_paths, request.budget_usd)
    recheck_paths(plan, PathPolicy.of(request.project, request.allow_paths))
    recheck(plan, PathPolicy.of(request.project, request.allow_paths))
    before = finished(request.project, plan.digest)
    with run_lock(request.project, plan.digest, partial(_say_waiting, plan, request) if request.wait else None):
        meanwhile = _run_meanwhile(plan, request, before)
        if meanwhile is not None:
            return meanwhile
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
            _note_stop(record, events, error)
            raise
        except BrokenPipeError:  # who read what this run prints has gone: nothing to tell, and nobody to tell it to
            raise
        except OSError as error:
            trouble = _storage_trouble(error)
            with suppress(OSError):  # a full disk may not take the note either; the run is resumable without it
                _note_stop(record, events, trouble)
            raise trouble from error
        except KeyboardInterrupt:
            record.update(status="interrupted")
            events.emit("run_stopped", status="interrupted")
            raise


def _note_stop(record: RunRecord, events: EventStream, error: DatamillError) -> None:
    status = "interrupted" if isinstance(error, InterruptedRunError) else "failed"
    record.update(status=status, error=[issue.to_dict() for issue in error.issues])
    events.emit("run_stopped", status=status, code=error.code, message=str(error))


def _storage_trouble(error: OSError) -> DatamillError:
    """`DM-RUN-011`: a disk that is full, a folder that went away, in this process or on a worker."""
    where = error.filename2 or error.filename
    return DatamillError(
        "DM-RUN-011", f"the run could not read or write: {error.strerror or error}", file=str(where) if where else None,
        fix="free space or give access, then run the same command again: finished units are kept",
    )  # fmt: skip


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
    record.update(status="running", pid=os.getpid(), until=request.options.until, limit=request.options.limit, error=[])
    policy = PathPolicy.of(request.project, request.allow_paths)
    store = UnitStore(request.project / STATE_FOLDER / STORE)
    engine = make_engine(request, plan)
    ready = time.perf_counter()
    facts = {"executor": request.executor, "workers": engine.workers, "links": dict(engine.links)}
    events.emit("engine_ready", **facts, seconds=round(ready - started, 3))
    try:
        runner = Runner(plan, engine, store, policy, events, _options(plan, request, record))
        results = runner.run()
    finally:
        engine.close()
        if llm_steps(plan):
            record.update(llm=usage_of(record.folder))
    until = request.options.until
    writing = time.perf_counter()
    outputs = () if until is not None else _write_outputs(plan, request, policy, results, events)
    spent = time_spent(plan, results, ready - started, time.perf_counter() - writing)
    gates = tuple(check_gates(plan, results))
    whole = "partial" if until is not None else "done"
    failure = _failures(runner, outputs) if runner.failures else None
    status = "failed" if failure else whole if all(gate.passed for gate in gates) else "gate_failed"
    seconds = time.perf_counter() - started
    books = {name: result.books.flat() for name, result in results.items()}
    state = record.update(
        status=status, finished=datetime.now(UTC).isoformat(timespec="seconds"), seconds=round(seconds, 3), steps=books,
        outputs=[asdict(output) for output in outputs], gates=[asdict(gate) for gate in gates],
        spent=spent, engine=facts, error=[issue.to_dict() for issue in failure.issues] if failure else [],
    )  # fmt: skip
    write_run_files(record, plan, results, state, request.project)
    write_report(request.project, record, plan)
    if failure is not None:
        raise failure
    result = _result(plan, record, state, seconds, resumed=resumed)
    events.emit("run_done", status=status, rows_in=result.rows_in, rows_out=result.rows_out, seconds=round(seconds, 3))
    return result


def _result(
    plan: Plan, record: RunRecord, state: Mapping[str, Any], seconds: float, *, resumed: bool, waited: bool = False
) -> RunResult:
    """What the record of a finished run says."""
    steps = state["steps"]
    outputs = tuple(WrittenOutput(**output) for output in state["outputs"])
    gates = tuple(GateResult(**gate) for gate in state["gates"])
    rows_in = sum(Books.from_flat(steps[s.id]).rows_in for s in plan.steps if s.is_source and s.id in steps)
    rows_out = sum(output.rows for output in outputs)
    return RunResult(
        record.id, record.folder, state["status"], rows_in, rows_out, outputs, gates, steps, seconds, resumed, waited,
        state.get("spent", {}),
    )  # fmt: skip


def _failures(runner: Runner, outputs: Sequence[WrittenOutput]) -> DatamillError:
    """`DM-RUN-002`: all that went wrong in a run that kept going, and what it has done nevertheless."""
    failed = ", ".join(f"`{name}`" for name in runner.failures)
    skipped = f"; not run for want of them: {', '.join(runner.not_run)}" if runner.not_run else ""
    message = f"{len(runner.failures)} of {len(runner.plan.steps)} steps failed: {failed}{skipped}"
    context = {
        "failed": list(runner.failures), "not_run": list(runner.not_run), "outputs": [file.path for file in outputs],
    }  # fmt: skip
    fix = "correct the cause and run the same command again; finished steps are reused"
    issues = [Issue("DM-RUN-002", message, fix=fix, context=context)]
    for name, error in runner.failures.items():
        issues += [replace(issue, step=issue.step or name) for issue in error.issues]
    return DatamillError("DM-RUN-002", message, issues=issues)


def _say_waiting(plan: Plan, request: RunRequest, owner: str) -> None:
    EventStream(None, request.listener).emit("run_waiting", owner=owner, digest=plan.digest)


def _run_meanwhile(plan: Plan, request: RunRequest, before: RunRecord | None) -> RunResult | None:
    """The result of a run that another process finished since this one was asked for, if it is what was asked.

    Args:
        plan: the plan.
        request: what was asked.
        before: the finished run of the plan when it was asked.
    """
    options = request.options
    whole = options.reuse and options.from_step is None and options.until is None and options.limit is None
    record = finished(request.project, plan.digest) if request.wait and whole else None
    if record is None or record == before:
        return None
    state = record.state()
    if state.get("until") is not None or state.get("limit") is not None:
        return None
    return _result(plan, record, state, state["seconds"], resumed=False, waited=True)


def _options(plan: Plan, request: RunRequest, record: RunRecord) -> RunOptions:
    """The options with what LLM steps need; a caller's own settings stand."""
    services = service_settings(plan, request.project, record.folder, request.budget_usd)
    return replace(request.options, settings={**services, **request.options.settings})


def _write_outputs(
    plan: Plan, request: RunRequest, policy: PathPolicy, results: Mapping[str, StepResult], events: EventStream
) -> tuple[WrittenOutput, ...]:
    written = []
    for name, output in plan.outputs.items():
        result = results.get(output.source)
        if result is None:  # the run keeps going without what it needs
            continue
        file = write_output(request.project, name, output, result.shards, plan)
        events.emit("output_written", output=name, path=output.path, rows=file.rows, reused=file.reused)
        written.append(file)
    register_outputs(policy, plan, written, results, request.command)
    return tuple(written)
