"""Reports for tests: of a small run, with everything that differs between runs made the same, and with training."""

from pathlib import Path
from typing import Any

from support.project import approved_run, compiled, make_project

from datamill.workflows.report import build_report
from datamill.workflows.run_record import find_run

TRAINING: dict[str, Any] = {
    "status": "done", "adapter": "runs/x/train/model", "steps": 4, "seconds": 312.4, "train_loss": 1.5, "eval_loss": 1.25,
    "gates": [{"metric": "eval_loss", "min": None, "max": 1.5, "value": 1.25, "passed": True}],
    "notes": ["after 2 optimizer steps Adam's features are noisy"],
    "curve": [[1, 2.0], [2, 1.5], [3, 1.75], [4, 1.0]],
    "plans": [
        {"plan": 0, "start": 0, "end": 2, "kind": "natural", "method": "less", "candidates": 0, "chosen": 8, "served": 8,
         "quantiles": [], "metadata": {}},
        {"plan": 1, "start": 2, "end": 3, "kind": "selected", "method": "less", "candidates": 20, "chosen": 4, "served": 4,
         "quantiles": [-0.5, -0.25, 0.0, 0.125, 0.25, 0.5, 1.0], "metadata": {}},
        {"plan": 2, "start": 3, "end": 4, "kind": "selected", "method": "less", "candidates": 20, "chosen": 4, "served": 4,
         "quantiles": [-0.25, 0.0, 0.25, 0.375, 0.5, 0.75, 0.875], "metadata": {}},
    ],
    "overlap": [[1.0, 0.25], [0.25, 1.0]],
    "best": [{"id": "aa", "score": 0.875, "plan": 2, "text": "user: 3 + 4?\nassistant: 7"}],
    "worst": [{"id": "bb", "score": -0.25, "plan": 2, "text": "user: a letter\nassistant: Dear sea"}],
}  # fmt: skip
HISTORY = {
    "turns": [["you", "clean rows.jsonl"], ["you", "keep only 40 rows"]], "changes": ["+ pick (sample.random) n=40"],
    "planner": "rules", "planner_cost": {},
}  # fmt: skip
USAGE = {"requests": 3, "calls": 4, "cached": 1, "failed": 0, "retries": 1, "rate_limited": 0, "tokens_in": 120,
         "tokens_out": 30, "usd": 0.0021}  # fmt: skip


def small_report(folder: Path, **options: Any) -> dict[str, Any]:
    """The report of the small project, run in `folder`."""
    make_project(folder)
    plan = compiled(folder)
    approved_run(folder, plan, **options)
    return build_report(folder, find_run(folder, "@last"), plan)


def same_everywhere(report: dict[str, Any]) -> dict[str, Any]:
    """The report without what the clock, the machine and the installed versions put into it."""
    run = {**report["run"], "id": "RUN", "digest": "0" * 64, "started": "2026-01-02T03:04:05+00:00",
           "finished": "2026-01-02T03:04:06+00:00", "seconds": 1.25}  # fmt: skip
    approval = {**report["approval"], "digest": "0" * 64, "time": "2026-01-02T03:04:00+00:00"}
    steps = [{**step, "seconds": 0.5, "rows_per_s": 2 * step["in"]} for step in report["steps"]]
    cards = dict.fromkeys(report["cards"], "# card\n")
    environment = {"python": "3", "platform": "Linux", "machine": "any", "cores": 2, "packages": {}}
    return {**report, "run": run, "approval": approval, "steps": steps, "cards": cards, "environment": environment,
            "plan": {**report["plan"], "digest": "0" * 64}}  # fmt: skip


def full_report(folder: Path) -> dict[str, Any]:
    """`same_everywhere` with a conversation, language model usage and a training part."""
    report = same_everywhere(small_report(folder))
    llm = {"steps": {"chat": USAGE}, "total": USAGE}
    return {**report, "training": TRAINING, "history": HISTORY, "llm": llm}
