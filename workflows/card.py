"""The data card: what a dataset holds, where it comes from, what was taken out, and how to make it again.

Follows the questions of Gebru et al. 2021, "Datasheets for Datasets", as far as a run can answer them by itself.
Text from the data is escaped, so that a card stays inert.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

LICENCE_FILES: Final = ("LICENSE", "LICENCE", "COPYING", "NOTICE")
LICENCE_COLUMNS: Final = ("license", "licence", "licenses", "rights")
NO_LICENCE: Final = "none found: check the terms of the sources before you publish"
_KNOWN: Final = {
    "Apache License": "Apache-2.0", "MIT License": "MIT", "Attribution-ShareAlike 4.0": "CC BY-SA 4.0",
    "Attribution 4.0": "CC BY 4.0", "CC0 1.0": "CC0 1.0", "GNU GENERAL PUBLIC LICENSE": "GPL", "BSD": "BSD",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class CardColumn:
    """A column of the dataset."""

    name: str
    dtype: str
    semantic: str = "any"
    null_share: float = 0.0


@dataclass(frozen=True, slots=True)
class CardSource:
    """An input: path as written in the workflow, rows read, sha256 of its bytes."""

    path: str
    rows: int
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class CardStep:
    """A step: rows before and after, and why rows left."""

    id: str
    operator: str
    rows_in: int
    rows_out: int
    reasons: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Card:
    """Everything a card says.

    Attributes:
        name: name of the output.
        rows: rows in it.
        command: command that makes it again.
        plan_digest: digest of the plan that made it.
        data_sha256: digest of the file.
        description: from the workflow.
        request: the person's words, when there were any.
        seed: seed of the workflow.
        columns: schema.
        sources: inputs.
        licences: what was found, see `find_licences`.
        pii: finds of personal data per kind.
        steps: the workflow's steps in order.
        limits: known limits of the data, one sentence each.
    """

    name: str
    rows: int
    command: str
    plan_digest: str
    data_sha256: str
    description: str = ""
    request: str = ""
    seed: int | None = None
    columns: Sequence[CardColumn] = ()
    sources: Sequence[CardSource] = ()
    licences: Sequence[str] = ()
    pii: Mapping[str, int] = field(default_factory=dict)
    steps: Sequence[CardStep] = ()
    limits: Sequence[str] = ()


def render_card(card: Card) -> str:
    """The card as Markdown."""
    facts = [("rows", f"{card.rows:,}"), ("plan", card.plan_digest), ("sha256", card.data_sha256)]
    facts += [("seed", str(card.seed))] if card.seed is not None else []
    parts = [
        f"# {_inert(card.name)}",
        *([_inert(card.description)] if card.description else []),
        *([f"> {_inert(card.request)}"] if card.request else []),
        "\n".join(f"- {key}: `{value}`" for key, value in facts),
        "## Columns\n\n" + _columns(card.columns),
        "## Sources\n\n" + _sources(card.sources),
        "## Licences\n\n" + "\n".join(f"- {_inert(line)}" for line in card.licences or (NO_LICENCE,)),
        "## Personal data\n\n" + _pii(card.pii),
        "## Filters\n\n" + _steps(card.steps),
        "## Limits\n\n" + "\n".join(f"- {_inert(line)}" for line in card.limits or ("none stated",)),
        f"## Make it again\n\n```sh\n{card.command}\n```",
    ]
    return "\n\n".join(parts) + "\n"


def find_licences(inputs: Iterable[Path], values: Iterable[str] = ()) -> tuple[str, ...]:
    """Licences named in the data and in files beside the inputs.

    Args:
        inputs: input files; their folders are looked at for `LICENSE*` and the like.
        values: values of a licence column (see `LICENCE_COLUMNS`).

    Returns:
        One line per finding, sorted, without repeats.
    """
    found = {f"in the data: {value}" for value in values if value}
    for folder in {path.parent for path in inputs}:
        for path in sorted(folder.glob("*")) if folder.is_dir() else ():
            if path.is_file() and path.name.upper().startswith(LICENCE_FILES):
                found.add(f"{path.name}: {_recognise(path)}")
    return tuple(sorted(found))


def _recognise(path: Path) -> str:
    head = path.read_text(encoding="utf-8", errors="replace")[:4000]
    names = [name for mark, name in _KNOWN.items() if mark.lower() in head.lower()]
    return names[0] if names else "not recognised, read it"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *lines])


def _columns(columns: Sequence[CardColumn]) -> str:
    rows = ([_inert(c.name), f"`{c.dtype}`", c.semantic, f"{c.null_share:.1%}"] for c in columns)
    return _table(("column", "type", "meaning", "null"), rows)


def _sources(sources: Sequence[CardSource]) -> str:
    return _table(("input", "rows", "sha256"), ([_inert(s.path), f"{s.rows:,}", s.sha256] for s in sources))


def _pii(counts: Mapping[str, int]) -> str:
    if not counts:
        return "Not looked for."
    lines = [f"- {kind}: {f'{count:,} found and treated' if count else 'none found'}" for kind, count in counts.items()]
    return "\n".join(sorted(lines))


def _steps(steps: Sequence[CardStep]) -> str:
    rows = (
        [step.id, f"`{step.operator}`", f"{step.rows_in:,}", f"{step.rows_out:,}", _reasons(step.reasons)]
        for step in steps
    )
    return _table(("step", "operator", "in", "out", "left because"), rows)


def _reasons(reasons: Mapping[str, int]) -> str:
    ordered = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{_inert(reason)} {count:,}" for reason, count in ordered)


def _inert(text: str) -> str:
    """One line without markup: no HTML, links, tables or code can start in it."""
    return re.sub(r"([\\`*_\[\]|~])", r"\\\1", " ".join(text.split())).replace("<", "&lt;").replace(">", "&gt;")
