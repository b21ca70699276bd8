"""Compile a workflow file into an immutable `Plan`, or into all of its issues at once.

Order: YAML and structure, names and order, interpolation, inputs (which reads their bytes once for the content
digest), operators with parameters and columns, outputs and gates, training. Later stages run on whatever earlier
ones left whole, so that one report holds as much as can be known.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from datamill.errors import Issue
from datamill.operators.declaration import Schema
from datamill.workflows import yaml_file
from datamill.workflows.check_emptiness import empty_warnings
from datamill.workflows.check_outputs import check_gates, check_outputs
from datamill.workflows.check_steps import StepChecker, cost_warnings
from datamill.workflows.check_structure import check_references, check_unused, topological, validate
from datamill.workflows.findings import Findings
from datamill.workflows.interpolate import Interpolation, suspicious_code
from datamill.workflows.migrate import migrate
from datamill.workflows.overrides import apply_overrides, override_tree
from datamill.workflows.paths import PathPolicy
from datamill.workflows.plan import Plan, PlanStep
from datamill.workflows.sources import source_step
from datamill.workflows.spec import Workflow
from datamill.workflows.yaml_file import YamlDocument


@dataclass(frozen=True)
class CompileOptions:
    """What compiling depends on besides the file.

    Attributes:
        project: project folder.
        allow_paths: further paths that may be read.
        allow_env: environment variables that `${env.NAME}` may name.
        overrides: `--set` values by dotted name, such as `steps.near.params.threshold`.
        check_training: whether the `train` section is checked against the installed training stack.
    """

    project: Path = field(default_factory=Path.cwd)
    allow_paths: tuple[str, ...] = ()
    allow_env: tuple[str, ...] = ()
    overrides: Mapping[str, Any] = field(default_factory=dict)
    check_training: bool = True


def compile_file(path: Path, options: CompileOptions) -> Plan:
    """Compile the workflow file at `path`.

    Raises:
        PlanError: with every issue found.
    """
    return compile_document(yaml_file.load(path), options)


def compile_text(text: str, options: CompileOptions, file: str = "workflow") -> Plan:
    """Compile workflow text.

    Raises:
        PlanError: with every issue found.
    """
    return compile_document(yaml_file.parse(text, file), options)


def compile_document(document: YamlDocument, options: CompileOptions) -> Plan:
    """Compile a parsed workflow.

    Raises:
        PlanError: with every issue found.
    """
    findings = Findings(document)
    data = apply_overrides(migrate(document.data, findings), options.overrides, findings)
    _check_no_code(data, findings)
    workflow = validate(data, findings)
    if workflow is None:
        findings.raise_errors()
    assert workflow is not None
    check_references(workflow, findings)
    workflow = _interpolated(workflow, options, findings)
    policy = PathPolicy.of(options.project, options.allow_paths)
    steps, schemas = _steps(workflow, policy, findings)
    outputs = check_outputs(workflow, schemas, policy, findings)
    check_gates(workflow, findings)
    if workflow.train is not None and options.check_training:
        _check_training(workflow, findings)
    findings.raise_errors()
    for warning in [*cost_warnings(steps), *empty_warnings(steps)]:
        findings.add(warning, ("steps", _position(workflow, warning.step)))
    check_unused(workflow, findings, [side for step in steps for side in step.sides])
    text = yaml_file.dump(_written(document, data, options.overrides))
    return Plan(
        name=workflow.name, description=workflow.description, seed=workflow.seed, steps=tuple(steps), outputs=outputs,
        checks=workflow.checks, run=workflow.run, train=workflow.train, yaml=text, notes=findings.notes,
        params=workflow.params,
    )  # fmt: skip


def _written(document: YamlDocument, data: Mapping[str, Any], overrides: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a saved plan says: the file as it is, with `--set` values in their places, so that it compiles again."""
    if not overrides:
        return document.tree
    return override_tree(document.tree, overrides) if "version" in document.data else data


def _check_no_code(data: Mapping[str, Any], findings: Findings) -> None:
    for path, issue in suspicious_code({k: v for k, v in data.items() if k not in {"description", "steps"}}):
        findings.add(issue, path)
    steps = data.get("steps")
    for index, step in enumerate(steps if isinstance(steps, list) else ()):
        if not isinstance(step, Mapping):
            continue  # `validate` says that a step is a mapping
        for path, issue in suspicious_code({k: v for k, v in step.items() if k != "why"}):
            findings.add(replace(issue, step=str(step.get("id"))), ("steps", index, *path))


def _interpolated(workflow: Workflow, options: CompileOptions, findings: Findings) -> Workflow:
    env = {name: os.environ[name] for name in options.allow_env if name in os.environ}
    paths = {name: spec.path for name, spec in workflow.inputs.items()}
    scope = Interpolation(workflow.params, env, paths)
    inputs = {
        name: spec.model_copy(
            update={
                "path": str(scope.apply(spec.path, ("inputs", name, "path"))),
                "options": scope.apply(spec.options, ("inputs", name, "options")),
            }
        )
        for name, spec in workflow.inputs.items()
    }
    steps = tuple(
        spec.model_copy(update={"params": scope.apply(spec.params, ("steps", index, "params"))})
        for index, spec in enumerate(workflow.steps)
    )
    outputs = {
        name: spec.model_copy(update={"path": str(scope.apply(spec.path, ("outputs", name, "path")))})
        for name, spec in workflow.outputs.items()
    }
    for path, issue in scope.issues:
        findings.add(issue, path)
    return workflow.model_copy(update={"inputs": inputs, "steps": steps, "outputs": outputs})


def _steps(workflow: Workflow, policy: PathPolicy, findings: Findings) -> tuple[list[PlanStep], Mapping[str, Schema]]:
    schemas: dict[str, Schema] = {}
    steps: list[PlanStep] = []
    for name, spec in workflow.inputs.items():
        source = source_step(name, spec, spec.options, policy, findings)
        if source is not None:
            steps.append(source)
            schemas[name] = source.schema
    lines = {step.id: index for index, step in enumerate(workflow.steps)}
    checker = StepChecker(findings, policy, schemas, lines)
    for step in topological(workflow, findings):
        checked = checker.check(step, step.params)
        if checked is not None:
            steps.append(checked)
    return steps, schemas


def _position(workflow: Workflow, step: str | None) -> int:
    return next((index for index, spec in enumerate(workflow.steps) if spec.id == step), 0)


def _check_training(workflow: Workflow, findings: Findings) -> None:
    from datamill.workflows.check_training import training_issues

    for issue, path in training_issues(workflow):
        findings.add(issue, path)


def problems(findings: Iterable[Issue]) -> str:
    """Findings as text, one after another."""
    return "\n".join(issue.render() for issue in findings)
