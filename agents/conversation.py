"""A conversation as its callers see it: start, answer, and what came of it. Command line, chat and API use this."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from datamill.agents.draft import Draft
from datamill.agents.graph import open_threads
from datamill.agents.rules.safety import remove_secrets
from datamill.agents.services import ThreadServices
from datamill.agents.state import ThreadState
from datamill.errors import DatamillError, ExitCode, Issue
from datamill.workflows.compile import compile_text
from datamill.workflows.plan import Plan


@dataclass(frozen=True)
class Request:
    """What a person asks for.

    Attributes:
        text: the sentence.
        inputs: paths named on the command line.
        out: folder for plan and outputs.
        planner: `rules`, a model name, or None to choose by what is configured.
        seed: seed of the workflow, or None for the planner's.
        train_model: model to train, or None for the planner's.
        sampled: whether a planner may see facts of a sample.
    """

    text: str
    inputs: tuple[str, ...] = ()
    out: str = "out"
    planner: str | None = None
    seed: int | None = None
    train_model: str | None = None
    sampled: bool = True


@dataclass(frozen=True)
class Turn:
    """Where a thread stands after a call.

    Attributes:
        thread: thread id.
        kind: `review`, `question`, `refused`, `failed`, `rejected`, `done`, or `interrupted` when the process ended
            in the middle of a turn; `answer(thread, {}, services)` goes on with it.
        payload: what is shown at an interrupt.
        state: the thread's state.
        project: project folder.
    """

    thread: str
    kind: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    state: ThreadState = field(default_factory=ThreadState)
    project: Path = Path()

    @property
    def draft(self) -> Draft | None:
        """The planner's draft."""
        return Draft.model_validate(self.state["draft"]) if self.state.get("draft") else None

    @property
    def issues(self) -> tuple[Issue, ...]:
        """Findings of the last compile."""
        return tuple(Issue(**issue) for issue in self.state.get("issues", []))

    def plan(self, services: ThreadServices) -> Plan:
        """The plan under review, compiled anew."""
        return compile_text(self.state["yaml"], services.compile_options(), "plan.yaml")


def start(request: Request, services: ThreadServices, thread: str | None = None) -> Turn:
    """Open a thread with a request, or put a new request to an existing one, which keeps its inputs and its plan."""
    name = thread or f"t-{secrets.token_hex(4)}"
    text, _ = remove_secrets(request.text)
    state: ThreadState = {
        "request": text,
        "turns": [("you", text)],
        "inputs": list(request.inputs),
        "out": request.out,
        "seed": request.seed,
        "train_model": request.train_model,
        "planner": request.planner or "",
        "sampled": request.sampled,
        "status": "open",
    }
    with open_threads(services.project) as graph:
        before: Any = graph.get_state(_config(name, services)).values if thread else {}
        if before:
            state |= _kept(before, state)
        return _advance(graph, name, state, replace(services, spoken=request.text))


def _kept(before: ThreadState, state: ThreadState) -> ThreadState:
    """What a thread keeps when a new request comes: what was said, and inputs unless new ones are named."""
    kept: ThreadState = {"turns": [*before["turns"], *state["turns"]]}
    if not state["inputs"]:
        kept["inputs"] = before.get("inputs", [])
    elif state["inputs"] != before.get("inputs"):
        kept["inspection"] = {}
    return kept


def answer(thread: str, decision: Mapping[str, Any], services: ThreadServices) -> Turn:
    """Resume a thread at its interrupt, or go on with one that was killed at work.

    Approving a plan that has run already runs nothing again: the thread is returned as it stands.

    Args:
        thread: thread id.
        decision: `{"type": "approve", "digest": ..., "origin": ...}`, `{"type": "edit", "yaml": ...}`,
            `{"type": "reject", "reason": ...}` or `{"type": "respond", "text": ...}`; empty for a killed thread.
        services: services of this process.

    Raises:
        DatamillError: `DM-AGENT-010` unknown thread, `DM-AGENT-011` a thread that waits for nothing.
    """
    from langgraph.types import Command

    with open_threads(services.project) as graph:
        snapshot = _snapshot(graph, thread, services)
        waiting = any(task.interrupts for task in snapshot.tasks)
        if not waiting and not snapshot.next:
            if _has_run(snapshot.values, decision):
                return _turn(thread, snapshot, services)
            message = f"thread {thread} waits for nothing"
            raise DatamillError("DM-AGENT-011", message, exit_code=ExitCode.USAGE, fix="datamill ask ... starts anew")
        spoken = decision.get("text")
        command = Command(resume=_without_secrets(decision)) if waiting else None
        return _advance(graph, thread, command, replace(services, spoken=str(spoken) if spoken else None))


def go_on(thread: str, request: Request, services: ThreadServices) -> Turn:
    """Go on with a thread as a person does who names it again.

    A thread that was killed at work finishes its work; one that waits gets the words as its answer; one that failed
    tries its last words again when none are given, perhaps with another planner; otherwise the words are a new request.
    """
    turn = look(thread, services)
    if turn.kind == "interrupted" and not request.text:
        return answer(thread, {}, services)
    if turn.kind in {"review", "question"} and request.text:
        return answer(thread, {"type": "respond", "text": request.text}, services)
    if request.text:
        return start(request, services, thread)
    if turn.kind == "failed":
        said = [text for who, text in turn.state["turns"] if who == "you"]
        return start(replace(request, text=said[-1]), services, thread)
    return turn


def _has_run(state: Mapping[str, Any], decision: Mapping[str, Any]) -> bool:
    done = str(state.get("run", {}).get("digest", ""))
    given = str(decision.get("digest") or done)
    return decision.get("type") == "approve" and bool(done) and done.startswith(given)


def _without_secrets(decision: Mapping[str, Any]) -> dict[str, Any]:
    """The decision as the thread keeps it: no password or key in what a person said."""
    said = {key: remove_secrets(str(decision[key]))[0] for key in ("text", "reason") if decision.get(key)}
    return {**decision, **said}


def look(thread: str, services: ThreadServices) -> Turn:
    """Where a thread stands, changing nothing.

    Raises:
        DatamillError: `DM-AGENT-010` when there is no such thread.
    """
    with open_threads(services.project) as graph:
        return _turn(thread, _snapshot(graph, thread, services), services)


def threads(services: ThreadServices) -> list[str]:
    """Ids of the project's threads, newest first."""
    with open_threads(services.project) as graph:
        seen: dict[str, None] = {}
        for item in graph.checkpointer.list(None):
            seen.setdefault(item.config["configurable"]["thread_id"], None)
        return list(seen)


def _config(thread: str, services: ThreadServices) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread, "services": services}, "recursion_limit": 60}


def _snapshot(graph: Any, thread: str, services: ThreadServices) -> Any:
    snapshot = graph.get_state(_config(thread, services))
    if not snapshot.values:
        message = f"there is no thread `{thread}` in this project"
        raise DatamillError("DM-AGENT-010", message, exit_code=ExitCode.USAGE, fix="datamill chat")
    return snapshot


def _advance(graph: Any, thread: str, given: Any, services: ThreadServices) -> Turn:
    config = _config(thread, services)
    graph.invoke(given, config, durability="sync")
    return _turn(thread, graph.get_state(config), services)


def _turn(thread: str, snapshot: Any, services: ThreadServices) -> Turn:
    state: ThreadState = dict(snapshot.values)  # type: ignore[assignment]  # the graph's own schema
    pending = [found.value for task in snapshot.tasks for found in task.interrupts]
    if pending:
        kind = "review" if pending[0]["kind"] == "plan_review" else "question"
        return Turn(thread, kind, pending[0], state, services.project)
    kind = "interrupted" if snapshot.next else str(state.get("status", "failed"))
    return Turn(thread, kind, {}, state, services.project)
