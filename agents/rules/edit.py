"""Changes to a draft under review: "keep the sources balanced, at least 50 words", "without the language filter".

The change is read with the same slots as a request. A step the draft has gets the new values, a new one goes in at its
phase, a forbidden one goes out and its neighbours are joined. What the change does not mention stays as it is.
"""

import copy
import re
from typing import Any

from datamill.agents.draft import INPUT_PLACEHOLDER, Draft, Question
from datamill.agents.inspection import Inspection
from datamill.agents.rules.answers import replanned
from datamill.agents.rules.assemble import adapt, format_of, missing_capability
from datamill.agents.rules.assembly import identifier, step_name
from datamill.agents.rules.builders import build_nodes, forbidden_ids, wished
from datamill.agents.rules.capabilities import CAPABILITIES, accepts, installed
from datamill.agents.rules.intents import Wanted
from datamill.agents.rules.messages import say
from datamill.agents.rules.nodes import Node
from datamill.agents.rules.reading import Reading
from datamill.agents.rules.request import Request
from datamill.agents.rules.safety import refusals, remove_secrets
from datamill.agents.rules.steps_filter import LENGTH_UNITS
from datamill.agents.rules.steps_sample import seed_of
from datamill.agents.rules.training_words import PARADIGMS, TrainingWish, is_method_available
from datamill.agents.rules.vocabulary import DROP

_TRAIN_KEYS = {
    "epochs": "num_train_epochs",
    "learning_rate": "learning_rate",
    "batch_size": "per_device_train_batch_size",
    "lora_rank": "lora_rank",
    "cutoff_len": "cutoff_len",
    "steps": "max_steps",
    "beta": "pref_beta",
    "gradient_accumulation": "gradient_accumulation_steps",
}
_SECTION_KEYS = {"update_every": "update_step", "update_times": "update_times", "warmup_steps": "warmup_step"}
_UNDO_TRAINING = re.compile(
    r"(?:don'?t|do not|no|without|skip|sem|sin|nao) (?:\w+ )?(?:train|trein|entren)\w*|不(?:要)?训练|先不训练"
)


def edit_draft(text: str, inspection: Inspection | None, previous: Draft) -> Draft:
    """The draft after a follow-up: a change to a plan, an answer to a question, or a request of its own."""
    if previous.verdict == "clarify":
        return replanned(text, inspection, previous)
    cleaned, had_secret = remove_secrets(text)
    reading = Reading(Request(cleaned), inspection)
    if previous.workflow is None or _is_new_request(reading, previous):
        from datamill.agents.rules.planner import plan_request

        return plan_request(text, inspection)
    declined = refusals(reading, had_secret)
    if declined:
        return previous.model_copy(update={"refusals": declined, "verdict": "refuse"})
    return _Change(reading, previous).applied()


def _is_new_request(reading: Reading, previous: Draft) -> bool:
    known = {str(entry["path"]) for entry in (previous.workflow or {}).get("inputs", {}).values()}
    named = {s.name for s in reading.sources if s.purpose == "input" and s.is_path}
    return bool(named - known) and bool(reading.mentions)


class _Change:
    """One change being applied to a copy of a workflow."""

    def __init__(self, reading: Reading, previous: Draft) -> None:
        self.reading = reading
        self.previous = previous
        self.workflow: dict[str, Any] = copy.deepcopy(dict(previous.workflow or {}))
        self.missing = list(previous.missing)
        self.why = dict(previous.why)
        self.notes: list[str] = []

    @property
    def steps(self) -> list[dict[str, Any]]:
        """Steps of the workflow, changed in place."""
        steps: list[dict[str, Any]] = self.workflow["steps"]
        return steps

    def applied(self) -> Draft:
        """The new draft."""
        found, _ = wished(self.reading)
        taken_out = {w.capability for w in found if self._is_removal(w)}
        nodes = build_nodes(self.reading, [w for w in found if not self._is_removal(w)], None)
        banned = (*forbidden_ids(self.reading, found), *self._removed_ids(taken_out))
        for node in nodes:
            self._set(node)
        self._loose_values()
        for operator in banned:
            self._take_out(operator)
        self._outer()
        asked = self._questions(nodes)
        before = self.previous.workflow
        if self.workflow == before:
            self.notes.append("that changed nothing; name a step, a value, or say what to leave out")
        forbidden = tuple(dict.fromkeys([*self.previous.forbidden, *banned]))
        wanted = {node.capability for node in nodes}
        return self.previous.model_copy(
            update={
                "workflow": self.workflow,
                "missing": tuple(self.missing),
                "why": self.why,
                "verdict": "clarify" if asked else "plan",
                "request": f"{self.previous.request}\n{self.reading.request.text}",
                "assumptions": (*self.previous.assumptions, *self.notes),
                "refusals": (),
                "questions": asked,
                "forbidden": tuple(f for f in forbidden if f not in wanted and f not in self._operators()),
            }
        )

    def _questions(self, nodes: list[Node]) -> tuple[Question, ...]:
        """What the change leaves open: a balanced sample without a size, a threshold out of range."""
        language = self.reading.request.language
        sample = next((s for s in self.steps if s["operator"] == "sample.stratified"), None)
        if sample and sample.get("params", {}).get("fraction") == 1.0:
            return (Question(topic="size", text=say("balance", language)),)
        similarity = self.reading.similarity
        if similarity is not None and not 0 < similarity.share <= 1:
            guess = similarity.value / 10 if similarity.value < 10 else similarity.value / 100
            text = say("threshold", language, value=f"{similarity.value:g}", guess=f"{guess:g}")
            return (Question(topic="threshold", text=text, options=(f"{guess:g}",)),)
        return ()

    def _operators(self) -> set[str]:
        return {str(step["operator"]) for step in self.steps}

    def _is_removal(self, wanted: Wanted) -> bool:
        """`remove the near dedup step`: an operation named after a verb of removal."""
        before = self.reading.request.masked[max(0, wanted.start - 24) : wanted.start]
        return (
            not wanted.defect
            and re.search(rf"(?:{DROP})\s*(?:the |a |o |la |el |that |this |step )*$", before) is not None
        )

    def _removed_ids(self, names: set[str]) -> list[str]:
        coarse = {
            "dedup": ["dedup.exact", "dedup.minhash"],
            "filter.lang_generic": ["filter.lang", "lang.detect"],
            "sample": ["sample.random", "sample.stratified"],
        }
        return [operator for name in names for operator in coarse.get(name, [name])]

    def _set(self, node: Node) -> None:
        """Give an existing step new values, or put a new step in at its phase."""
        adapt(node)
        swap = {"sample.stratified": "sample.random", "sample.random": "sample.stratified"}.get(node.capability)
        present = next((s for s in self.steps if s["operator"] == node.capability), None)
        other = next((s for s in self.steps if s["operator"] == swap), None) if swap else None
        if present is None and other is not None and node.capability == "sample.stratified":
            node.params = {k: v for k, v in node.params.items() if k != "fraction" or v != 1.0}
            kept = {k: v for k, v in other.get("params", {}).items() if accepts(node.capability, k)}
            other["operator"] = node.capability
            other["params"] = {**({} if "max_per_group" in node.params else kept), **node.params}
            return
        if present is None and node.capability == "filter.length" and self._raise_quality(node):
            return
        if present is not None:
            said = {
                k: v for k, v in node.params.items() if accepts(node.capability, k) and self._was_said(node, k, present)
            }
            present["params"] = {**present.get("params", {}), **said}
        elif node.unmet or not installed(node.capability):
            self.missing.append(missing_capability(node, [self._head()]))
        else:
            self._insert(node)

    def _was_said(self, node: Node, name: str, present: dict[str, Any]) -> bool:
        """Columns and modes that were only assumed do not overwrite what the draft has."""
        if name in {"column", "columns", "mode", "messages", "user", "assistant"} and name in present.get("params", {}):
            return bool(self.reading.columns) and name in {"column", "columns"}
        return True

    def _raise_quality(self, node: Node) -> bool:
        """A bound in words belongs to the quality rules when the draft has them and no length filter."""
        quality = next((s for s in self.steps if s["operator"] == "filter.gopher_quality"), None)
        if quality is None or node.params.get("unit") != "words":
            return False
        values = {f"{side}_words": node.params[side] for side in ("min", "max") if side in node.params}
        if not all(accepts("filter.gopher_quality", name) for name in values):
            return False
        quality["params"] = {**quality.get("params", {}), **values}
        return True

    def _head(self) -> str:
        return str(self.steps[-1]["id"]) if self.steps else next(iter(self.workflow["inputs"]))

    def _insert(self, node: Node) -> None:
        after = self._before_phase(CAPABILITIES[node.capability].phase)
        parent = str(after[-1]["id"]) if after else None
        taken = set(self.workflow["inputs"]) | {s["id"] for s in self.steps}
        step_id = identifier(step_name(node.capability), taken)
        roots = [name for name in self.workflow["inputs"] if not name.startswith("target_")]
        step: dict[str, Any] = {"id": step_id, "operator": node.capability, "needs": [parent] if parent else roots[:1]}
        params = {k: v for k, v in node.params.items() if accepts(node.capability, k)}
        if params:
            step["params"] = params
        step["why"] = node.why
        self.why[step_id] = node.why
        old = parent or roots[0]
        for other in self.steps:
            other["needs"] = [step_id if need == old else need for need in other["needs"]]
        for output in self.workflow.get("outputs", {}).values():
            output["from"] = step_id if output["from"] == old else output["from"]
        self.steps.insert(self.steps.index(after[-1]) + 1 if after else 0, step)

    def _before_phase(self, phase: int) -> list[dict[str, Any]]:
        """Steps of the main chain that come before a phase; what a split leads to is never among them."""
        outputs = self.workflow.get("outputs", {})
        name = str(next(iter(outputs.values()))["from"]) if outputs else self._head()
        chain: list[dict[str, Any]] = []
        while step := next((s for s in self.steps if s["id"] == name), None):
            chain.insert(0, step)
            name = str(step["needs"][0])
        kept: list[dict[str, Any]] = []
        for step in chain:
            known = CAPABILITIES.get(str(step["operator"]))
            if known and (known.phase > phase or (known.id == "split" and phase != known.phase)):
                break
            kept.append(step)
        return kept

    def _take_out(self, operator: str) -> None:
        for step in [s for s in self.steps if s["operator"] == operator]:
            parent = list(step["needs"])
            self.steps.remove(step)
            self.why.pop(str(step["id"]), None)
            for other in self.steps:
                other["needs"] = [n for need in other["needs"] for n in (parent if need == step["id"] else [need])]
            for output in self.workflow.get("outputs", {}).values():
                output["from"] = parent[0] if output["from"] == step["id"] else output["from"]
        self.missing = [m for m in self.missing if m.name != operator]

    def _loose_values(self) -> None:
        """Values said without their step: a threshold, a seed, a row count, a share."""
        similarity = self.reading.similarity
        near = next((s for s in self.steps if s["operator"] == "dedup.minhash"), None)
        if similarity is not None and near is not None and 0 < similarity.share <= 1:
            near.setdefault("params", {})["threshold"] = similarity.share
        seed = seed_of(self.reading)
        if seed is not None:
            self.workflow["seed"] = seed
            for step in self.steps:
                if "seed" in step.get("params", {}):
                    step["params"]["seed"] = seed
        self._resize()

    def _resize(self) -> None:
        sample = next((s for s in self.steps if s["operator"].startswith("sample.")), None)
        if sample is None or "n" not in sample.get("params", {}):
            return
        sizes = [
            q
            for q in self.reading.numbers
            if q.value >= 10 and isinstance(q.value, int) and (q.unit == "rows" or (q.unit == "" and q.value >= 100))
        ]
        if sizes and not any(q.unit in LENGTH_UNITS and q.start == sizes[0].start for q in self.reading.numbers):
            sample["params"]["n"] = sizes[0].value

    def _outer(self) -> None:
        """Inputs, outputs and training."""
        named = next((s for s in self.reading.sources if s.purpose == "input" and s.is_path), None)
        for entry in self.workflow["inputs"].values():
            if named and entry["path"] == INPUT_PLACEHOLDER:
                entry["path"] = named.name
        self._rewrite_output()
        wish = self.reading.training
        if _UNDO_TRAINING.search(self.reading.request.masked):
            self.workflow.pop("train", None)
        elif "train" in self.workflow:
            self._retrain(wish)

    def _rewrite_output(self) -> None:
        outputs = self.workflow.get("outputs", {})
        if not outputs:
            return
        first = outputs[next(iter(outputs))]
        target = next((s.name for s in self.reading.sources if s.purpose == "output"), None)
        if target and "." in target.rsplit("/", 1)[-1]:
            first["path"] = target
            first["format"] = format_of(self.reading, target)
        elif (kind := format_of(self.reading, "", default="")) and kind != first.get("format"):
            stem = str(first["path"]).rsplit(".", 1)[0]
            first |= {"path": f"{stem}.{kind}", "format": kind}

    def _retrain(self, wish: TrainingWish | None) -> None:
        from datamill.agents.rules.training_words import training_numbers

        block = self.workflow["train"]
        said = training_numbers(self.reading.request)
        factory, section = block.setdefault("llamafactory", {}), block.setdefault("dataflex", {})
        for name, key in _TRAIN_KEYS.items():
            if name in said:
                factory[key] = float(said[name]) if name == "epochs" else said[name]
        for name, key in _SECTION_KEYS.items():
            if name in said and section.get("train_type") == "dynamic_select":
                section[key] = said[name]
        if self.reading.request.models:
            factory["model_name_or_path"] = self.reading.request.models[0].text
        if wish and "finetuning" in wish.said:
            factory["finetuning_type"] = "lora" if wish.finetuning == "qlora" else wish.finetuning
        if wish and wish.method and wish.paradigm == "select" and is_method_available(wish):
            section |= {"train_type": PARADIGMS["select"], "component_name": wish.method}
            if wish.method != "less":
                section["component_params"] = {}
                block.pop("target_dataset", None)
        if not section:
            block.pop("dataflex")
