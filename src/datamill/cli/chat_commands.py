"""`datamill chat`: talk about a plan until it is right, then run it."""

from typing import Annotated

import typer

from datamill.cli.session import Session


def register(app: typer.Typer) -> None:
    """Add the command to the tree."""
    app.command("chat")(chat)


def chat(
    context: typer.Context,
    inputs: Annotated[list[str] | None, typer.Option("-i", "--input", help="input file or folder")] = None,
    out: Annotated[str, typer.Option("-o", "--out", help="folder for plan and outputs")] = "out",
    model: Annotated[str | None, typer.Option("-m", "--model", help="the planner's LLM, or `rules` (offline)")] = None,
    resume: Annotated[bool, typer.Option("-c", "--continue", help="go on with the newest thread")] = False,
    thread: Annotated[str | None, typer.Option("--thread", help="go on with this thread")] = None,
    budget: Annotated[str | None, typer.Option("--budget", help="LLM money a run may spend, such as 2.00USD")] = None,
    workers: Annotated[int | None, typer.Option("-j", "--workers", min=1, help="worker processes")] = None,
) -> int:
    """Talk about a plan: words change it, /approve runs it, /help lists the commands."""
    session: Session = context.obj
    from datamill.agents.conversation import Request
    from datamill.agents.services import ThreadServices
    from datamill.cli.ask_commands import grant_inputs, named_thread
    from datamill.cli.chat import Chat
    from datamill.cli.progress import ProgressLines
    from datamill.cli.values import parse_money

    paths = grant_inputs(session, inputs or [])
    services = ThreadServices(session.project, ProgressLines(session), workers=workers, budget_usd=parse_money(budget))
    request = Request("", tuple(paths), out, model)
    return Chat(session, services, request, named_thread(services, thread, resume)).run()
