"""`datamill run`: carry out an approved plan."""

import time
from pathlib import Path
from typing import Annotated

import typer

from datamill.cli.session import Session
from datamill.errors import DatamillError, ExitCode


def register(app: typer.Typer) -> None:
    """Add the command to the tree."""
    app.command("run")(run)


def run(
    context: typer.Context,
    file: Annotated[str, typer.Argument(help="workflow file, run id or @last")],
    dry_run: Annotated[bool, typer.Option("-n", "--dry-run", help="plan and estimate, run nothing")] = False,
    executor: Annotated[str | None, typer.Option("-e", "--executor", help="local, ray or spark")] = None,
    workers: Annotated[int | None, typer.Option("-j", "--workers", min=1, help="worker processes")] = None,
    sets: Annotated[list[str] | None, typer.Option("--set", help="name=value, such as params.min_words=50")] = None,
    until: Annotated[str | None, typer.Option("--until", help="stop after this step")] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="read at most so many rows an input")] = None,
    fresh: Annotated[bool, typer.Option("--fresh/--resume", help="compute everything anew")] = False,
    approve: Annotated[str | None, typer.Option("--approve", help="digest of the plan you have reviewed")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace output files datamill did not write")] = False,
    json_stream: Annotated[bool, typer.Option("--json-stream", help="events as JSON lines on stdout")] = False,
) -> int:
    """Run an approved plan; the same command again resumes it and says what it reused."""
    session: Session = context.obj
    from datamill.cli.values import load_plan, plan_file

    plan = load_plan(session, file, sets or ())
    if until is not None and until not in {step.id for step in plan.steps}:
        from datamill.errors import nearest

        raise DatamillError(
            "DM-CLI-003", f"there is no step `{until}`", exit_code=ExitCode.USAGE,
            nearest=nearest(until, [step.id for step in plan.steps]),
        )  # fmt: skip
    if dry_run:
        return _dry_run(session, plan)
    from datamill.workflows.approval import approve as record_approval
    from datamill.workflows.approval import check_prefix

    if approve is not None:
        check_prefix(plan, approve)
        record_approval(session.project, plan, "flag --approve")
    shown = _shown(plan_file(session, file), session.project)
    command = " ".join(["datamill run", shown, *(f"--set {pair}" for pair in sets or ())])
    return execute(
        session, plan, command, executor, workers, _options(plan, fresh, until, limit), overwrite, json_stream
    )


def _options(plan: object, fresh: bool, until: str | None, limit: int | None) -> object:
    from datamill.workflows.plan import Plan
    from datamill.workflows.runner import RunOptions

    assert isinstance(plan, Plan)
    minutes = plan.run.budget.wall_minutes
    deadline = None if minutes is None else time.monotonic() + 60 * minutes
    return RunOptions(reuse=not fresh, until=until, limit=limit, deadline=deadline)


def execute(
    session: Session,
    plan: object,
    command: str,
    executor: str | None,
    workers: int | None,
    options: object,
    overwrite: bool,
    json_stream: bool,
) -> int:
    """Run a plan with progress on stderr and the result on stdout; returns the exit code."""
    from datamill.cli.progress import ProgressLines
    from datamill.settings import resolve
    from datamill.workflows.execute import RunRequest, run_plan
    from datamill.workflows.plan import Plan
    from datamill.workflows.runner import RunOptions

    assert isinstance(plan, Plan)
    assert isinstance(options, RunOptions)
    settings = resolve(session.project).settings
    request = RunRequest(
        session.project, executor or plan.run.executor, workers or plan.run.workers or settings.run.workers, options,
        settings.allow_paths, overwrite, command, ProgressLines(session, json_stream),
    )  # fmt: skip
    result = run_plan(plan, request)
    session.say(_summary(result))
    session.result(_json(result))
    return result.exit_code


def _dry_run(session: Session, plan: object) -> int:
    from datamill.cli.preview import plan_preview
    from datamill.settings import resolve
    from datamill.workflows.estimate import estimate_plan
    from datamill.workflows.plan import Plan

    assert isinstance(plan, Plan)
    estimate = estimate_plan(plan, session.project, resolve(session.project).settings.allow_paths)
    session.result({"plan": plan.to_dict(), "estimate": estimate.to_dict()}, plan_preview(plan, estimate))
    session.say("nothing was started (dry run)")
    return ExitCode.OK


def _summary(result: object) -> str:
    from datamill.cli.preview import duration
    from datamill.workflows.execute import RunResult

    assert isinstance(result, RunResult)
    failed = [gate for gate in result.gates if not gate.passed]
    verdict = "; ".join(f"gate failed: {gate.text()}" for gate in failed) or "no gate failed"
    lines = [
        f"DONE {duration(result.seconds)}   {result.rows_in:,} -> {result.rows_out:,} rows   {verdict}",
        *(f"  {output.path}" for output in result.outputs),
        f"  report: {result.folder / 'report.html'}",
        "next: datamill data drops @last",
    ]
    return "\n".join(lines)


def _json(result: object) -> dict[str, object]:
    from dataclasses import asdict

    from datamill.workflows.execute import RunResult

    assert isinstance(result, RunResult)
    return {**asdict(result), "folder": str(result.folder), "exit": int(result.exit_code)}


def _shown(path: Path, project: Path) -> str:
    return path.relative_to(project).as_posix() if project in path.parents else str(path)
