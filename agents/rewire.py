"""Changes to a workflow as plain data that keep its graph whole, and the nearest valid plan to an invalid one.

`nearest_valid` applies what the compiler itself suggests: a misspelt name becomes its nearest match, a bad or unknown
parameter falls back to its default, a step that cannot be understood goes. Every change is told; inputs, outputs and
training are never touched, because no suggestion about them is harmless.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from datamill.errors import Issue, PlanError
from datamill.workflows.compile import CompileOptions, compile_text
from datamill.workflows.yaml_file import dump, parse

MAX_ROUNDS = 8
Step = dict[str, Any]


def without_steps(workflow: Mapping[str, Any], gone: Callable[[Step], bool]) -> dict[str, Any]:
    """The workflow without the steps for which `gone(step)` holds; their children are joined to their parents.

    >>> flow = {"steps": [{"id": "a", "needs": ["in"]}, {"id": "b", "needs": ["a"]}], "outputs": {"o": {"from": "b"}}}
    >>> without_steps(flow, lambda step: step["id"] == "b")["outputs"]
    {'o': {'from': 'a'}}
    """
    parents: dict[str, list[str]] = {}
    kept: list[Step] = []
    for step in workflow.get("steps") or ():
        needs = list(dict.fromkeys(p for name in needs_of(step) for p in parents.get(name, [name])))
        if gone(step):
            parents[str(step["id"])] = needs[:1]
        else:
            kept.append({**step, "needs": needs})
    outputs = {
        name: {**output, "from": (parents.get(output.get("from"), [output.get("from")]) or [None])[0]}
        for name, output in (workflow.get("outputs") or {}).items()
    }
    return {**workflow, "steps": kept, "outputs": outputs}


def needs_of(step: Mapping[str, Any]) -> list[str]:
    """Parents of a step, however they are written."""
    given = step.get("needs") or []
    return [given] if isinstance(given, str) else [str(name) for name in given]


def carried_over(workflow: Mapping[str, Any], before: Mapping[str, Any] | None) -> dict[str, Any]:
    """The workflow with what a planner has no words for: run, checks, params, reader options, `on_error`.

    A person may have set these in the version `before`; a change of something else must not lose them.
    """
    if not before:
        return dict(workflow)
    kept = {key: before[key] for key in ("params", "run") if before.get(key) and not workflow.get(key)}
    ids = {str(step["id"]) for step in workflow["steps"]} | set(workflow["outputs"])
    checks = [check for check in before.get("checks") or () if check.get("on") in ids]
    known = {str(step.get("id")): step for step in before.get("steps") or ()}
    steps = [{**_on_error(known.get(str(step["id"]), {})), **step} for step in workflow["steps"]]
    inputs = {
        name: _reader(entry, (before.get("inputs") or {}).get(name)) for name, entry in workflow["inputs"].items()
    }
    return {**workflow, **kept, "inputs": inputs, "steps": steps, **({"checks": checks} if checks else {})}


def _on_error(step: Mapping[str, Any]) -> dict[str, Any]:
    return {"on_error": step["on_error"]} if step.get("on_error") else {}


def _reader(entry: Mapping[str, Any], before: Mapping[str, Any] | None) -> dict[str, Any]:
    same = before is not None and before.get("path") == entry.get("path")
    return {**(before if same and before is not None else {}), **entry}


def nearest_valid(text: str, options: CompileOptions) -> tuple[str, list[str]] | None:
    """The nearest workflow that compiles and what was changed, or None when there is none to be had.

    Args:
        text: a workflow that does not compile.
        options: how it is compiled.
    """
    changes: list[str] = []
    for _ in range(MAX_ROUNDS):
        try:
            compile_text(text, options, "plan.yaml")
        except PlanError as error:
            mended = _mended(text, [issue for issue in error.issues if issue.severity == "error"], changes)
            if mended is None:
                return None
            text = mended
        else:
            return text, changes
    return None


def _mended(text: str, issues: Sequence[Issue], changes: list[str]) -> str | None:
    try:
        flow: dict[str, Any] = dict(parse(text).data)
    except PlanError:
        return None
    steps = {str(step.get("id")): step for step in flow.get("steps") or () if isinstance(step, dict)}
    touched = False
    for issue in issues:
        step = steps.get(issue.step or "")
        if step is None or step not in flow["steps"]:
            continue
        flow = _mend(flow, step, issue, changes)
        touched = True
    return dump(flow) if touched else None


def _mend(flow: dict[str, Any], step: Step, issue: Issue, changes: list[str]) -> dict[str, Any]:
    name = (issue.field or "").removeprefix("params.")
    params = step.get("params") or {}
    if issue.code == "DM-OP-001" and issue.nearest:
        changes.append(f"{step['id']}: `{step['operator']}` -> `{issue.nearest}`")
        step["operator"] = issue.nearest
    elif issue.code == "DM-PLAN-007" and name in params:
        value = params.pop(name)
        changes.append(f"{step['id']}.{name}: " + (f"renamed `{issue.nearest}`" if issue.nearest else "taken out"))
        if issue.nearest and issue.nearest not in params:
            params[issue.nearest] = value
    elif issue.code == "DM-PLAN-009" and name.split(".")[0] in params:
        changes.append(f"{step['id']}.{name}: `{params.pop(name.split('.')[0])}` -> its default")
    else:
        changes.append(f"- {step['id']} ({step.get('operator')}): {issue.message}")
        return without_steps(flow, lambda other: other is step)
    return flow
