"""A small project on disk: rows, a workflow, and short ways to compile and run it."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from datamill.workflows.approval import approve
from datamill.workflows.compile import CompileOptions, compile_text
from datamill.workflows.execute import RunRequest, RunResult, run_plan
from datamill.workflows.plan import Plan
from datamill.workflows.runner import RunOptions

WORKFLOW = """\
version: 1
name: small
seed: 5
inputs:
  load: {path: rows.jsonl, options: {max_bad: 0.5}}
steps:
  - {id: fix, operator: text.fix_unicode, needs: load, params: {columns: [text]}}
  - {id: size, operator: filter.length, needs: fix, params: {columns: [text], unit: chars, min: 12}}
  - {id: exact, operator: dedup.exact, needs: size, params: {columns: [text]}}
  - {id: pick, operator: sample.random, needs: exact, params: {n: 40}}
  - {id: chat, operator: format.chat, needs: pick, params: {user: text, assistant: answer}}
outputs:
  clean: {from: chat, path: out/clean.jsonl, format: jsonl, card: true, llamafactory: {name: small}}
  rest: {from: exact, path: out/exact.parquet, format: parquet}
run: {shard_rows: 20}
"""


def write_rows(path: Path, rows: Iterable[Mapping[str, Any] | str]) -> None:
    """JSON Lines; a string is written as it stands, broken or not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def small_rows(count: int = 100) -> list[Mapping[str, Any] | str]:
    """Rows with known faults: every 7th too short, every 10th a copy of its predecessor, one broken line."""
    rows: list[Mapping[str, Any] | str] = []
    for i in range(count):
        text = "tiny" if i % 7 == 3 else f"sentence number {i - 1 if i % 10 == 9 else i} with enough words"
        rows.append({"text": text, "answer": f"answer {i}"})
    rows.insert(count // 2, "{broken")
    return rows


def make_project(folder: Path, workflow: str = WORKFLOW, count: int = 100) -> Path:
    """Write the small project into `folder`."""
    write_rows(folder / "rows.jsonl", small_rows(count))
    (folder / "plan.yaml").write_text(workflow, encoding="utf-8")
    return folder


def compiled(folder: Path, workflow: str | None = None, **options: Any) -> Plan:
    """Compile `plan.yaml` of the project, or the text given."""
    text = workflow if workflow is not None else (folder / "plan.yaml").read_text(encoding="utf-8")
    return compile_text(text, CompileOptions(folder, **options), "plan.yaml")


def approved_run(
    folder: Path, plan: Plan | None = None, workers: int = 1, executor: str = "local", **options: Any
) -> RunResult:
    """Approve the project's plan and run it."""
    chosen = plan or compiled(folder)
    approve(folder, chosen, "test")
    return run_plan(chosen, RunRequest(folder, executor, workers=workers, options=RunOptions(**options)))


def tree_digest(folder: Path, *, without: tuple[str, ...] = ()) -> dict[str, str]:
    """sha256 of every file below `folder`, by relative name."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if not any(part in path.relative_to(folder).as_posix() for part in without)
    }
