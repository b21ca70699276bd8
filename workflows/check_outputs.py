"""Outputs and gates of a workflow: where files go, what is registered, which gates can be met."""

from collections.abc import Mapping

from datamill.errors import Issue
from datamill.operators.declaration import Schema
from datamill.workflows.findings import Findings
from datamill.workflows.llamafactory_dataset import usual_columns
from datamill.workflows.paths import PathPolicy
from datamill.workflows.spec import OutputSpec, Workflow

EXTENSIONS = {"jsonl": ".jsonl", "json": ".json", "parquet": ".parquet", "csv": ".csv"}


def file_of(name: str, output: OutputSpec) -> str:
    """The file an output writes: a path that ends in `/` is a folder and gets `<name>.<format>`."""
    if output.path.endswith(("/", "\\")) or output.path in {".", ".."}:
        return f"{output.path.rstrip('/')}/{name}{EXTENSIONS[output.format]}"
    return output.path


def check_outputs(
    workflow: Workflow, schemas: Mapping[str, Schema], policy: PathPolicy, findings: Findings
) -> dict[str, OutputSpec]:
    """Outputs with their final file names, in the order written."""
    inputs = [policy.resolve(spec.path) for spec in workflow.inputs.values()]
    checked = {}
    for name, output in workflow.outputs.items():
        path = file_of(name, output)
        issue = policy.check_write(path, name, inputs)
        if issue is not None:
            findings.add(issue, ("outputs", name, "path"))
        if output.llamafactory is not None:
            _check_registration(name, output, schemas, workflow, findings)
        checked[name] = output.model_copy(update={"path": path})
    return checked


def _check_registration(
    name: str, output: OutputSpec, schemas: Mapping[str, Schema], workflow: Workflow, findings: Findings
) -> None:
    registry = output.llamafactory
    schema = schemas.get(output.source)
    if registry is None or schema is None:
        return
    place = ("outputs", name, "llamafactory")
    if output.format not in {"jsonl", "json", "parquet"}:
        message = f"LLaMA-Factory reads jsonl, json and parquet here, not {output.format}"
        findings.add(Issue("DM-PLAN-050", message, step=name), ("outputs", name, "format"))
    ranking = registry.ranking or {"chosen", "rejected"} <= set(schema)
    wanted = registry.columns or usual_columns(registry.formatting, schema, ranking)
    for role, column in wanted.items():
        if column not in schema:
            message = f"the registered column `{column}` ({role}) is not among: {', '.join(schema)}"
            step_name = "format.preference" if ranking else "format.chat or format.alpaca"
            fix = f"add a {step_name} step, or set llamafactory.columns"
            findings.add(Issue("DM-PLAN-051", message, step=name, fix=fix), place)
    stage = (workflow.train.llamafactory.get("stage", "sft") if workflow.train else "sft") or "sft"
    trained = workflow.train is not None and workflow.train.dataset == name
    if trained and registry.ranking and stage in {"sft", "pt"}:
        message = f"`{name}` holds preference pairs; stage {stage} cannot train on them"
        findings.add(Issue("DM-PLAN-052", message, step=name, fix="stage: dpo (or rm)"), ("train",))


def check_gates(workflow: Workflow, findings: Findings) -> None:
    """A gate needs a bound, and bounds that can be met."""
    for index, check in enumerate(workflow.checks):
        place = ("checks", index)
        if check.min is None and check.max is None:
            findings.add(Issue("DM-PLAN-053", f"the gate on `{check.on}` has neither min nor max"), place)
        elif check.min is not None and check.max is not None and check.min > check.max:
            findings.add(Issue("DM-PLAN-053", f"the gate on `{check.on}` has min above max"), place)
