"""`datamill plan ...`: look at a workflow without running it."""

import os
import subprocess
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from datamill.cli.session import Session
from datamill.errors import ExitCode, PlanError

if TYPE_CHECKING:
    from datamill.workflows.plan import Plan

FileArgument = Annotated[str, typer.Argument(help="workflow file, run id or @last")]
Sets = Annotated[list[str] | None, typer.Option("--set", help="name=value")]


def register(app: typer.Typer) -> None:
    """Add the command group to the tree."""
    group = typer.Typer(help="Look at a workflow without running it.", no_args_is_help=True, rich_markup_mode=None)
    for command in (show, check, diff, edit, estimate, graph, schema):
        group.command(command.__name__)(command)
    app.add_typer(group, name="plan")


def show(context: typer.Context, file: FileArgument, sets: Sets = None) -> None:
    """Show the compiled plan: steps, parameters, graph, findings."""
    session: Session = context.obj
    from datamill.cli.preview import plan_preview
    from datamill.cli.values import load_plan

    plan = load_plan(session, file, sets or ())
    session.result(plan.to_dict(), plan_preview(plan))


def check(context: typer.Context, file: FileArgument, sets: Sets = None) -> int:
    """Report every problem of a workflow at once (exit 3 when there is one)."""
    session: Session = context.obj
    from datamill.cli.values import load_plan

    try:
        plan = load_plan(session, file, sets or ())
    except PlanError as error:
        session.result({"ok": False, "issues": [issue.to_dict() for issue in error.issues]})
        if not session.json:
            for issue in error.issues:
                session.result({}, session.paint(issue))
        return ExitCode.INVALID
    notes = [note.to_dict() for note in plan.notes]
    text = "\n".join([session.paint(note) for note in plan.notes] + [f"ok, digest {plan.short}"])
    session.result({"ok": True, "digest": plan.digest, "issues": notes}, text)
    return ExitCode.OK


def diff(
    context: typer.Context, before: FileArgument, after: Annotated[str, typer.Argument(help="the other workflow")]
) -> None:
    """What changes from one plan to another: steps, parameters, inputs, outputs."""
    session: Session = context.obj
    from datamill.cli.values import load_plan
    from datamill.workflows.diff import diff_plans

    old = load_plan(session, before, check_training=False)
    new = load_plan(session, after, check_training=False)
    lines = diff_plans(old, new)
    head = f"plan changed ({old.short} -> {new.short})" if lines else f"the plans are the same ({old.short})"
    changes = "\n".join([head, *(f"  {line}" for line in lines)])
    session.result({"before": old.digest, "after": new.digest, "changes": lines}, changes)


def edit(context: typer.Context, file: FileArgument) -> int:
    """Open the workflow in $EDITOR and check it when saved."""
    session: Session = context.obj
    from datamill.cli.session import usage_error
    from datamill.cli.values import plan_file

    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise usage_error("neither VISUAL nor EDITOR is set", "EDITOR=nano datamill plan edit FILE")
    path = plan_file(session, file)
    done = subprocess.run([*editor.split(), str(path)], check=False)  # noqa: S603  the person's own editor
    if done.returncode:
        raise usage_error(f"`{editor}` ended with {done.returncode}; the file is as it left it", "EDITOR=nano ...")
    return check(context, str(path))


def estimate(context: typer.Context, file: FileArgument, sets: Sets = None) -> None:
    """Rows, seconds and LLM calls to expect, from running the cheap part on a sample."""
    session: Session = context.obj
    from datamill.cli.preview import plan_preview
    from datamill.cli.values import load_plan
    from datamill.settings import resolve
    from datamill.workflows.estimate import estimate_plan

    plan = load_plan(session, file, sets or ())
    found = estimate_plan(plan, session.project, resolve(session.project).settings.allow_paths)
    session.result({"digest": plan.digest, "estimate": found.to_dict()}, plan_preview(plan, found))


def graph(
    context: typer.Context,
    file: FileArgument,
    format: Annotated[str, typer.Option("--format", help="ascii, svg, mermaid or json")] = "ascii",  # noqa: A002
) -> None:
    """The graph of a workflow."""
    session: Session = context.obj
    import orjson

    from datamill.cli.session import usage_error
    from datamill.cli.values import load_plan
    from datamill.workflows import view

    plan = load_plan(session, file, check_training=False)
    pictures: dict[str, Callable[[Plan], str]] = {
        "ascii": view.ascii_graph,
        "svg": view.svg,
        "mermaid": view.mermaid,
        "json": lambda p: orjson.dumps(view.graph_json(p), option=orjson.OPT_INDENT_2).decode(),
    }
    if format not in pictures:
        raise usage_error(f"--format takes {', '.join(pictures)}, not `{format}`")
    session.result(view.graph_json(plan), pictures[format](plan))


def schema(context: typer.Context) -> None:
    """JSON Schema of workflow files, for editors."""
    session: Session = context.obj
    import orjson

    from datamill.workflows.spec import json_schema

    data = json_schema()
    session.result(data, orjson.dumps(data, option=orjson.OPT_INDENT_2).decode())
