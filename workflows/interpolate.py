"""`${params.x}`, `${env.NAME}` and `${inputs.a.path}`: the only substitutions in a workflow file.

There is no expression language here and no template engine; strings that look like code are refused by
`suspicious_code` so that a file somebody sent you cannot smuggle any in.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from datamill.errors import Issue, nearest

REFERENCE = re.compile(r"\$\{([^{}]*)\}")
CODE = re.compile(
    r"(^\s*lambda\b[^:]*:)|(__\w+__)|(\{\{.*\}\})|(\{%.*%\})|(\$\()|(^\s*import\s+\w)|"
    r"\b(eval|exec|compile|getattr|os\.system|os\.popen|subprocess\.\w+)\s*\(",
    re.DOTALL,
)


@dataclass
class Interpolation:
    """Substitutes references in plain data and collects findings.

    Attributes:
        params: the workflow's `params`, after `--set`.
        env: allow-listed environment variables.
        inputs: input names to their paths.
        issues: what was wrong, with the path of the value.
    """

    params: Mapping[str, Any]
    env: Mapping[str, str]
    inputs: Mapping[str, str]
    issues: list[tuple[tuple[str | int, ...], Issue]] = field(default_factory=list)

    def apply(self, value: Any, path: tuple[str | int, ...] = ()) -> Any:
        """`value` with every reference replaced; a lone `${...}` keeps the type of what it names."""
        if isinstance(value, Mapping):
            return {key: self.apply(item, (*path, key)) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.apply(item, (*path, index)) for index, item in enumerate(value)]
        if not isinstance(value, str):
            return value
        whole = REFERENCE.fullmatch(value)
        if whole:
            return self._look_up(whole.group(1), path)
        return REFERENCE.sub(lambda match: str(self._look_up(match.group(1), path)), value)

    def _look_up(self, name: str, path: tuple[str | int, ...]) -> Any:
        scope, _, rest = name.partition(".")
        tables: dict[str, Mapping[str, Any]] = {
            "params": self.params,
            "env": self.env,
            "inputs": {f"{key}.path": value for key, value in self.inputs.items()},
        }
        table = tables.get(scope)
        if table is not None and rest in table:
            return table[rest]
        known = [f"{key}.{item}" for key, items in tables.items() for item in items]
        fix = f'allow_env = ["{rest}"] in datamill.toml' if scope == "env" else None
        message = f"`${{{name}}}` names nothing"
        self.issues.append((path, Issue("DM-PLAN-010", message, nearest=nearest(name, known), fix=fix)))
        return ""


def suspicious_code(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[tuple[str | int, ...], Issue]]:
    """Findings `DM-PLAN-011` for strings below `value` that look like code or templates."""
    if isinstance(value, Mapping):
        return [hit for key, item in value.items() for hit in suspicious_code(item, (*path, key))]
    if isinstance(value, list | tuple):
        return [hit for index, item in enumerate(value) for hit in suspicious_code(item, (*path, index))]
    if isinstance(value, str) and CODE.search(value):
        message = f"`{value[:60]}` looks like code; parameters are data"
        return [(path, Issue("DM-PLAN-011", message, fix="use filter.expr or columns.map with an expression"))]
    return []
