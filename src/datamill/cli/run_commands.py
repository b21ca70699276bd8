"""`datamill run`: carry out an approved plan."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from datamill.cli.session import Session
from datamill.errors import ExitCode

if TYPE_CHECKING:
    from datamill.workflows.execute import RunResult
    from datamill.workflows.plan import Plan
    from datamill.workflows.runner import RunOptions


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
    from_step: Annotated[str | None, typer.Option("--from", help="compute this step and all below it anew")] = None,
    until: Annotated[str | None, typer.Option("--until", help="stop after this step")] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="read at most so many rows an input")] = None,
    fresh: Annotated[bool, typer.Option("--fresh/--resume", help="compute everything anew")] = False,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="when a step fails, run those that do not depend on it")
    ] = False,
    budget: Annotated[str | None, typer.Option("--budget", help="LLM money the run may spend, such as 2.00USD")] = None,
    approve: Annotated[str | None, typer.Option("--approve", help="digest of the plan you have reviewed")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace output files datamill did not write")] = False,
    open_report: Annotated[bool, typer.Option("--open", help="open the report in the browser (at a terminal)")] = False,
    json_stream: Annotated[bool, typer.Option("--json-stream", help="events as JSON lines on stdout")] = False,
) -> int:
    """Run an approved plan; the same command again resumes it and says what it reused."""
    session: Session = context.obj
    from datamill.cli.values import load_plan, parse_money, plan_file
    from datamill.workflows.runner import RunOptions
    from datamill.workflows.span import check_span

    money = parse_money(budget)
    plan = load_plan(session, file, sets or ())
    options = RunOptions(not fresh, until, from_step, keep_going, limit, _deadline(plan))
    check_span(plan, options)
    if dry_run:
        return _dry_run(session, plan)
    from datamill.workflows.approval import approve as record_approval
    from datamill.workflows.approval import check_prefix

    if approve is not None:
        check_prefix(plan, approve)
        record_approval(session.project, plan, "flag --approve")
    shown = _shown(plan_file(session, file), session.project)
    allowed = [f"--budget {budget}"] if budget is not None else []
    command = " ".join(["datamill run", shown, *(f"--set {pair}" for pair in sets or ()), *allowed])
    return execute(session, plan, command, executor, workers, options, overwrite, json_stream, money, open_report)


def _deadline(plan: "Plan") -> float | None:
    minutes = plan.run.budget.wall_minutes
    return None if minutes is None else time.monotonic() + 60 * minutes


def execute(
    session: Session,
    plan: "Plan",
    command: str,
    executor: str | None,
    workers: int | None,
    options: "RunOptions",
    overwrite: bool,
    json_stream: bool,
    budget_usd: float | None = None,
    open_report: bool = False,
) -> int:
    """Run a plan with progress on stderr and the result on stdout; returns the exit code."""
    from datamill.cli.browser import open_page
    from datamill.cli.progress import ProgressLines
    from datamill.settings import resolve
    from datamill.workflows.execute import RunRequest, run_plan

    settings = resolve(session.project).settings
    request = RunRequest(
        session.project, executor or plan.run.executor, workers or plan.run.workers or settings.run.workers, options,
        settings.allow_paths, overwrite, command, ProgressLines(session, json_stream), budget_usd=budget_usd, wait=True,
    )  # fmt: skip
    result = run_plan(plan, request)
    session.say(_summary(result))
    opened = open_report and open_page(result.folder / "report.html")
    session.result({**_json(result), "opened": opened})
    return result.exit_code


def _dry_run(session: Session, plan: "Plan") -> int:
    from datamill.cli.preview import plan_preview
    from datamill.settings import resolve
    from datamill.workflows.estimate import estimate_plan

    estimate = estimate_plan(plan, session.project, resolve(session.project).settings.allow_paths)
    session.result({"plan": plan.to_dict(), "estimate": estimate.to_dict()}, plan_preview(plan, estimate))
    session.say("nothing was started (dry run)")
    return ExitCode.OK


def _summary(result: "RunResult") -> str:
    from datamill.cli.preview import duration
    from datamill.workflows.timing import time_line

    failed = [gate for gate in result.gates if not gate.passed]
    verdict = "; ".join(f"gate failed: {gate.text()}" for gate in failed) or "no gate failed"
    whose = " by the other process" if result.waited else ""
    lines = [
        f"DONE{whose} {duration(result.seconds)}   {result.rows_in:,} -> {result.rows_out:,} rows   {verdict}",
        f"  time: {time_line(result.spent)}",
        *(f"  {output.path}" for output in result.outputs),
        f"  report: {result.folder / 'report.html'}",
        "next: datamill data drops @last",
    ]
    return "\n".join(lines)


def _json(result: "RunResult") -> dict[str, object]:
    from dataclasses import asdict

    report = str(result.folder / "report.html")
    return {**asdict(result), "folder": str(result.folder), "report": report, "exit": int(result.exit_code)}


def _shown(path: Path, project: Path) -> str:
    return path.relative_to(project).as_posix() if project in path.parents else str(path)
