"""`datamill report`: build the report of a run again."""

from pathlib import Path
from typing import Annotated

import typer

from datamill.cli.browser import open_page
from datamill.cli.session import Session


def register(app: typer.Typer) -> None:
    """Add the command to the tree."""
    app.command("report")(report)


def report(
    context: typer.Context,
    run: Annotated[str, typer.Argument(help="run id, part of one, @last or @2")] = "@last",
    open_report: Annotated[bool, typer.Option("--open", help="open it in the browser (at a terminal)")] = False,
    out: Annotated[Path | None, typer.Option("--out", help="copy the page here as well")] = None,
) -> None:
    """Build report.html and report.json of a run again."""
    session: Session = context.obj
    from datamill.cli.values import load_plan
    from datamill.services.storage.atomic import write_bytes
    from datamill.workflows.report import write_report
    from datamill.workflows.run_record import find_run

    record = find_run(session.project, run)
    plan = load_plan(session, str(record.folder), check_training=False)
    page = write_report(session.project, record, plan)
    if out is not None:
        write_bytes(session.project / out, page.read_bytes(), "report.copy")
    if open_report:
        open_page(page)
    session.result({"report": str(page), "json": str(page.with_suffix(".json"))}, str(page))
