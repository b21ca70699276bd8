"""Write the pages of docs/ that are made from the code: operators.md, cli.md, errors.md.

    python scripts/make_docs.py

A test compares the committed pages with what this makes.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cli_surface import surface

from datamill.operators.declaration import Operator
from datamill.operators.registry import catalogue

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SOURCES = ("src/datamill", "agents", "operators", "services", "training", "workflows")
CODE = re.compile(r"DM-[A-Z]+-\d{3}")
AREAS = {
    "AGENT": "planning, review and approval", "API": "the Python interface", "CFG": "settings",
    "CLI": "the command line",
    "DEDUP": "deduplication", "ENGINE": "engines", "ENV": "what is installed", "LEDGER": "the row ledger",
    "LLM": "language models", "MIG": "older workflow files", "OP": "the operator catalogue", "OPA": "operators on rows",
    "OPB": "operators on sets of rows", "PATH": "paths", "PLAN": "workflow files", "READ": "reading", "RUN": "runs",
    "SIG": "signals and selection", "TRAIN": "training",
}  # fmt: skip
SAID = {
    "DM-AGENT-006": "the request is unclear: the question to answer",
    "DM-AGENT-007": "the request is declined: what, and why",
    "DM-AGENT-101": "declined: a benchmark's test questions may not be trained on or aimed at",
    "DM-AGENT-102": "declined: a path outside the project",
    "DM-AGENT-103": "declined: a source that infringes rights",
    "DM-AGENT-104": "declined: collecting personal data",
    "DM-AGENT-105": "declined: hiding where data comes from",
    "DM-AGENT-106": "declined: a secret in the request",
    "DM-AGENT-107": "declined: sending data to an outside service",
    "DM-AGENT-108": "declined: a medium that is not text",
    "DM-AGENT-109": "declined: something no operator can do",
    "DM-AGENT-110": "declined: a run without approval",
    "DM-CLI-001": "a command line that cannot be understood: what and where",
    "DM-CLI-007": "the operating system refused a file or folder: its own words",
    "DM-CLI-008": "flags that contradict each other: which, and why",
    "DM-CLI-014": "`/save` without a name, or without a plan",
    "DM-DEDUP-001": "a threshold or size out of its range",
    "DM-ENGINE-013": "a node of the Ray cluster does not see the project folder: which, and which folder",
    "DM-ENGINE-022": "Spark does not start, its master does not answer, or its executors take no task: what, and where",
    "DM-ENGINE-024": "an executor of the Spark cluster does not see the project folder: which, and which folder",
    "DM-READ-008": "a JSON document in which no records can be found",
    "DM-READ-106": "remark: how the records of a JSON document were found",
    "DM-SIG-011": "a parameter the method does not have, or a value it does not take",
    "DM-TRAIN-030": "a model that could not be fetched, or whose sha256 is not the expected one",
}
"""Codes whose message is put together at run time."""
MADE = "<!-- made by scripts/make_docs.py; do not edit -->"


def operators_page() -> str:
    """Every operator with its parameters."""
    lines = [
        "# Operators",
        "",
        MADE,
        "",
        "The same declarations feed validation, the planner and `datamill ops show`.",
        "",
    ]
    lines += ["| operator | rows | bound | what it does |", "|---|---|---|---|"]
    lines += [
        f"| [{o.id}](#{_anchor(o.id)}) | {o.effect.value} | {o.bound.value} | {o.summary} |"
        for o in catalogue().values()
    ]
    for operator in catalogue().values():
        lines += ["", *_operator(operator)]
    return "\n".join(lines) + "\n"


def _anchor(name: str) -> str:
    return name.replace(".", "")


def _operator(operator: Operator[Any]) -> list[str]:
    schema = operator.params.model_json_schema()
    lines = [f"## {operator.id}", "", operator.summary, ""]
    if schema.get("properties"):
        lines += ["| parameter | type | default | meaning |", "|---|---|---|---|"]
        lines += [_parameter(name, info, schema) for name, info in schema["properties"].items()]
        lines.append("")
    if operator.reasons:
        lines.append(f"Reasons in the ledger: {', '.join(f'`{reason}`' for reason in operator.reasons)}.")
    if operator.reference:
        lines.append(f"Source: {operator.reference}.")
    return lines if lines[-1] else lines[:-1]


def _parameter(name: str, info: dict[str, Any], schema: dict[str, Any]) -> str:
    default = "required" if name in schema.get("required", []) else f"`{info.get('default')!r}`"
    cells = (f"`{name}`", _type(info, schema), default, info.get("description", ""))
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _type(info: dict[str, Any], schema: dict[str, Any]) -> str:
    if "$ref" in info:
        return _type(schema["$defs"][info["$ref"].rsplit("/", 1)[-1]], schema)
    if "anyOf" in info:
        return " or ".join(dict.fromkeys(_type(item, schema) for item in info["anyOf"]))
    if "enum" in info:
        return ", ".join(f"`{value}`" for value in info["enum"])
    if "const" in info:
        return f"`{info['const']}`"
    bounds = [
        f"{sign} {info[key]}"
        for key, sign in (("minimum", ">="), ("exclusiveMinimum", ">"), ("maximum", "<="), ("exclusiveMaximum", "<"))
        if key in info
    ]
    kind = str(info.get("type", "value"))
    if kind == "array" and isinstance(info.get("items"), dict):
        kind = f"list of {_type(info['items'], schema)}"
    return f"{kind} {', '.join(bounds)}".strip()


def cli_page() -> str:
    """`--help` of every command."""
    files = surface()
    lines = [
        "# Command line",
        "",
        MADE,
        "",
        "Results go to stdout, the conversation to stderr; `--json` prints one document.",
        "",
    ]
    for name in sorted(name for name in files if name != "surface.txt"):
        command = name.removesuffix(".txt").replace("_", " ")
        lines += [f"## {command}", "", "```text", files[name].rstrip(), "```", ""]
    return "\n".join(lines).rstrip() + "\n"


def errors_page() -> str:
    """Every code with the messages that carry it."""
    found: dict[str, dict[str, None]] = {}
    for path in sorted(p for folder in SOURCES for p in (ROOT / folder).rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for code, message in _raised(tree):
            found.setdefault(code, {}).update({message: None} if message else {})
    lines = [
        "# Error codes",
        "",
        MADE,
        "",
        "A finding names its code, the place, what was expected, the nearest valid value and the fix.",
    ]
    lines += ["Codes are stable: they never change their meaning. `{...}` stands for what the message names.", ""]
    area = ""
    for code in sorted(found):
        if (here := code.split("-")[1]) != area:
            area = here
            lines += [f"## DM-{area}: {AREAS[area]}", "", "| code | says |", "|---|---|"]
        messages = [SAID[code]] if code in SAID else list(found[code])
        says = "<br>".join(message.replace("|", "\\|") for message in messages) or "see the finding"
        lines.append(f"| `{code}` | {says} |")
        if code == max(c for c in found if c.split("-")[1] == area):
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _raised(tree: ast.AST) -> Iterator[tuple[str, str | None]]:
    """Codes in calls with the message that follows them; docstrings are not looked at."""
    for scope in ast.walk(tree):
        if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            continue
        words = {
            t.id: node.value
            for node in ast.walk(scope)
            if isinstance(node, ast.Assign)
            for t in node.targets
            if isinstance(t, ast.Name)
        }
        for call in (node for node in ast.walk(scope) if isinstance(node, ast.Call)):
            for index, argument in enumerate(call.args):
                if (
                    isinstance(argument, ast.Constant)
                    and isinstance(argument.value, str)
                    and CODE.fullmatch(argument.value)
                ):
                    following = call.args[index + 1] if index + 1 < len(call.args) else None
                    if isinstance(following, ast.Name):
                        following = words.get(following.id) if not isinstance(scope, ast.Module) else None
                    yield argument.value, _text(following)


def _text(node: ast.expr | None) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and not CODE.fullmatch(node.value):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = [str(v.value) if isinstance(v, ast.Constant) else "{...}" for v in node.values]
        return "".join(parts).split("\n")[0]
    return None


PAGES = {"operators.md": operators_page, "cli.md": cli_page, "errors.md": errors_page}


def main() -> None:
    """Write every page."""
    for name, make in PAGES.items():
        (DOCS / name).write_text(make(), encoding="utf-8")
        sys.stdout.write(f"docs/{name}\n")


if __name__ == "__main__":
    main()
