"""The LangGraph graph of a conversation, with threads that live in the project's SQLite file.

understand -> inspect -> retrieve -> draft -> compile (repair, bounded) -> estimate -> review (interrupt) ->
decide -> execute -> explain; a question interrupts before anything is compiled, a refusal ends the turn.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

from datamill.agents import nodes
from datamill.agents.state import ThreadState
from datamill.workflows.paths import STATE_FOLDER

THREADS = "threads.sqlite"


def build_graph(checkpointer: Any) -> Any:
    """The compiled graph over a checkpointer."""
    graph: Any = StateGraph(ThreadState)
    for name, node in (
        ("understand", nodes.understand),
        ("inspect", nodes.inspect),
        ("retrieve", nodes.retrieve_candidates),
        ("draft", nodes.draft),
        ("compile", nodes.compile_draft),
        ("estimate", nodes.estimate),
        ("review", nodes.review),
        ("ask", nodes.ask),
        ("decide", nodes.decide),
        ("execute", nodes.execute),
        ("explain", nodes.explain),
    ):
        graph.add_node(name, node)
    graph.add_edge(START, "understand")
    graph.add_edge("understand", "inspect")
    graph.add_conditional_edges("inspect", _unless_failed("retrieve"), ["retrieve", END])
    graph.add_edge("retrieve", "draft")
    graph.add_conditional_edges("draft", _after_draft, ["compile", "ask", END])
    graph.add_conditional_edges("compile", _after_compile, ["compile", "estimate", END])
    graph.add_conditional_edges("estimate", _unless_failed("review"), ["review", END])
    graph.add_edge("review", "decide")
    graph.add_edge("ask", "decide")
    graph.add_conditional_edges("decide", _after_decision, ["understand", "compile", "review", "execute", END])
    graph.add_conditional_edges("execute", _after_execute, ["compile", "explain", END])
    graph.add_edge("explain", END)
    return graph.compile(checkpointer=checkpointer)


def _unless_failed(following: str) -> Any:
    def route(state: ThreadState) -> str:
        return str(END) if state.get("status") == "failed" else following

    return route


def _after_draft(state: ThreadState) -> str:
    status = state.get("status")
    return {"question": "ask", "refused": str(END), "failed": str(END)}.get(str(status), "compile")


def _after_compile(state: ThreadState) -> str:
    if state.get("status") == "failed":
        return str(END)
    return "estimate" if state.get("digest") else "compile"


def _after_decision(state: ThreadState) -> str:
    status = state.get("status")
    if status == "approved":
        return "execute"
    if status in {"rejected", "failed"}:
        return str(END)
    if status == "stale":
        return "compile"
    if status == "review":
        return "review"
    return "compile" if state["decision"].get("type") == "edit" else "understand"


def _after_execute(state: ThreadState) -> str:
    return {"stale": "compile", "failed": str(END)}.get(str(state.get("status")), "explain")


@contextmanager
def open_threads(project: Path) -> Iterator[Any]:
    """The graph over the project's thread file; several processes may have it open."""
    folder = project / STATE_FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(folder / THREADS, check_same_thread=False, timeout=30)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        saver = SqliteSaver(connection)
        saver.setup()
        yield build_graph(saver)
    finally:
        connection.close()
