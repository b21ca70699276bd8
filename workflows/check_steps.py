"""Turns step specs into plan steps: operator known, parameters valid, files allowed, columns right."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import xxhash
from pydantic import ValidationError

from datamill.errors import DatamillError, Issue, nearest
from datamill.operators.declaration import Bound, Effect, Operator, Params, Schema
from datamill.operators.registry import catalogue, find
from datamill.workflows.check_columns import check_need, join_schemas
from datamill.workflows.findings import Findings
from datamill.workflows.paths import PathPolicy
from datamill.workflows.plan import PlanStep
from datamill.workflows.spec import StepSpec

READ_BLOCK = 1 << 22


@dataclass
class StepChecker:
    """Checks steps in topological order while the schema of every step grows in `schemas`."""

    findings: Findings
    policy: PathPolicy
    schemas: dict[str, Schema]
    lines: Mapping[str, int]

    def check(self, spec: StepSpec, values: Mapping[str, Any]) -> PlanStep | None:
        """The plan step for `spec` with interpolated parameters `values`, or None with findings."""
        base = ("steps", self.lines[spec.id])
        operator = self._operator(spec, base)
        if operator is None:
            return None
        params = self._params(operator, spec, values, base)
        if params is None:
            return None
        known = bool(spec.needs) and all(parent in self.schemas for parent in spec.needs)
        files = self._files(operator, params, spec.id, base)
        sides = self._sides(operator, params, spec, base)
        for severity, field, message in operator.check(params):
            issue = Issue("DM-PLAN-030", message, severity=severity, step=spec.id, field=f"params.{field}")  # type: ignore[arg-type]  # validated by the declaration's tests
            self.findings.add(issue, (*base, "params", field))
        schema = self._schema(operator, params, spec, base) if known else None
        if schema is not None:
            self.schemas[spec.id] = schema
        return PlanStep(
            id=spec.id, operator=operator.id, version=operator.version, params=params.model_dump(mode="json"),
            needs=spec.needs, sides=sides, files=files, effect=operator.effect.value, bound=operator.bound.value,
            schema=schema or {}, why=spec.why, on_error=spec.on_error,
        )  # fmt: skip

    def _operator(self, spec: StepSpec, base: tuple[str | int, ...]) -> Operator[Any] | None:
        try:
            operator = find(spec.operator)
        except DatamillError as error:
            self.findings.add(replace(error.issues[0], step=spec.id, field="operator"), (*base, "operator"))
            return None
        if operator.effect is Effect.SOURCE:
            message = f"`{operator.id}` reads an input; write it under `inputs`"
            self.findings.add(Issue("DM-PLAN-017", message, step=spec.id), (*base, "operator"))
            return None
        if len(spec.needs) > 1 and operator.effect is not Effect.JOIN:
            message = f"`{operator.id}` takes one parent, not {len(spec.needs)}"
            fix = "join the branches with mix.concat first"
            self.findings.add(Issue("DM-PLAN-018", message, step=spec.id, fix=fix), (*base, "needs"))
            return None
        return operator

    def _params(
        self, operator: Operator[Any], spec: StepSpec, values: Mapping[str, Any], base: tuple[str | int, ...]
    ) -> Params | None:
        try:
            params: Params = operator.params.model_validate(dict(values))
        except ValidationError as error:
            for item in error.errors():
                self._add_param_error(item, operator, spec, base)
            return None
        return params

    def _add_param_error(self, item: Any, operator: Operator[Any], spec: StepSpec, base: tuple[str | int, ...]) -> None:
        where = tuple(part for part in item["loc"] if isinstance(part, str | int))
        name = ".".join(str(part) for part in where)
        if item["type"] == "extra_forbidden":
            close = nearest(name, operator.params.model_fields)
            message = f"unknown parameter `{name}` for {operator.id}"
            issue = Issue("DM-PLAN-007", message, step=spec.id, field=f"params.{name}", nearest=close)
        else:
            given = f", got {str(item['input'])[:60]!r}" if item["type"] != "missing" else ""
            message = f"parameter `{name}` of {operator.id}: {item['msg']}{given}"
            fix = f"datamill ops show {operator.id}"
            issue = Issue("DM-PLAN-009", message, step=spec.id, field=f"params.{name}", fix=fix)
        self.findings.add(issue, (*base, "params", *where))

    def _files(self, operator: Operator[Any], params: Params, step: str, base: tuple[str | int, ...]) -> dict[str, str]:
        digests: dict[str, str] = {}
        for path in operator.files(params):
            issue = self.policy.check_read(path, step, "params")
            target = self.policy.resolve(path)
            if issue is None and not target.exists():
                issue = Issue("DM-PATH-005", f"there is no file `{path}`", step=step, field="params")
            if issue is not None:
                self.findings.add(issue, (*base, "params"))
                continue
            digests[path] = content_digest(target)
        return digests

    def _sides(
        self, operator: Operator[Any], params: Params, spec: StepSpec, base: tuple[str | int, ...]
    ) -> tuple[str, ...]:
        sides = tuple(operator.side_inputs(params))
        for name in sides:
            if name not in self.schemas:
                message = f"`{name}` names no input and no earlier step"
                close = nearest(name, self.schemas)
                self.findings.add(Issue("DM-PLAN-013", message, step=spec.id, nearest=close), (*base, "params"))
        return sides

    def _schema(
        self, operator: Operator[Any], params: Params, spec: StepSpec, base: tuple[str | int, ...]
    ) -> Schema | None:
        parents = [(name, self.schemas[name]) for name in spec.needs]
        schema, issues = join_schemas(parents, spec.id) if len(parents) > 1 else (parents[0][1], [])
        needs = operator.reads(params)
        issues += [issue for need in needs if (issue := check_need(need, schema, spec.id)) is not None]
        for issue in issues:
            self.findings.add(issue, (*base, *(issue.field or "params").split(".")))
        if any(issue.severity == "error" for issue in issues):
            return None
        try:
            return dict(operator.writes(params, schema))
        except DatamillError as error:
            for issue in error.issues:
                self.findings.add(issue, (*base, "params"))
            return None


def content_digest(path: Any) -> str:
    """xxh3-128 of a file's bytes, or of the sorted names and digests of a folder."""
    if path.is_dir():
        parts = [(p.relative_to(path).as_posix(), content_digest(p)) for p in sorted(path.rglob("*")) if p.is_file()]
        return xxhash.xxh3_128_hexdigest(repr(parts).encode())
    hasher = xxhash.xxh3_128()
    with path.open("rb") as stream:
        while block := stream.read(READ_BLOCK):
            hasher.update(block)
    return hasher.hexdigest()


COST = {Bound.IO.value: 0, Bound.CPU.value: 0, Bound.GPU.value: 1, Bound.LLM.value: 2}


def cost_warnings(steps: Sequence[PlanStep]) -> list[Issue]:
    """Warning `DM-PLAN-040` where a gpu or llm step stands before a cheap filter that does not depend on it."""
    warnings = []
    by_id = {step.id: step for step in steps}
    for costly in (step for step in steps if COST[step.bound] > 0):
        made = _columns_made(costly, by_id)
        for later in (step for step in steps if costly.id in step.needs and COST[step.bound] == 0):
            operator = catalogue()[later.operator]
            if later.effect not in {"filter", "global"} or operator.effect is Effect.JOIN:
                continue
            reads = {need.column for need in operator.reads(operator.params.model_validate(dict(later.params)))}
            if later.effect == "global" and costly.effect == "expand":
                continue  # a global step sees the new rows: the order matters
            if not reads & made:
                message = f"`{costly.id}` ({costly.bound}) runs before `{later.id}`, which is cheaper and independent"
                fix = f"put `{later.id}` before `{costly.id}`"
                warnings.append(Issue("DM-PLAN-040", message, severity="warning", step=costly.id, fix=fix))
    return warnings


def _columns_made(step: PlanStep, by_id: Mapping[str, PlanStep]) -> set[str]:
    before = by_id[step.needs[0]].schema if step.needs and step.needs[0] in by_id else {}
    operator = catalogue()[step.operator]
    touched = {need.column for need in operator.reads(operator.params.model_validate(dict(step.params)))}
    return {name for name, kind in step.schema.items() if before.get(name) != kind} | touched
