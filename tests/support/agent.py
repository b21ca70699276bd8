"""Threads for tests: a project, services whose planner is offline or a scripted server, and usual replies."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support.project import make_project, small_rows, write_rows

from datamill.agents.conversation import Request
from datamill.agents.services import ThreadServices

ASKED = "remove exact duplicates in rows.jsonl"
LONGER = "keep only texts of at least 12 characters"
KEY = "sk-test-0123456789abcdef"


def project(folder: Path, count: int = 120, settings: str = "") -> Path:
    """The small project without its workflow; rows are whole except one broken line."""
    make_project(folder, count=count)
    (folder / "plan.yaml").unlink()
    if settings:
        (folder / "datamill.toml").write_text(settings, encoding="utf-8")
    return folder


def services(folder: Path, base_url: str | None = None, **more: Any) -> ThreadServices:
    """Services with an environment of their own: offline, or with a scripted endpoint."""
    environment = {} if base_url is None else {"OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": KEY}
    return ThreadServices(folder, environment=environment, workers=1, **more)


def request(text: str = ASKED, **more: Any) -> Request:
    """A request about the small project."""
    return Request(text, inputs=("rows.jsonl",), **more)


def plan_reply(steps: list[Mapping[str, Any]] | None = None, **changes: Any) -> dict[str, Any]:
    """A model's answer with a good plan: exact duplicates, or the steps given."""
    chosen = steps or [step("exact", "dedup.exact", "load", columns=["text"])]
    workflow = {
        "name": "Model Plan",
        "inputs": {"load": {"path": "rows.jsonl"}},
        "steps": chosen,
        "outputs": {"clean": {"source": chosen[-1]["id"], "path": "out/clean.jsonl"}},
    }
    return {"verdict": "plan", "workflow": workflow, **changes}


def step(name: str, operator: str, needs: str, **params: Any) -> dict[str, Any]:
    """A step as a model writes it."""
    return {"id": name, "operator": operator, "needs": [needs], "params": params, "why": f"asked for {name}"}


LONGER_STEPS = [
    step("size", "filter.length", "load", columns=["text"], unit="chars", min=12),
    step("exact", "dedup.exact", "size", columns=["text"]),
]


def datamill(
    folder: Path, *words: str, env: Mapping[str, str] | None = None, said: str = ""
) -> subprocess.CompletedProcess[str]:
    """One command in a process of its own, off a terminal."""
    line = [sys.executable, "-m", "datamill", "--project", str(folder), *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **(env or {})}
    return subprocess.run(line, env=environment, input=said, capture_output=True, text=True, check=False, timeout=120)


def result(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The `--json` object of a command."""
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def change_input(folder: Path, count: int = 110) -> None:
    """Other rows under the same name."""
    write_rows(folder / "rows.jsonl", small_rows(count))
