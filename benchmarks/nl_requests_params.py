"""Where a generic parameter stands in a draft, and when two values are the same."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from nl_requests_vocabulary import capabilities_of

from datamill.agents.draft import Draft

NAMES: dict[str, tuple[str, ...]] = {
    "threshold": ("threshold", "max_similarity"),
    "ngram": ("ngram", "n"),
    "unit": ("unit",),
    "keep": ("keep",),
    "columns": ("columns", "column"),
    "min": ("min",),
    "max": ("max", "max_similarity", "max_rouge_l"),
    "total_rows": ("n",),
    "pred": ("prediction",),
    "languages": ("allow", "language"),
    "language": ("language", "allow"),
    "benchmarks": ("against",),
    "types": ("entities",),
    "entities": ("entities",),
    "mode": ("mode",),
    "n": ("n", "max_per_group"),
    "stratify_by": ("by", "stratify_by"),
    "by": ("by", "stratify_by"),
    "ratios": ("ratios",),
    "max_per_group": ("max_per_group",),
    "weights": ("weights",),
    "per_section": ("n",),
    "n_per_row": ("n",),
    "rule": ("rule",),
    "rounds": ("rounds",),
    "min_score": ("min_score",),
    "scale": ("scale",),
    "target": ("target",),
    "labels": ("labels",),
    "drop_quantile": ("drop_quantile",),
    "path": ("path",),
    "fraction": ("fraction",),
    "ratio": ("fraction",),
    "confidence": ("min_score",),
    "size": ("size",),
    "overlap": ("overlap",),
    "action": ("action", "on_wrong"),
}
"""Generic parameter names to the operators' own."""

WORDS: dict[str, str] = {
    "characters": "chars",
    "character": "chars",
    "char": "chars",
    "word": "words",
    "token": "tokens",
    "turn": "turns",
    "national_id": "cn_id",
    "id_card": "cn_id",
    "card": "credit_card",
    "代码": "code",
    "数学": "math",
    "对话": "chat",
}
"""Generic values to the operators' own."""

BUILT_IN: dict[str, tuple[str, Any]] = {
    "decontaminate.normalise": ("decon.ngram", True),
    "decontaminate.normalize": ("decon.ngram", True),
    "pairs.ties": ("format.preference", "drop"),
    "mix.repeat": ("mix.concat", False),
    "map.system": ("format.alpaca", "system"),
}
"""What an operator always does, so that it has no parameter for it."""


@dataclass(frozen=True)
class Sought:
    """A draft with look-ups by generic names."""

    draft: Draft

    @property
    def workflow(self) -> dict[str, Any]:
        """The workflow, empty when there is none."""
        return self.draft.workflow or {}

    @cached_property
    def split_sides(self) -> set[str]:
        """Steps that only tell the sides of a split apart; they belong to `split`."""
        return {
            s["id"]
            for s in self.workflow.get("steps", [])
            if s["operator"] == "filter.expr" and re.match(r"split == ", str(s["params"].get("expr")))
        }

    def steps(self, capability: str) -> list[dict[str, Any]]:
        """Steps that have a capability."""
        ids = capabilities_of(capability)
        return [s for s in self.workflow.get("steps", []) if s["operator"] in ids and s["id"] not in self.split_sides]

    def missing(self, capability: str) -> list[Any]:
        """Missing entries for a capability."""
        return [m for m in self.draft.missing if m.name in capabilities_of(capability)]

    def present(self, capability: str) -> bool:
        """Whether the workflow has a capability."""
        if capability == "load":
            return bool(self.workflow.get("inputs"))
        if capability == "export":
            return bool(self.workflow.get("outputs"))
        if capability == "train":
            return "train" in self.workflow
        return bool(self.steps(capability))

    def named_missing(self, capability: str) -> bool:
        """Whether the draft says that a capability is missing."""
        if capability == "train":
            return any(m.name.startswith("train.") for m in self.draft.missing)
        return bool(self.missing(capability))

    def trains(self) -> bool:
        """Whether the draft would train."""
        return "train" in self.workflow

    @property
    def training_expected(self) -> bool:
        """A refusal's safe remainder may train."""
        return self.draft.verdict == "refuse"

    def training(self) -> dict[str, Any] | None:
        """The training part under generic names, from the block or from the missing method."""
        block = self.workflow.get("train")
        if block:
            return _from_block(block, self.workflow)
        named = next((m for m in self.draft.missing if m.name.startswith("train.")), None)
        return dict(named.wanted) if named else None

    @cached_property
    def edges(self) -> dict[str, set[str]]:
        """Edges of the graph; missing capabilities are nodes by name."""
        edges: dict[str, set[str]] = {}
        for step in self.workflow.get("steps", []):
            for parent in step["needs"]:
                edges.setdefault(parent, set()).add(step["id"])
        for name, output in self.workflow.get("outputs", {}).items():
            edges.setdefault(output["from"], set()).add(f"output:{name}")
        dataset = self.workflow.get("train", {}).get("dataset")
        if dataset:
            edges.setdefault(f"output:{dataset}", set()).add("train")
        for entry in self.draft.missing:
            for parent in entry.after:
                edges.setdefault(parent, set()).add(entry.name)
            for child in (*entry.before, *(f"output:{name}" for name in self.workflow.get("outputs", {}))):
                edges.setdefault(entry.name, set()).add(child)
        return edges

    def nodes(self, capability: str) -> set[str]:
        """Graph nodes of a capability."""
        if capability == "load":
            return set(self.workflow.get("inputs", {}))
        if capability == "export":
            return {f"output:{name}" for name in self.workflow.get("outputs", {})}
        if capability.split(":", maxsplit=1)[0] == "train":
            return {"train"} | {m.name for m in self.draft.missing if m.name.startswith("train.")}
        return {s["id"] for s in self.steps(capability)} | {m.name for m in self.missing(capability)}

    def path(self, before: str, after: str) -> bool:
        """Whether a path leads from one capability to another."""
        goal, seen, todo = self.nodes(after), set(), list(self.nodes(before))
        while todo:
            node = todo.pop()
            for child in self.edges.get(node, ()):
                if child in goal:
                    return True
                if child not in seen:
                    seen.add(child)
                    todo.append(child)
        return False


def _from_block(block: Mapping[str, Any], workflow: Mapping[str, Any]) -> dict[str, Any]:
    section, factory = block.get("dataflex", {}), block.get("llamafactory", {})
    names = {"dynamic_select": "select", "dynamic_mix": "mix", "dynamic_weight": "reweight", "dynamic_reorder": "order"}
    rows_a_step = factory.get("per_device_train_batch_size", 1) * factory.get("gradient_accumulation_steps", 1)
    window = section.get("candidate_window")
    outputs = workflow.get("outputs", {})
    target = block.get("target_dataset")
    source = outputs.get(target, {}).get("from") if target else None
    while source and source not in workflow.get("inputs", {}):
        source = next((s["needs"][0] for s in workflow["steps"] if s["id"] == source), None)
    registry = outputs.get(block.get("dataset"), {}).get("llamafactory", {})
    return {
        "stage": factory.get("stage"),
        "finetuning": "qlora" if factory.get("quantization_bit") == 4 else factory.get("finetuning_type"),
        "model": factory.get("model_name_or_path"),
        "paradigm": names.get(section.get("train_type", "static"), "static"),
        "method": section.get("component_name"),
        "ratio": None,
        "n": section.get("update_step", 0) * section.get("update_times", 0) * rows_a_step,
        "ratios": _ratios(section.get("update_step", 0) * rows_a_step, window),
        "target": workflow["inputs"][source]["path"] if source else None,
        "update_every": section.get("update_step"),
        "update_times": section.get("update_times"),
        "warmup_steps": section.get("warmup_step"),
        "seed": section.get("seed", factory.get("seed", workflow.get("seed"))),
        "beta": factory.get("pref_beta"),
        "registry": registry,
        "epochs": factory.get("num_train_epochs"),
        "learning_rate": factory.get("learning_rate"),
        "batch_size": factory.get("per_device_train_batch_size"),
        "lora_rank": factory.get("lora_rank"),
        "rank": factory.get("lora_rank"),
        "cutoff_len": factory.get("cutoff_len"),
        "steps": factory.get("max_steps"),
        "max_steps": factory.get("max_steps"),
        "gradient_accumulation": factory.get("gradient_accumulation_steps"),
        **section.get("component_params", {}),
    }


class _ratios:  # noqa: N801  reads as a collection
    """Shares that a round realises: `selected` of `window` rows, exact to the row."""

    def __init__(self, selected: int, window: int | None) -> None:
        self.selected, self.window = selected, window

    def __contains__(self, share: object) -> bool:
        return (
            isinstance(share, int | float)
            and bool(self.window)
            and math.ceil(self.selected / share - 1e-9) == self.window
        )

    def __repr__(self) -> str:
        return f"{self.selected}/{self.window}"


def find_values(name: str, sought: Sought) -> list[Any]:
    """Every value a draft has for a generic parameter."""
    if name in BUILT_IN:
        operator, value = BUILT_IN[name]
        return (
            [value]
            if operator in sought.draft.operators or any(m.name == operator for m in sought.draft.missing)
            else []
        )
    capability, _, leaf = name.rpartition(".")
    if capability == "load":
        return _input_values(leaf, sought)
    if capability == "export":
        return _output_values(leaf, sought)
    if leaf == "seed" and not capability:
        return [sought.workflow.get("seed")]
    bags = _bags(capability, sought)
    values = [bag[key] for bag in bags for key in NAMES.get(leaf, (leaf,)) if key in bag]
    if leaf == "seed":
        values = values or [sought.workflow.get("seed")]
    if not values and leaf not in NAMES:
        values = [value for bag in bags for value in bag.values()]
    return values


def _bags(capability: str, sought: Sought) -> list[Mapping[str, Any]]:
    if capability:
        steps, missing = sought.steps(capability), sought.missing(capability)
    else:
        steps, missing = sought.workflow.get("steps", []), list(sought.draft.missing)
    return [s.get("params", {}) for s in steps] + [m.wanted for m in missing]


def _input_values(leaf: str, sought: Sought) -> list[Any]:
    inputs = sought.workflow.get("inputs", {}).values()
    return [entry.get(leaf, entry.get("options", {}).get(leaf)) for entry in inputs]


def _output_values(leaf: str, sought: Sought) -> list[Any]:
    outputs = sought.workflow.get("outputs", {}).values()
    if leaf == "format":
        styles = {"format.alpaca": "alpaca", "format.preference": "preference", "format.chat": "sharegpt"}
        named = [styles[operator] for operator in sought.draft.operators if operator in styles]
        return [entry.get("format") for entry in outputs] + named
    return [entry.get(leaf) for entry in outputs]


def is_sentence(value: Any) -> bool:
    """Whether an expected value is prose for a judge: three words or more, not a path."""
    return isinstance(value, str) and (
        len(value.split()) >= 3
        or bool(re.search(r"[一-鿿].*[，。]", value))
        or (len(value.split()) == 2 and "/" not in value and value.islower() and not re.search(r"\d", value))
    )


def same(wanted: Any, found: Any, name: str = "") -> bool:  # noqa: PLR0911  one return a kind of value
    """Whether two values are equal: numbers exactly; lists as sets, but ratios, scales and paths in order."""
    if isinstance(wanted, bool) or isinstance(found, bool):
        return wanted is found
    if isinstance(wanted, int | float) and isinstance(found, int | float):
        return math.isclose(wanted, found, rel_tol=1e-9)
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and all(
            same(v, found.get(_word(k), found.get(k)), k) for k, v in wanted.items()
        )
    if isinstance(wanted, list):
        values = found if isinstance(found, list | tuple) else [found]
        if name.endswith(("ratios", "scale", "path")):
            return len(values) == len(wanted) and all(same(a, b) for a, b in zip(wanted, values, strict=True))
        return {_word(v) for v in wanted} == {_word(v) for v in values}
    if isinstance(found, list | tuple) and len(found) == 1:
        return same(wanted, found[0], name)
    if isinstance(wanted, str) and isinstance(found, str):
        if name.endswith("path") and wanted.endswith("/"):
            return found.startswith(wanted) and "/" not in found.removeprefix(wanted)
        if name in {"target", "model"}:
            return _letters(wanted) == _letters(found)
        return _word(wanted) == _word(found)
    return False


def _word(value: Any) -> Any:
    text = re.sub(r"^([a-z0-9-]+)[_ -](test|dev|val|train)$", r"\1:\2", str(value).strip().lower())
    return WORDS.get(text, text)


def _letters(text: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "", text.lower().replace(" set", ""))
