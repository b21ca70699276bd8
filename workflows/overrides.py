"""`--set name=value`: values given on the command line, checked before they replace anything."""

import copy
from collections.abc import Mapping
from typing import Any

from ruamel.yaml.comments import CommentedMap

from datamill.errors import Issue, nearest
from datamill.workflows.findings import Findings


def apply_overrides(data: Mapping[str, Any], overrides: Mapping[str, Any], findings: Findings) -> dict[str, Any]:
    """`data` with overrides applied; `DM-PLAN-060` for a name that leads nowhere.

    Steps are addressed by id (`steps.near.params.threshold`), everything else by key.
    """
    changed: dict[str, Any] = copy.deepcopy(dict(data))
    for name, value in overrides.items():
        issue = _set(changed, name.split("."), value, name)
        if issue is not None:
            findings.add(issue)
    return changed


def override_tree(tree: CommentedMap, overrides: Mapping[str, Any]) -> CommentedMap:
    """A copy of a round-trip tree with overrides that `apply_overrides` has found to be right; comments stay."""
    changed = copy.deepcopy(tree)
    for name, value in overrides.items():
        _set(changed, name.split("."), value, name)
    return changed


def _set(data: dict[str, Any], parts: list[str], value: Any, name: str) -> Issue | None:
    node: Any = data
    for depth, part in enumerate(parts[:-1]):
        children = _children(node)
        if part in children:
            node = children[part]
        elif isinstance(node, dict) and part in {"params", "run", "budget", "options", "ray", "spark", "conf"}:
            node = node.setdefault(part, {})
        else:
            where = ".".join(parts[:depth]) or "the workflow"
            message = f"--set {name}: there is no `{part}` in {where}"
            return Issue("DM-PLAN-060", message, nearest=nearest(part, children))
    if not isinstance(node, dict):
        return Issue("DM-PLAN-060", f"--set {name}: `{parts[-1]}` cannot be set there")
    node[parts[-1]] = value
    return None


def _children(node: Any) -> dict[str, Any]:
    if isinstance(node, dict):
        return node
    if isinstance(node, list):
        return {str(item["id"]): item for item in node if isinstance(item, dict) and "id" in item}
    return {}
