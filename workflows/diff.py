"""The semantic difference of two plans: steps, parameters, inputs and outputs, not lines of text."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from datamill.workflows.plan import Plan


def diff_plans(before: Plan, after: Plan) -> list[str]:
    """Differences that matter for the result, one a line: `+` added, `-` removed, `~` changed."""
    return diff_consents(before.consent(), after.consent())


def diff_consents(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Differences of two consents (see `Plan.consent`)."""
    lines: list[str] = []
    lines += _diff_steps(before["steps"], after["steps"])
    lines += _diff_named("output", before["outputs"], after["outputs"])
    for key in ("seed", "budget", "train", "checks"):
        lines += _changes(key, before.get(key), after.get(key))
    return lines


def _diff_steps(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> list[str]:
    old = {step["id"]: step for step in before}
    new = {step["id"]: step for step in after}
    lines = [f"- {name} ({old[name]['operator']})" for name in old if name not in new]
    lines += [f"+ {name} ({new[name]['operator']}){_short(new[name]['params'])}" for name in new if name not in old]
    for name in (name for name in new if name in old):
        for key in ("operator", "needs", "params", "on_error", "files"):
            where = name if key == "params" else f"{name}.{key}"
            lines += _changes(where, old[name][key], new[name][key])
        if old[name]["content"] != new[name]["content"]:
            lines.append(f"~ {name}: the content of the input changed")
        if old[name]["version"] != new[name]["version"]:
            lines.append(f"~ {name}: operator version {old[name]['version']} -> {new[name]['version']}")
    shared_old = [name for name in old if name in new]
    shared_new = [name for name in new if name in old]
    if shared_old != shared_new:
        lines.append(f"~ order: {' > '.join(shared_new)}")
    return lines


def _diff_named(what: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    lines = [f"- {what} {name}" for name in before if name not in after]
    lines += [f"+ {what} {name} -> {after[name].get('path')}" for name in after if name not in before]
    for name in (name for name in after if name in before):
        lines += _changes(f"{what} {name}", before[name], after[name])
    return lines


def _changes(where: str, before: Any, after: Any) -> list[str]:
    return [f"~ {path}  {_value(old)} -> {_value(new)}" for path, old, new in _walk(where, before, after)]


def _walk(where: str, before: Any, after: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in [*before, *(key for key in after if key not in before)]:
            yield from _walk(f"{where}.{key}", before.get(key), after.get(key))
    elif before != after:
        yield where, before, after


def _value(value: Any) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _short(params: Mapping[str, Any]) -> str:
    shown = {key: value for key, value in params.items() if value not in (None, [], {}, "")}
    return " " + " ".join(f"{key}={_value(value)}" for key, value in list(shown.items())[:4]) if shown else ""
