"""`datamill runs ...`: history of runs."""

import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

import typer

from datamill.cli.session import Session, usage_error
from datamill.errors import DatamillError, ExitCode

RunArgument = Annotated[str, typer.Argument(help="run id, part of one, @last or @2")]


def register(app: typer.Typer) -> None:
    """Add the command group to the tree."""
    group = typer.Typer(help="History of runs.", no_args_is_help=True, rich_markup_mode=None)
    group.command("list")(list_all)
    group.command("show")(show)
    group.command("logs")(logs)
    group.command("cancel")(cancel)
    group.command("resume")(resume)
    group.command("rm")(remove)
    app.add_typer(group, name="runs")


def _status(state: Mapping[str, Any]) -> str:
    """The status, seeing through a process that was killed while running."""
    if state["status"] == "running" and not _alive(int(state["pid"])):
        return "killed"
    return str(state["status"])


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def list_all(
    context: typer.Context,
    status: Annotated[str | None, typer.Option("--status", help="done, failed, interrupted, killed, ...")] = None,
    since: Annotated[str | None, typer.Option("--since", help="ISO date, such as 2026-11-30")] = None,
) -> None:
    """All runs of this project, newest first."""
    session: Session = context.obj
    from datamill.workflows.run_record import list_runs

    found = []
    for run in reversed(list_runs(session.project)):
        state = run.state()
        if (status is None or _status(state) == status) and (since is None or state["started"] >= since):
            rows = sum(output["rows"] for output in state.get("outputs", []))
            found.append({"id": run.id, "status": _status(state), "digest": state["digest"], "rows_out": rows,
                          "started": state["started"], "seconds": state.get("seconds")})  # fmt: skip
    lines = [f"{r['id']:<48} {r['status']:<12} {r['digest'][:12]}  {r['rows_out']:>9,} rows" for r in found]
    session.result(found, "\n".join(lines) or "no runs yet")


def show(context: typer.Context, run: RunArgument = "@last") -> None:
    """One run: approval, steps with their books, outputs, gates, training."""
    session: Session = context.obj
    from datamill.workflows.ledger import Books
    from datamill.workflows.run_record import find_run

    record = find_run(session.project, run)
    state = record.state()
    lines = [f"{record.id}  {_status(state)}  plan {state['digest'][:12]}  started {state['started']}"]
    approval = state["approval"]
    lines.append(f"  approved {approval['time']} from {approval['origin']}")
    for step, counts in state["steps"].items():
        books = Books.from_flat(counts)
        gone = ", ".join(f"{reason} {count:,}" for reason, count in books.reasons.items())
        lines.append(f"  {step:<16} {books.rows_in:>9,} -> {books.rows_out:>9,}  {gone}")
    lines += [f"  -> {output['path']}  {output['rows']:,} rows" for output in state.get("outputs", [])]
    lines += [f"  error {issue['code']}: {issue['message']}" for issue in state.get("error", [])]
    session.result({**state, "status": _status(state), "folder": str(record.folder)}, "\n".join(lines))


def logs(
    context: typer.Context,
    run: RunArgument = "@last",
    step: Annotated[str | None, typer.Option("--step", help="only this step")] = None,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="wait for more")] = False,
) -> None:
    """Events of a run, one a line (with --json a list; with --json and -f one object a line)."""
    session: Session = context.obj
    import orjson

    from datamill.workflows.events import read_events
    from datamill.workflows.run_record import find_run

    record = find_run(session.project, run)
    if session.json and not follow:
        events = read_events(record.folder / "events.jsonl")
        session.result([event for event in events if step is None or event.get("step") == step])
        return
    plain = replace(session, json=False)
    shown = 0
    while True:
        events = read_events(record.folder / "events.jsonl")
        for event in events[shown:]:
            if step is None or event.get("step") == step:
                plain.result(event, orjson.dumps(event).decode())
        shown = len(events)
        if not follow or _status(record.state()) != "running":
            return
        time.sleep(0.5)


def cancel(context: typer.Context, run: RunArgument) -> None:
    """Stop a run gracefully; it can be resumed."""
    session: Session = context.obj
    import signal

    from datamill.workflows.run_record import find_run

    record = find_run(session.project, run)
    state = record.state()
    if _status(state) != "running":
        raise usage_error(f"run {record.id} is {_status(state)}", f"datamill runs show {record.id}")
    os.kill(int(state["pid"]), signal.SIGINT)
    session.result({"id": record.id, "cancelled": True}, f"asked {record.id} to stop after the units in hand")


def resume(context: typer.Context, run: RunArgument = "@last") -> int:
    """Go on with an unfinished run (the same as running its plan again)."""
    session: Session = context.obj
    from datamill.cli.run_commands import execute
    from datamill.cli.values import load_plan
    from datamill.workflows.run_record import find_run
    from datamill.workflows.runner import RunOptions

    record = find_run(session.project, run)
    plan = load_plan(session, str(record.folder))
    command = f"datamill runs resume {record.id}"
    return execute(session, plan, command, None, None, RunOptions(), overwrite=False, json_stream=False)


def remove(
    context: typer.Context,
    run: RunArgument,
    yes: Annotated[bool, typer.Option("--yes", help="do not ask")] = False,
) -> None:
    """Delete the folder of a run (outputs and committed units stay)."""
    session: Session = context.obj
    from datamill.workflows.run_record import find_run

    record = find_run(session.project, run)
    if _status(record.state()) == "running":
        raise usage_error(f"run {record.id} is running", f"datamill runs cancel {record.id}")
    if not yes:
        if not session.interactive:
            message = f"deleting {record.id} needs a yes"
            fix = f"datamill runs rm {record.id} --yes"
            raise DatamillError("DM-CLI-004", message, exit_code=ExitCode.NEEDS_APPROVAL, fix=fix)
        typer.confirm(f"delete {record.folder}?", abort=True, err=True)
    shutil.rmtree(record.folder)
    session.result({"removed": record.id}, f"removed {record.id}")
