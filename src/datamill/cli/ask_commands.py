"""`datamill ask`: a sentence in, a reviewed plan out, and a run when it is approved."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from datamill.cli.session import Session, usage_error
from datamill.errors import DatamillError, ExitCode

if TYPE_CHECKING:
    from datamill.agents.conversation import Turn
    from datamill.agents.services import ThreadServices


def register(app: typer.Typer) -> None:
    """Add the command to the tree."""
    app.command("ask")(ask)


def ask(
    context: typer.Context,
    text: Annotated[str, typer.Argument(help="what you want, in your words")] = "",
    inputs: Annotated[list[str] | None, typer.Option("-i", "--input", help="input file or folder")] = None,
    out: Annotated[str, typer.Option("-o", "--out", help="folder for plan and outputs")] = "out",
    model: Annotated[str | None, typer.Option("-m", "--model", help="the planner's LLM, or `rules` (offline)")] = None,
    train_model: Annotated[str | None, typer.Option("--train-model", help="tiny, smollm2 or a folder")] = None,
    plan_only: Annotated[bool, typer.Option("--plan-only", help="save the plan, run nothing")] = False,
    approve: Annotated[
        str | None, typer.Option("--approve", help="run the plan just printed; =DIGEST: only if it is this one")
    ] = None,
    budget: Annotated[str | None, typer.Option("--budget", help="LLM money the run may spend, such as 2.00USD")] = None,
    resume: Annotated[bool, typer.Option("-c", "--continue", help="go on with the newest thread")] = False,
    thread: Annotated[str | None, typer.Option("--thread", help="go on with this thread")] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="seed of the workflow")] = None,
    no_sample: Annotated[bool, typer.Option("--no-sample", help="show the planner no facts of a sample")] = False,
    workers: Annotated[int | None, typer.Option("-j", "--workers", min=1, help="worker processes")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace output files datamill did not write")] = False,
) -> int:
    """Turn a sentence into a validated plan, review it, run it."""
    session: Session = context.obj
    from datamill.agents.conversation import Request, go_on, start
    from datamill.agents.services import ThreadServices
    from datamill.cli.progress import ProgressLines
    from datamill.cli.review import show_turn
    from datamill.cli.values import parse_money

    paths = grant_inputs(session, inputs or [])
    services = ThreadServices(
        session.project, ProgressLines(session), workers=workers, overwrite=overwrite, budget_usd=parse_money(budget)
    )
    name = named_thread(services, thread, resume)
    if name is None and not text:
        raise usage_error("say what you want", 'datamill ask "remove duplicates" -i data.jsonl')
    request = Request(text, tuple(paths), out, model, seed, train_model, not no_sample)
    turn = start(request, services) if name is None else go_on(name, request, services)
    session.say(f"thread {turn.thread}  planner {turn.state.get('planner')}{_offline(turn)}")
    show_turn(session, turn, services)
    return finish(session, turn, services, approve, plan_only)


def grant_inputs(session: Session, inputs: list[str]) -> list[str]:
    """Check that inputs exist; a path outside the project is granted for reading, because a person named it."""
    from datamill.workflows.paths import grant

    shown = []
    for given in inputs:
        path = (Path.cwd() / given).resolve() if not Path(given).is_absolute() else Path(given).resolve()
        if not path.exists():
            path = (session.project / given).resolve()
        if not path.exists():
            raise DatamillError("DM-CLI-006", f"there is no input `{given}`", exit_code=ExitCode.USAGE, file=given)
        inside = session.project in path.parents
        if not inside:
            grant(session.project, [path])
            session.say(f"reading {path} outside the project is granted, as you named it")
        shown.append(path.relative_to(session.project).as_posix() if inside else str(path))
    return shown


def named_thread(services: "ThreadServices", thread: str | None, resume: bool) -> str | None:
    """The thread to go on with: the one named, or the newest with `--continue`."""
    if thread is not None or not resume:
        return thread
    from datamill.agents.conversation import threads

    known = threads(services)
    if not known:
        raise usage_error("there is no thread to go on with", 'datamill ask "..."')
    return known[0]


def _offline(turn: "Turn") -> str:
    return " (offline; set OPENAI_API_KEY or -m for a language model)" if turn.state.get("planner") == "rules" else ""


def finish(session: Session, turn: "Turn", services: "ThreadServices", approve: str | None, plan_only: bool) -> int:
    """From the first turn to the end: approve by flag, ask the person, or say what is needed."""
    from datamill.agents.conversation import answer
    from datamill.cli.review import ask_person, show_turn

    if turn.kind == "review":
        from datamill.agents.nodes import save_plan

        file = save_plan(turn.state, session.project)
        session.say(f"saved {_shown(file, session.project)}")
        if plan_only:
            session.result(as_data(turn, file), None)
            return ExitCode.OK
        if approve is not None and (approve or not turn.payload.get("notice")):
            _check_digest(turn, approve)
            decision = {"type": "approve", "digest": turn.payload["plan_digest"], "origin": "flag --approve"}
            turn = answer(turn.thread, decision, services)
            show_turn(session, turn, services)
        elif not session.interactive and not turn.payload.get("notice"):
            raise _needs_approval(turn, _shown(file, session.project))
    if turn.kind in {"review", "question"}:
        if not session.interactive:
            raise _needs_answer(turn)
        following = ask_person(session, turn, services)
        if following is None:
            session.say(f"left open; go on with: datamill ask --thread {turn.thread}")
            return ExitCode.NEEDS_APPROVAL
        turn = following
    return conclude(session, turn, services)


def _check_digest(turn: "Turn", given: str) -> None:
    from datamill.workflows.approval import MIN_PREFIX

    digest = str(turn.payload["plan_digest"])
    if given and (len(given) < MIN_PREFIX or not digest.startswith(given.lower())):
        message = f"the plan is {digest[:12]}, not `{given}`"
        raise DatamillError("DM-AGENT-003", message, exit_code=ExitCode.NEEDS_APPROVAL, fix="review the plan again")


def _needs_approval(turn: "Turn", file: str) -> DatamillError:
    digest = str(turn.payload["plan_digest"])[:12]
    return DatamillError(
        "DM-AGENT-002", f"plan {digest} needs approval and input is off", exit_code=ExitCode.NEEDS_APPROVAL,
        fix=f"review: datamill plan show {file}      run: datamill run {file} --approve {digest}",
    )  # fmt: skip


def _needs_answer(turn: "Turn") -> DatamillError:
    text = str(turn.payload.get("text") or turn.payload.get("notice") or "the plan needs another look")
    fix = f'datamill ask --thread {turn.thread} "your answer"'
    return DatamillError("DM-AGENT-006", text, exit_code=ExitCode.NEEDS_APPROVAL, fix=fix)


def conclude(session: Session, turn: "Turn", services: "ThreadServices") -> int:
    """Print the end of a conversation; returns the exit code."""
    session.result(as_data(turn, None), None)
    if turn.kind == "done":
        run = turn.state["run"]
        session.say(f"DONE  {run['rows_in']:,} -> {run['rows_out']:,} rows   run {run['id']}")
        for path in run["outputs"]:
            session.say(f"  data     {path}")
        if turn.state.get("training"):
            session.say(f"  adapter  {_shown(Path(turn.state['training']['adapter']), session.project)}")
        session.say(f"  report   {_shown(Path(run['folder']) / 'report.html', session.project)}")
        session.say(f"next: datamill data drops @last      datamill run {run['plan']}")
        return ExitCode.GATE_FAILED if run["gates_failed"] else ExitCode.OK
    if turn.kind == "failed":
        return turn.state.get("exit") or ExitCode.INVALID
    return ExitCode.NEEDS_APPROVAL


def as_data(turn: "Turn", file: Path | None) -> dict[str, Any]:
    """The turn as plain data for `--json`."""
    draft = turn.draft
    return {
        "thread": turn.thread,
        "status": turn.kind,
        "plan": str(file) if file else turn.state.get("run", {}).get("plan"),
        "digest": turn.state.get("digest"),
        "review": dict(turn.payload),
        "questions": [q.model_dump() for q in draft.questions] if draft else [],
        "refusals": [r.model_dump() for r in draft.refusals] if draft else [],
        "missing": [m.model_dump() for m in draft.missing] if draft else [],
        "issues": [issue.to_dict() for issue in turn.issues],
        "run": turn.state.get("run"),
        "training": turn.state.get("training"),
        "planner": {"name": turn.state.get("planner"), **turn.state.get("planner_cost", {})},
    }


def _shown(path: Path, project: Path) -> str:
    return path.relative_to(project).as_posix() if project in path.parents else str(path)
