"""Collects `report.json` from a run's folder and renders `report.html` from it alone."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from datamill.operators.declaration import ColumnType
from datamill.operators.registry import find
from datamill.services.storage.atomic import write_bytes, write_json
from datamill.workflows.events import read_events
from datamill.workflows.ledger import Books
from datamill.workflows.lookup import RunData
from datamill.workflows.plan import Plan, PlanStep
from datamill.workflows.report.distributions import columns_to_show, distributions
from datamill.workflows.report.training_part import training_part
from datamill.workflows.run_record import RunRecord
from datamill.workflows.view import svg

SCHEMA_VERSION = 1
EXAMPLES = 5
MAX_VALUE_CHARS = 400
NO_HISTORY: Mapping[str, Any] = {"turns": [], "changes": None, "planner": "", "planner_cost": {}}
GLOSSARY = {
    "in, out": "rows that went into a step and rows that came out of it",
    "balance": "in - out + added - left; zero when every row is accounted for",
    "Jaccard": "shared shingles of two texts divided by all shingles of both",
    "score quantile": "the value below which that share of the scored samples lies",
    "overlap": "rows served by both of two plans divided by rows served by either",
    "drop rate": "rows that left a step divided by rows that went in",
}


def write_report(project: Path, record: RunRecord, plan: Plan) -> Path:
    """Write `report.json` and `report.html` of a run; returns the page."""
    from datamill.workflows.report.page import render

    report = build_report(project, record, plan)
    write_json(record.folder / "report.json", report, "run.report")
    page = record.folder / "report.html"
    write_bytes(page, render(report).encode("utf-8", "replace"), "run.html")
    return page


def build_report(project: Path, record: RunRecord, plan: Plan) -> dict[str, Any]:
    """Everything a report says, as plain data with a versioned schema."""
    state = record.state()
    events = read_events(record.folder / "events.jsonl")
    data = RunData(project, record)
    return {
        "schema": SCHEMA_VERSION,
        "run": {
            k: state.get(k) for k in ("id", "name", "status", "digest", "started", "finished", "seconds", "command")
        },
        "request": state.get("request", ""),
        "history": {**NO_HISTORY, **state.get("history", {})},
        "approval": state.get("approval", {}),
        "plan": {"digest": plan.digest, "seed": plan.seed, "yaml": plan.yaml, "description": plan.description},
        "graph": svg(plan, {step: counts["out"] for step, counts in state["steps"].items()}),
        "rows_in": sum(state["steps"][s.id]["in"] for s in plan.steps if s.is_source and s.id in state["steps"]),
        "rows_out": sum(output["rows"] for output in state.get("outputs", [])),
        "steps": [_step(plan, step, counts, events) for step, counts in state["steps"].items()],
        "drops": _drops(data, state["steps"]),
        "distributions": _distributions(data, plan, state["steps"]),
        "outputs": state.get("outputs", []),
        "cards": _cards(project, state),
        "gates": state.get("gates", []),
        "llm": state.get("llm", {}),
        "training": _training(project, record, plan, state, events),
        "statistics": data.stats(),
        "warnings": [*state.get("error", []), *(note.to_dict() for note in plan.notes)],
        "environment": json.loads((record.folder / "env.json").read_text(encoding="utf-8")),
        "glossary": GLOSSARY,
    }


def _step(plan: Plan, step: str, counts: Mapping[str, int], events: list[dict[str, Any]]) -> dict[str, Any]:
    books = Books.from_flat(counts)
    planned = plan.step(step)
    done = [e for e in events if e["event"] == "step_done" and e["step"] == step]
    seconds = max((e["seconds"] for e in done), default=0.0)
    params = _chosen(planned)
    return {
        "id": step, "operator": planned.operator, "why": planned.why or "", "params": params,
        "needs": list(planned.needs),
        "in": books.rows_in, "out": books.rows_out, "added": books.expanded, "left": sum(books.gone.values()),
        "reasons": dict(books.reasons), "remarks": dict(books.noted), "balance": books.balance, "seconds": seconds,
        "rows_per_s": round(books.rows_in / seconds) if seconds > 0 else None,
        "reused": bool(done) and done[-1]["reused"] == done[-1]["shards"],
        "routed": len([c for c in plan.consumers(step) if not c.startswith("output:")]),
    }  # fmt: skip


def _chosen(step: PlanStep) -> dict[str, Any]:
    """Parameters that differ from their defaults."""
    fields = find(step.operator).params.model_fields
    defaults = {name: field.get_default(call_default_factory=True) for name, field in fields.items()}
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in defaults.items()}
    return {k: v for k, v in step.params.items() if v not in (None, [], {}, "") and v != plain.get(k)}


def _drops(data: RunData, steps: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Examples of every reason; chosen by a keyed hash, cut to a readable length."""
    groups: dict[tuple[str, str, str], dict[str, Any]] = {}
    for step, counts in steps.items():
        for record in data.dropped(step, None, EXAMPLES):
            key = (step, record["fate"], record["reason"])
            share = round(record["count"] / counts["in"], 6) if counts["in"] else None
            group = groups.setdefault(
                key,
                {
                    "step": step,
                    "fate": key[1],
                    "reason": key[2],
                    "count": record["count"],
                    "share": share,
                    "examples": [],
                },
            )
            group["examples"].append(_example(record))
    return list(groups.values())


def _example(record: Mapping[str, Any]) -> dict[str, Any]:
    row = {k: _cut(v) for k, v in (record["row"] or {}).items() if not k.startswith("_")}
    kept = ("id", "src", "value", "threshold", "into", "detail", "offset")
    return {**{k: _cut(record[k]) for k in kept if record.get(k) is not None}, "row": row}


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= MAX_VALUE_CHARS else value[:MAX_VALUE_CHARS] + "…"
    if isinstance(value, list | dict):
        return _cut(json.dumps(value, ensure_ascii=False, default=str))
    return value


def _distributions(data: RunData, plan: Plan, steps: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One entry per source and per output step: the same columns before and after where both have them."""
    sources = [s.id for s in plan.steps if s.is_source and s.id in steps]
    finals = list(dict.fromkeys(o.source for o in plan.outputs.values() if o.source in steps))
    made = []
    for step in dict.fromkeys([*sources, *finals]):
        texts, labels = columns_to_show(_schema(plan, step))
        found = distributions(data.tables(step), texts, labels)
        made.append({"step": step, "when": "before" if step in sources else "after", **found})
    return made


def _schema(plan: Plan, step: str) -> dict[str, ColumnType]:
    return dict(plan.step(step).schema)


def _cards(project: Path, state: Mapping[str, Any]) -> dict[str, str]:
    cards = {}
    for output in state.get("outputs", []):
        path = project / output["path"]
        file = path.with_name(f"{path.stem}.card.md")
        if file.is_file():
            cards[output["name"]] = file.read_text(encoding="utf-8")
    return cards


def _training(
    project: Path, record: RunRecord, plan: Plan, state: Mapping[str, Any], events: list[dict[str, Any]]
) -> dict[str, Any] | None:
    if plan.train is None or not state.get("training"):
        return None
    source = plan.outputs[plan.train.dataset].source
    return training_part(record.folder / "train", state["training"], events, _rows(RunData(project, record), source))


def _rows(data: RunData, step: str) -> Iterator[Mapping[str, Any]]:
    for table in data.tables(step):
        yield from table.to_pylist()
