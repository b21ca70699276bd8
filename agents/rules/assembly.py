"""A workflow being put together, and the ids in it."""

import re
from dataclasses import dataclass, field
from typing import Any

from datamill.agents.draft import MissingCapability
from datamill.agents.rules.request import fold

_STEP_IDS = {
    "text.fix_unicode": "repair",
    "text.normalize": "normalise",
    "filter.length": "length",
    "lang.detect": "detect",
    "filter.lang": "language",
    "filter.gopher_quality": "quality",
    "filter.refusal": "refusals",
    "filter.expr": "rows",
    "pii.redact": "privacy",
    "dedup.exact": "exact",
    "dedup.minhash": "near",
    "decon.ngram": "decontaminate",
    "math.verify": "verify",
    "augment.paraphrase": "paraphrase",
    "format.chat": "chat",
    "format.alpaca": "alpaca",
    "format.preference": "pairs",
    "sample.random": "sample",
    "sample.stratified": "sample",
    "split": "split",
    "mix.concat": "mix",
    "report.stats": "stats",
    "filter.topk": "best",
    "filter.score": "score",
}


@dataclass
class Assembly:
    """A workflow being put together.

    Attributes:
        workflow: YAML v1 as plain data.
        missing: wishes without an operator.
        why: reason by step id.
        unresolved: names of data that no attached file has.
        new_path: where the result is written.
    """

    workflow: dict[str, Any] = field(default_factory=dict)
    missing: list[MissingCapability] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)
    hazards: list[str] = field(default_factory=list)
    why: dict[str, str] = field(default_factory=dict)
    unresolved: list[str] = field(default_factory=list)
    new_path: str = "out/clean.jsonl"
    has_input: bool = True


def step_name(operator: str) -> str:
    """Usual id of a step."""
    return _STEP_IDS.get(operator, operator.rsplit(".", maxsplit=1)[-1])


def identifier(text: str, taken: dict[str, Any] | set[str]) -> str:
    """An id of the form `[a-z][a-z0-9_]{0,30}` from any text, not in `taken`.

    >>> identifier("Data-2024", set())
    'data_2024'
    """
    base = re.sub(r"[^a-z0-9]+", "_", fold(text)).strip("_") or "data"
    base = (base if base[0].isalpha() else f"d_{base}")[:27].rstrip("_")
    name, number = base, 2
    while name in taken:
        name, number = f"{base}_{number}", number + 1
    return name
