"""A project whose plan branches: one branch fails at run time, the other does not depend on it."""

import json
from pathlib import Path

from datamill.workflows.events import read_events

WORKFLOW = """\
version: 1
name: branches
seed: 3
inputs:
  load: {path: rows.jsonl}
steps:
  - {id: fix, operator: text.fix_unicode, needs: load, params: {columns: [text]}}
  - {id: size, operator: filter.length, needs: fix, params: {columns: [text], unit: chars, min: 12}}
  - {id: exact, operator: dedup.exact, needs: size, params: {columns: [text]}}
  - {id: ratio, operator: filter.expr, needs: fix, params: {expr: "n / m > 1", on_null: error}}
  - {id: later, operator: dedup.exact, needs: ratio, params: {columns: [text]}}
  - {id: both, operator: mix.concat, needs: [exact, later]}
outputs:
  good: {from: exact, path: out/good.jsonl, card: true}
  side: {from: fix, path: out/side.jsonl}
  late: {from: later, path: out/late.jsonl}
  joined: {from: both, path: out/joined.jsonl}
run: {shard_rows: 20}
"""
SOUND = WORKFLOW.replace("on_null: error", "on_null: drop")
"""The same plan without its fault."""


def make_branches(folder: Path, workflow: str = WORKFLOW, count: int = 60) -> Path:
    """Write the project; with the fault the step `ratio` stops at the first row whose `m` is 0."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {"text": "tiny" if i % 7 == 3 else f"sentence number {i // 2} with enough words", "n": i, "m": i % 3}
        for i in range(count)
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "plan.yaml").write_text(workflow)
    return folder


def computed(run: Path) -> dict[str, bool]:
    """For every step that was done in the last attempt of a run: whether a unit of it was computed."""
    events = read_events(run / "events.jsonl")
    start = max(at for at, event in enumerate(events) if event["event"] == "run_started")
    done = [event for event in events[start:] if event["event"] == "step_done"]
    return {event["step"]: event["reused"] < event["shards"] for event in done}
