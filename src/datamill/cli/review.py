"""The review on a terminal: the plan, one key, and what follows from it."""

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from datamill.agents.conversation import Turn, answer
from datamill.agents.services import ThreadServices
from datamill.cli.preview import plan_preview
from datamill.cli.session import Session
from datamill.errors import Issue
from datamill.workflows.estimate import Estimate, StepEstimate

KEYS = "[a]pprove  [e]dit  [r]eject with reason  [s]ay something  [d]etails  [q]uit"


def show_turn(session: Session, turn: Turn, services: ThreadServices) -> None:
    """Print where a thread stands, as conversation."""
    if turn.kind == "review":
        session.say(review_text(turn, services))
    elif turn.kind == "question":
        options = " / ".join(turn.payload.get("options", ()))
        session.say(f"? {turn.payload['text']}{f'  ({options})' if options else ''}")
    elif turn.kind == "refused":
        for refusal in turn.draft.refusals if turn.draft else ():
            session.say(f"declined ({refusal.code}): {refusal.what}: {refusal.why}")
            if refusal.safe_alternative:
                session.say(f"  instead: {refusal.safe_alternative}")
    elif turn.kind == "failed":
        for issue in turn.issues:
            session.say(session.paint(issue))


def review_text(turn: Turn, services: ThreadServices) -> str:
    """The plan with estimates, what changed, assumptions and hazards."""
    plan = turn.plan(services)
    payload = turn.payload
    lines = []
    if payload["notice"]:
        lines.append(f"! {payload['notice']}")
    if payload["diff_from_previous"]:
        lines += ["plan changed", *(f"  {line}" for line in payload["diff_from_previous"]), ""]
    lines.append(plan_preview(plan, _estimate(payload["estimate"])))
    lines += [f"  ! {hazard}" for hazard in payload["hazards"]]
    lines += [f"  ? {assumption}" for assumption in payload["assumptions"]]
    for missing in payload["missing"]:
        lines.append(f"  - not available: {missing['asked_for']} ({missing['name']}); {missing['offered']}")
    for refusal in payload["refusals"]:
        lines.append(f"  x declined: {refusal['what']}: {refusal['why']}")
    return "\n".join(lines)


def _estimate(data: Mapping[str, Any]) -> Estimate | None:
    if not data:
        return None
    steps = tuple(StepEstimate(**step) for step in data["steps"])
    return Estimate(steps, data["sample_rows"], data["seconds"], data["llm_usd"])


def ask_person(session: Session, turn: Turn, services: ThreadServices) -> Turn | None:
    """Put the interrupt to the person until it is answered; None when they quit."""
    while turn.kind in {"review", "question"}:
        if turn.kind == "question":
            said = typer.prompt("you", prompt_suffix="> ", err=True)
            turn = answer(turn.thread, {"type": "respond", "text": said}, services)
        else:
            following = _review_once(session, turn, services)
            if following is None:
                return None
            turn = following
        show_turn(session, turn, services)
    return turn


def _review_once(session: Session, turn: Turn, services: ThreadServices) -> Turn | None:
    while True:
        key = typer.prompt(KEYS, prompt_suffix=" > ", err=True).strip().lower()[:1]
        if key == "a":
            digest = turn.payload["plan_digest"]
            return answer(turn.thread, {"type": "approve", "digest": digest, "origin": "terminal"}, services)
        if key == "r":
            reason = typer.prompt("reason", default="", err=True)
            return answer(turn.thread, {"type": "reject", "reason": reason}, services)
        if key == "s":
            said = typer.prompt("you", prompt_suffix="> ", err=True)
            return answer(turn.thread, {"type": "respond", "text": said}, services)
        if key == "e":
            edited = edit_text(session, turn.state["yaml"], services)
            if edited is not None:
                return answer(turn.thread, {"type": "edit", "yaml": edited}, services)
        elif key == "d":
            session.say(turn.state["yaml"])
        elif key == "q":
            return None


def edit_text(session: Session, text: str, services: ThreadServices) -> str | None:
    """Open the workflow in the person's editor; checked when saved, None when nothing valid came back."""
    from datamill.errors import PlanError
    from datamill.workflows.compile import compile_text

    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.yaml"
        path.write_text(text, encoding="utf-8")
        subprocess.run([*editor.split(), str(path)], check=False)  # noqa: S603  the person's own editor
        edited = path.read_text(encoding="utf-8")
    if edited == text:
        session.say("nothing changed")
        return None
    try:
        compile_text(edited, services.compile_options(), "plan.yaml")
    except PlanError as error:
        for issue in error.issues:
            session.say(session.paint(issue))
        session.say("the plan stays as it was; edit again with [e]")
        return None
    return edited


def issue_texts(issues: tuple[Issue, ...]) -> list[dict[str, Any]]:
    """Findings as plain data."""
    return [issue.to_dict() for issue in issues]
