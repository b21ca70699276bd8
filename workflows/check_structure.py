"""Structure of a workflow file: known keys, right types, known names, no cycle. Looks at no data."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from datamill.errors import Issue, nearest
from datamill.workflows import spec
from datamill.workflows.findings import Findings
from datamill.workflows.spec import StepSpec, Workflow

SECTIONS: Mapping[str, type[BaseModel]] = {
    "inputs": spec.InputSpec,
    "steps": spec.StepSpec,
    "outputs": spec.OutputSpec,
    "checks": spec.CheckSpec,
    "run": spec.RunSpec,
    "train": spec.TrainSpec,
}


def field_names(model: type[BaseModel]) -> list[str]:
    """Keys a model accepts, by their name in files."""
    return [info.alias or name for name, info in model.model_fields.items()]


def validate(data: Mapping[str, Any], findings: Findings) -> Workflow | None:
    """The workflow as models, or None with findings `DM-PLAN-006` (unknown key) and `DM-PLAN-008` (bad value).

    When unknown keys are all that is wrong, the workflow without them is returned, so that the same report holds what
    later stages find.
    """
    try:
        return Workflow.model_validate(data)
    except ValidationError as error:
        unknown = []
        for item in error.errors():
            where = tuple(part for part in item["loc"] if isinstance(part, str | int) and part != "[key]")
            findings.add(_finding(item, where), where)
            if item["type"] == "extra_forbidden":
                unknown.append(where)
        if len(unknown) < error.error_count():
            return None
    return Workflow.model_validate(_without(data, unknown))


def _without(data: Mapping[str, Any], places: Sequence[tuple[str | int, ...]]) -> dict[str, Any]:
    """A copy of `data` without the keys at `places`."""
    changed = copy.deepcopy(dict(data))
    for *parents, leaf in places:
        node: Any = changed
        for part in parents:
            node = node[part]
        del node[leaf]
    return changed


def _finding(item: Any, where: tuple[str | int, ...]) -> Issue:
    name = str(where[-1]) if where else ""
    step = _owner(where)
    dotted = ".".join(str(part) for part in where)
    if item["type"] == "extra_forbidden":
        model = SECTIONS.get(str(where[0]), Workflow) if len(where) > 1 else Workflow
        close = nearest(name, field_names(model))
        return Issue("DM-PLAN-006", f"unknown key `{dotted}`", step=step, field=name, nearest=close)
    if item["type"] == "missing":
        return Issue("DM-PLAN-008", f"`{dotted}` is missing", step=step, field=name)
    given = "" if isinstance(item["input"], Mapping) else f", got {str(item['input'])[:60]!r}"
    return Issue("DM-PLAN-008", f"`{dotted}`: {item['msg']}{given}", step=step, field=name)


def _owner(where: Sequence[str | int]) -> str | None:
    return str(where[1]) if len(where) > 2 and where[0] in {"inputs", "outputs"} else None


def check_references(workflow: Workflow, findings: Findings) -> None:
    """Names: duplicate ids, unknown parents and sources (`DM-PLAN-012`, `-013`), outputs on one path (`-015`)."""
    known = list(workflow.inputs)
    for index, step in enumerate(workflow.steps):
        if step.id in known:
            message = f"the id `{step.id}` is used twice"
            findings.add(Issue("DM-PLAN-012", message, step=step.id), ("steps", index, "id"))
        known.append(step.id)
    for index, step in enumerate(workflow.steps):
        if not step.needs:
            findings.add(Issue("DM-PLAN-013", "`needs` is empty", step=step.id), ("steps", index, "needs"))
        for parent in step.needs:
            _check_name(parent, known, step.id, ("steps", index, "needs"), findings)
    for name, output in workflow.outputs.items():
        _check_name(output.source, known, name, ("outputs", name, "from"), findings)
    for index, check in enumerate(workflow.checks):
        _check_name(check.on, [*known, *workflow.outputs], "checks", ("checks", index, "on"), findings)
    _check_output_paths(workflow, findings)
    _check_train_names(workflow, findings)


def _check_name(name: str, known: Sequence[str], step: str, path: tuple[str | int, ...], findings: Findings) -> None:
    if name not in known:
        message = f"`{name}` names no input or step"
        findings.add(Issue("DM-PLAN-013", message, step=step, nearest=nearest(name, known)), path)


def _check_output_paths(workflow: Workflow, findings: Findings) -> None:
    seen: dict[str, str] = {}
    for name, output in workflow.outputs.items():
        if output.path in seen and not output.path.endswith("/"):
            message = f"outputs `{seen[output.path]}` and `{name}` write the same file"
            findings.add(Issue("DM-PLAN-015", message, step=name), ("outputs", name, "path"))
        seen[output.path] = name


def _check_train_names(workflow: Workflow, findings: Findings) -> None:
    if workflow.train is None:
        return
    train = workflow.train
    _check_name(train.dataset, list(workflow.outputs), "train", ("train", "dataset"), findings)
    known = [*workflow.inputs, *workflow.outputs]
    for key in ("target_dataset", "eval_dataset"):
        name = getattr(train, key)
        if name is not None:
            _check_name(name, known, "train", ("train", key), findings)


def topological(workflow: Workflow, findings: Findings) -> list[StepSpec]:
    """Steps in an order in which parents come first; finding `DM-PLAN-014` names the steps on a cycle.

    Among steps that are ready the one written first goes first, so the order is a function of the file alone.
    """
    done = set(workflow.inputs)
    waiting = list(workflow.steps)
    order: list[StepSpec] = []
    while waiting:
        ready = next((step for step in waiting if done.issuperset(step.needs)), None)
        if ready is None:
            ids = ", ".join(step.id for step in waiting)
            findings.add(Issue("DM-PLAN-014", f"these steps wait for each other: {ids}"), ("steps",))
            return order
        waiting.remove(ready)
        done.add(ready.id)
        order.append(ready)
    return order


def check_unused(workflow: Workflow, findings: Findings, sides: Sequence[str]) -> None:
    """Warning `DM-PLAN-016` for inputs and steps whose rows go nowhere."""
    used = {name for step in workflow.steps for name in step.needs} | set(sides)
    used |= {output.source for output in workflow.outputs.values()}
    if workflow.train:
        used |= {n for n in (workflow.train.target_dataset, workflow.train.eval_dataset) if n}
    for name in (*workflow.inputs, *(step.id for step in workflow.steps)):
        if name not in used:
            place = ("inputs", name) if name in workflow.inputs else ("steps",)
            message = f"the rows of `{name}` are not used by any step or output"
            findings.add(Issue("DM-PLAN-016", message, severity="warning", step=name), place)
