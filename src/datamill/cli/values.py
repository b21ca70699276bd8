"""Reading values from the command line: `--set` pairs, money, and the compile options of a session."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from datamill.cli.session import Session, usage_error
from datamill.settings import resolve
from datamill.workflows.compile import CompileOptions, compile_file
from datamill.workflows.plan import Plan
from datamill.workflows.run_record import STATE, find_run


def parse_set(pairs: Sequence[str]) -> dict[str, Any]:
    """`name=value` pairs; values are YAML scalars or lists."""
    values: dict[str, Any] = {}
    for pair in pairs:
        name, mark, text = pair.partition("=")
        if not mark or not name:
            raise usage_error(
                f"--set takes name=value, not `{pair}`", "datamill run plan.yaml --set steps.near.params.threshold=0.7"
            )
        try:
            values[name] = YAML(typ="safe", pure=True).load(text) if text else ""
            json.dumps(values[name], default=str, skipkeys=True)  # ValueError: an alias made it contain itself
        except (YAMLError, ValueError) as error:
            raise usage_error(f"--set {name}: `{text}` is not a YAML value") from error
    return values


def parse_money(text: str | None) -> float | None:
    """Dollars of `--budget`: `2`, `2.00USD`."""
    if text is None:
        return None
    try:
        value = float(text.upper().removesuffix("USD").strip())
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise usage_error(f"--budget takes an amount such as 2.00USD, not `{text}`")
    return value


def compile_options(session: Session, overrides: Sequence[str] = (), *, check_training: bool = True) -> CompileOptions:
    """How this session compiles workflows."""
    settings = resolve(session.project).settings
    return CompileOptions(
        session.project, settings.allow_paths, settings.allow_env, parse_set(overrides), check_training
    )  # fmt: skip


def plan_file(session: Session, name: str) -> Path:
    """The workflow file behind a file name, or the plan of a run (`@last`, a run id)."""
    path = Path(name) if Path(name).is_absolute() else session.project / name
    if path.is_file():
        return path
    folder = path if (path / STATE).is_file() else None
    if folder is not None or not name.endswith((".yaml", ".yml")):
        return find_run(session.project, str(folder) if folder is not None else name).plan_file
    raise usage_error(f"there is no workflow file `{name}`", "datamill runs list")


def load_plan(session: Session, name: str, overrides: Sequence[str] = (), *, check_training: bool = True) -> Plan:
    """Compile the workflow that `name` names."""
    return compile_file(plan_file(session, name), compile_options(session, overrides, check_training=check_training))
