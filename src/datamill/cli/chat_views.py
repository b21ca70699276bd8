"""What the slash commands of `datamill chat` show: each a function from a turn to text."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from datamill.agents.conversation import Turn
from datamill.agents.retrieval import retrieve
from datamill.agents.services import ThreadServices
from datamill.cli.preview import duration
from datamill.errors import DatamillError, ExitCode, Issue, nearest
from datamill.operators.registry import catalogue
from datamill.workflows.estimate import sample_rows
from datamill.workflows.paths import PathPolicy
from datamill.workflows.plan import Plan
from datamill.workflows.run_record import list_runs

SAMPLE_COUNT = 5
MAX_CELL_CHARS = 160
MAX_RUNS = 10


def why(turn: Turn, step: str, services: ThreadServices) -> str:
    """Reason, operator, parameters and expected rows of a step."""
    plan = turn.plan(services)
    found = plan.step(_known_step(plan, step))
    operator = catalogue()[found.operator]
    rows = next((s["rows"] for s in turn.payload["estimate"].get("steps", ()) if s["step"] == step), None)
    given = {key: value for key, value in found.params.items() if value not in (None, [], {}, "")}
    lines = [f"  {step}  {found.operator}: {operator.summary}", f"  why     {found.why or 'no reason was given'}",
             f"  params  {json.dumps(given, ensure_ascii=False, default=str)}"]  # fmt: skip
    if rows is not None:
        lines.append(f"  rows    {rows:,} expected after it")
    return "\n".join(lines)


def sample(turn: Turn, step: str, services: ThreadServices) -> str:
    """The first rows a step leaves of the sample, and how many of the sampled rows it kept."""
    plan = turn.plan(services)
    found = plan.step(_known_step(plan, step))
    rows, kept, before = sample_rows(plan, step, services.project, services.allow_paths, SAMPLE_COUNT)
    note = " (not run on the sample: these are the rows that would go in)" if found.bound in {"llm", "gpu"} else ""
    lines = [f"  {step}: {kept:,} of {before:,} sampled rows{note}"]
    for row in rows:
        text = json.dumps(row, ensure_ascii=False, default=str)
        lines.append(f"  {text if len(text) <= MAX_CELL_CHARS else text[: MAX_CELL_CHARS - 1] + '…'}")
    return "\n".join(lines)


def estimate(turn: Turn) -> str:
    """Expected rows, seconds and calls of every step, and the whole."""
    found = turn.payload["estimate"]
    width = max(len(step["step"]) for step in found["steps"])
    lines = [_estimate_line(step, width) for step in found["steps"]]
    total = (
        f"  in all {duration(found['seconds'])}, ${found['llm_usd']:.4f}, from {found['sample_rows']:,} sampled rows"
    )
    return "\n".join([*lines, total])


def _estimate_line(step: Mapping[str, Any], width: int) -> str:
    line = f"  {step['step']:<{width}}  {step['rows']:>10,} rows  {duration(step['seconds']):>7}"
    if step["llm_calls"]:
        line += f"  {step['llm_calls']:,} LLM calls"
    return f"{line}  {step['note']}".rstrip()


def operators(words: str) -> str:
    """Operators that fit words in any of the languages of the catalogue."""
    known = catalogue()
    fitting = retrieve(words)["operators"] or [name for name in known if words.casefold() in name]
    width = max((len(name) for name in fitting), default=0)
    return "\n".join(f"  {name:<{width}}  {known[name].summary}" for name in fitting) or "  none fits"


def runs(project: Path) -> str:
    """The newest runs."""
    found = list(reversed(list_runs(project)))[:MAX_RUNS]
    lines = [f"  {run.id}  {run.state()['status']}  {run.state()['digest'][:12]}" for run in found]
    return "\n".join(lines) or "  no runs yet"


def cost(turn: Turn | None) -> str:
    """Calls, tokens and money of planning, and what the run is expected to cost."""
    spent = turn.state.get("planner_cost", {}) if turn else {}
    calls, tokens, usd = (spent.get(name, 0) for name in ("calls", "tokens", "usd"))
    lines = [f"  planning  {calls:,.0f} calls, {tokens:,.0f} tokens, ${usd:.4f}"]
    if turn is not None and turn.payload.get("estimate"):
        found = turn.payload["estimate"]
        calls = sum(step["llm_calls"] for step in found["steps"])
        lines.append(f"  the run   {calls:,} LLM calls, ${found['llm_usd']:.4f} expected")
    return "\n".join(lines)


def read_workflow(project: Path, name: str) -> str:
    """Text of a workflow file inside the project.

    Raises:
        DatamillError: `DM-PATH-001` outside the project, `DM-CLI-013` when it cannot be read.
    """
    policy = PathPolicy.of(project)
    _raise(policy.check_read(name, "edit"))
    try:
        return policy.resolve(name).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        message = f"cannot read `{name}`: {error}"
        raise DatamillError("DM-CLI-013", message, exit_code=ExitCode.USAGE, file=name) from error


def save(project: Path, turn: Turn, name: str) -> Path:
    """Write the thread's workflow to a new file inside the project.

    Raises:
        DatamillError: `DM-CLI-014` without a name or a plan, `DM-PATH-002` outside, `DM-PATH-006` when it exists.
    """
    text = turn.state.get("yaml", "")
    if not name or not text:
        what = "there is no plan to save" if name else "/save takes a file name"
        raise DatamillError("DM-CLI-014", what, exit_code=ExitCode.USAGE, fix="/save plan.yaml")
    policy = PathPolicy.of(project)
    _raise(policy.check_write(name, "save", ()))
    path = policy.resolve(name)
    if path.exists() and (not path.is_file() or path.read_text(encoding="utf-8", errors="replace") != text):
        message = f"`{name}` exists and is not replaced"
        raise DatamillError("DM-PATH-006", message, exit_code=ExitCode.NEEDS_APPROVAL, fix="/save another-name.yaml")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def _known_step(plan: Plan, step: str) -> str:
    names = [known.id for known in plan.steps]
    if step in names:
        return step
    message = f"there is no step `{step}`" if step else "name a step"
    raise DatamillError("DM-CLI-003", message, exit_code=ExitCode.USAGE,
                        nearest=nearest(step, names), expected=", ".join(names))  # fmt: skip


def _raise(issue: Issue | None) -> None:
    if issue is not None:
        raise DatamillError(issue.code, issue.message, exit_code=ExitCode.INVALID, issues=[issue])
