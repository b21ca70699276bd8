"""Older workflow files: brought to version 1 in memory, with a finding for everything that changed meaning.

A migrated plan has another digest than anything approved before, so it is always reviewed again. Values written in
the file win over today's defaults.
"""

from collections.abc import Mapping
from typing import Any

from datamill.errors import Issue
from datamill.workflows.findings import Findings
from datamill.workflows.spec import FORMAT_VERSION

RENAMED = {
    "lang_filter": "filter.lang",
    "exact_dedup": "dedup.exact",
    "minhash_dedup": "dedup.minhash",
    "length_filter": "filter.length",
}
PARAMETERS_RENAMED = {"filter.lang": {"lang": "allow"}, "dedup.exact": {"column": "columns"}}
LISTS = {"allow", "columns"}


def migrate(data: Mapping[str, Any], findings: Findings) -> dict[str, Any]:
    """`data` as version 1.

    Findings: `DM-MIG-001` an unknown version, `DM-MIG-002` a renamed operator, `DM-MIG-003` a renamed parameter.
    """
    if "format_version" in data and "version" not in data:
        if data["format_version"] == 0:
            return _from_version_0(data, findings)
        findings.add(_unknown(data["format_version"]), ("format_version",))
    elif data.get("version", FORMAT_VERSION) != FORMAT_VERSION:
        findings.add(_unknown(data["version"]), ("version",))
        return {**data, "version": FORMAT_VERSION}
    return dict(data)


def _unknown(version: Any) -> Issue:
    message = f"this file says version {version!r}; this datamill reads versions 0 and {FORMAT_VERSION}"
    return Issue("DM-MIG-001", message, fix="pip install --upgrade datamill")


def _from_version_0(data: Mapping[str, Any], findings: Findings) -> dict[str, Any]:
    inputs: dict[str, Any] = {}
    outputs: dict[str, Any] = {}
    steps: list[dict[str, Any]] = []
    previous = ""
    written = data.get("steps")
    for index, old in enumerate(written if isinstance(written, list) else ()):
        if not isinstance(old, Mapping) or not isinstance(old.get("params", {}), Mapping):
            message = "a step of version 0 is a mapping with `op` and `params`"
            findings.add(Issue("DM-PLAN-008", message), ("steps", index))
            continue
        params = dict(old.get("params", {}))
        if old.get("op") == "load":
            previous = f"input{len(inputs)}" if inputs else "load"
            inputs[previous] = {"path": params.pop("path", ""), **({"options": params} if params else {})}
        elif old.get("op") == "export":
            outputs["export"] = {"from": previous, **params}
        else:
            step = _step(str(old.get("op")), params, previous, index, findings)
            steps.append(step)
            previous = step["id"]
    if not outputs and previous:
        outputs["export"] = {"from": previous, "path": "out/"}
    return {
        "version": FORMAT_VERSION,
        "name": str(data.get("name", "migrated")),
        "inputs": inputs,
        "steps": steps,
        "outputs": outputs,
    }


def _step(old: str, params: dict[str, Any], previous: str, index: int, findings: Findings) -> dict[str, Any]:
    place = ("steps", index)
    operator = RENAMED.get(old, old)
    step_id = operator.replace(".", "_")
    if operator != old:
        message = f"operator `{old}` is now called `{operator}`"
        findings.add(Issue("DM-MIG-002", message, severity="warning", step=step_id), (*place, "op"))
    for name, new in PARAMETERS_RENAMED.get(operator, {}).items():
        if name in params:
            value = params.pop(name)
            params[new] = [value] if new in LISTS and isinstance(value, str) else value
            message = f"parameter `{name}` is unknown to {operator}; it is now called `{new}`"
            findings.add(Issue("DM-MIG-003", message, severity="warning", step=step_id), (*place, "params", name))
    return {"id": step_id, "operator": operator, "needs": [previous], "params": params}
