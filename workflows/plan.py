"""The immutable plan: a compiled workflow, named by the digest of everything that decides its result.

A plan is what a person approves. Its digest covers the content of inputs, operators with all parameters (defaults
filled in), seeds, outputs, gates, budget and training; it does not cover names, comments, `why`, or where and with
how many workers it runs, because those change nothing in the result.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from datamill.errors import Issue
from datamill.operators.declaration import ColumnType
from datamill.workflows.spec import FORMAT_VERSION, CheckSpec, OutputSpec, RunSpec, TrainSpec

SHORT_DIGEST = 12


def canonical(value: Any) -> str:
    """Canonical JSON: sorted keys, no spaces, non-ASCII kept."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)


def sha256(value: Any) -> str:
    """Hex sha256 of the canonical JSON of `value`."""
    return hashlib.sha256(canonical(value).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class PlanStep:
    """A step with everything resolved.

    Attributes:
        id: step or input id.
        operator: operator id; readers of inputs are steps too.
        version: operator version at compile time.
        params: parameters with defaults filled in.
        needs: parents, in order.
        sides: inputs or steps the parameters name.
        files: content digests of files the parameters name.
        effect: row effect.
        bound: limiting resource.
        schema: columns after the step.
        why: reason shown to people.
        on_error: policy for rows that raise.
        arrow: exact Arrow schema of an input's data columns; it follows from the content and is in no digest.
    """

    id: str
    operator: str
    version: int
    params: Mapping[str, Any]
    needs: tuple[str, ...]
    sides: tuple[str, ...]
    files: Mapping[str, str]
    effect: str
    bound: str
    schema: Mapping[str, ColumnType]
    why: str | None = None
    on_error: str = "fail"
    arrow: pa.Schema | None = None

    @property
    def is_source(self) -> bool:
        """Whether the step reads an input."""
        return self.effect == "source"

    def key(self, seed: int) -> str:
        """Content key of what the step does, apart from its input rows."""
        return sha256([self.operator, self.version, dict(self.params), dict(self.files), self.on_error, seed])

    def consent(self) -> dict[str, Any]:
        """The part of the step that a digest covers."""
        files = {} if self.is_source else dict(self.files)
        params = {k: v for k, v in self.params.items() if k != "path"} if self.is_source else dict(self.params)
        content = sorted(self.files.items()) if self.is_source else []
        return {
            "id": self.id, "operator": self.operator, "version": self.version, "params": params, "content": content,
            "needs": list(self.needs), "files": files, "on_error": self.on_error,
        }  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """A compiled workflow. See the module docstring for what its digest covers."""

    name: str
    description: str
    seed: int
    steps: tuple[PlanStep, ...]
    outputs: Mapping[str, OutputSpec]
    checks: tuple[CheckSpec, ...]
    run: RunSpec
    train: TrainSpec | None
    yaml: str
    notes: tuple[Issue, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)

    def consent(self) -> dict[str, Any]:
        """Everything that decides the result and the cost, as plain data."""
        return {
            "format": FORMAT_VERSION,
            "seed": self.seed,
            "steps": [step.consent() for step in self.steps],
            "outputs": {k: v.model_dump(mode="json", by_alias=True) for k, v in self.outputs.items()},
            "checks": [check.model_dump(mode="json") for check in self.checks],
            "budget": self.run.budget.model_dump(mode="json"),
            "train": self.train.model_dump(mode="json") if self.train else None,
        }

    @property
    def digest(self) -> str:
        """Hex sha256 that names the plan."""
        return sha256(self.consent())

    @property
    def short(self) -> str:
        """The first digits of the digest, enough for people."""
        return self.digest[:SHORT_DIGEST]

    def step(self, step_id: str) -> PlanStep:
        """The step or input called `step_id`.

        Raises:
            KeyError: when there is none.
        """
        for step in self.steps:
            if step.id == step_id:
                return step
        raise KeyError(step_id)

    def consumers(self, step_id: str) -> tuple[str, ...]:
        """Steps that read the rows of `step_id`, then outputs written from it."""
        steps = tuple(s.id for s in self.steps if step_id in s.needs or step_id in s.sides)
        return steps + tuple(f"output:{name}" for name, out in self.outputs.items() if out.source == step_id)

    def upstream(self, step_id: str) -> frozenset[str]:
        """`step_id` and every step it needs, directly or not.

        Raises:
            KeyError: when there is no such step.
        """
        found: set[str] = set()
        waiting = [step_id]
        while waiting:
            step = self.step(waiting.pop())
            found.add(step.id)
            waiting.extend(name for name in (*step.needs, *step.sides) if name not in found)
        return frozenset(found)

    def downstream(self, step_id: str) -> frozenset[str]:
        """`step_id` and every step that depends on it, directly or not; steps stand after what they need."""
        found = {step_id}
        for step in self.steps:
            if not found.isdisjoint((*step.needs, *step.sides)):
                found.add(step.id)
        return frozenset(found)

    def edges(self) -> Iterator[tuple[str, str]]:
        """Parent and child ids of every row flow."""
        for step in self.steps:
            for parent in (*step.needs, *step.sides):
                yield parent, step.id

    def step_seed(self, step_id: str) -> int:
        """Seed of one step, derived from the workflow's seed and the step id; a step's own `seed` wins."""
        own = self.step(step_id).params.get("seed")
        return int(own) if own is not None else int(sha256([self.seed, step_id])[:15], 16)

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain data, for `plan.lock.json` and `--json`."""
        return {
            "name": self.name,
            "description": self.description,
            "digest": self.digest,
            "seed": self.seed,
            "steps": [{k: v for k, v in asdict(step).items() if k != "arrow"} for step in self.steps],
            "outputs": self.consent()["outputs"],
            "checks": self.consent()["checks"],
            "run": self.run.model_dump(mode="json"),
            "train": self.consent()["train"],
            "notes": [note.to_dict() for note in self.notes],
        }
