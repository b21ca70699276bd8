"""The training part of a report: curves, plans, overlaps, score quantiles, best and worst samples with their text."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from datamill.services.records import ID
from datamill.training.plan_ledger import LEDGER_FILE, SCORES_FOLDER, PlanEntry, read_entries

SHOWN_SAMPLES = 5
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
TEXT_CHARS = 600


def training_part(
    folder: Path, state: Mapping[str, Any], events: Sequence[Mapping[str, Any]], rows: Iterable[Mapping[str, Any]]
) -> dict[str, Any] | None:
    """What training left, or None when there was none.

    Args:
        folder: `<run>/train`.
        state: the `training` part of `run.json`.
        events: events of the run.
        rows: rows of the training output, with `_id`, for the texts of samples.
    """
    if not state:
        return None
    entries = read_entries(folder / LEDGER_FILE)
    # steps after the last checkpoint are trained again on a resume: the later loss is the one that counts
    losses = {e["step"]: e["loss"] for e in events if e["event"] == "train_log" and e.get("loss") is not None}
    selected = [entry for entry in entries if entry.kind == "selected"]
    scores = {entry.plan: _scores(folder, entry) for entry in selected}
    return {
        "status": state.get("status"),
        "adapter": state.get("adapter"),
        "steps": state.get("steps"),
        "seconds": state.get("seconds"),
        "train_loss": state.get("train_loss"),
        "eval_loss": state.get("eval_loss"),
        "gates": state.get("gates", []),
        "notes": list(state.get("notes", [])),
        "curve": [[step, losses[step]] for step in sorted(losses)],
        "plans": [_plan(entry, scores.get(entry.plan)) for entry in entries],
        "overlap": _overlaps(selected),
        **_samples(scores, rows),
    }


def _scores(folder: Path, entry: PlanEntry) -> dict[str, np.ndarray[Any, Any]] | None:
    path = folder / SCORES_FOLDER / f"plan-{entry.plan:04d}.parquet"
    if not path.is_file():
        return None
    table = pq.read_table(path)
    return {name: table[name].to_numpy(zero_copy_only=False) for name in ("id", "score", "selected")}


def _plan(entry: PlanEntry, scores: Mapping[str, np.ndarray[Any, Any]] | None) -> dict[str, Any]:
    values = scores["score"] if scores is not None else np.array([])
    finite = values[np.isfinite(values)] if len(values) else values
    return {
        "plan": entry.plan, "start": entry.start, "end": entry.end, "kind": entry.kind, "method": entry.method,
        "candidates": entry.candidates, "chosen": entry.chosen, "served": len(entry.ids),
        "quantiles": [float(np.quantile(finite, q)) for q in QUANTILES] if len(finite) else [],
        "metadata": {k: v for k, v in entry.metadata.items() if isinstance(v, str | int | float | bool)},
    }  # fmt: skip


def _overlaps(entries: Sequence[PlanEntry]) -> list[list[float]]:
    """Jaccard overlap of the rows served by every pair of selected plans."""
    sets = [set(entry.ids) for entry in entries]
    return [[len(a & b) / len(a | b) if a | b else 0.0 for b in sets] for a in sets]


def _samples(
    scores: Mapping[int, Mapping[str, np.ndarray[Any, Any]] | None], rows: Iterable[Mapping[str, Any]]
) -> dict[str, Any]:
    known = [(plan, table) for plan, table in scores.items() if table is not None and len(table["score"])]
    if not known:
        return {"best": [], "worst": []}
    plan, table = known[-1]
    order = np.lexsort((table["id"], -table["score"]))
    best = [(str(table["id"][i]), float(table["score"][i])) for i in order[:SHOWN_SAMPLES]]
    worst = [(str(table["id"][i]), float(table["score"][i])) for i in order[::-1][:SHOWN_SAMPLES]]
    wanted = {sample for sample, _ in (*best, *worst)}
    texts = {row[ID]: _text(row) for row in rows if row[ID] in wanted}

    def shown(pairs: Sequence[tuple[str, float]]) -> list[dict[str, Any]]:
        return [{"id": i, "score": s, "plan": plan, "text": texts.get(i, "")} for i, s in pairs]

    return {"best": shown(best), "worst": shown(worst)}


def _text(row: Mapping[str, Any]) -> str:
    messages = row.get("messages") or row.get("conversations")
    if isinstance(messages, list):
        turns = [
            f"{turn.get('role') or turn.get('from')}: {turn.get('content') or turn.get('value')}" for turn in messages
        ]
        return "\n".join(turns)[:TEXT_CHARS]
    return "\n".join(f"{k}: {v}" for k, v in row.items() if not k.startswith("_") and isinstance(v, str))[:TEXT_CHARS]
