"""The `train` section, checked against the installed training stack before any data is touched."""

from pathlib import Path

from datamill.errors import DatamillError, Issue
from datamill.training.config import TrainConfig
from datamill.workflows.spec import Workflow

Place = tuple[str | int, ...]


def training_issues(workflow: Workflow) -> list[tuple[Issue, Place]]:
    """Findings about `train`, each with its place in the file: unknown keys and methods, bad values, missing model."""
    train = workflow.train
    if train is None:
        return []
    found: list[tuple[Issue, Place]] = []
    block = train.model_dump(mode="json", exclude_none=True)
    try:
        TrainConfig.from_workflow(block, dataset_dir=Path(), base_dir=Path())
    except DatamillError as error:
        found += [(issue, _place(issue)) for issue in error.issues]
    if not train.llamafactory.get("model_name_or_path"):
        message = "`train.llamafactory.model_name_or_path` is missing"
        fix = "model_name_or_path: smollm2 (or tiny, or a folder with a model)"
        found.append((Issue("DM-TRAIN-020", message, step="train", fix=fix), ("train", "llamafactory")))
    for name in (train.dataset, train.target_dataset, train.eval_dataset):
        output = workflow.outputs.get(name) if name else None
        if output is not None and output.llamafactory is None:
            message = f"output `{name}` is trained on but not registered for LLaMA-Factory"
            fix = f"add `llamafactory: {{name: {name}}}` to the output"
            found.append((Issue("DM-TRAIN-021", message, step=name, fix=fix), ("outputs", str(name))))
    for name in (train.target_dataset, train.eval_dataset):
        if name in workflow.inputs and name not in workflow.outputs:
            message = f"`{name}` is an input as it is; training reads registered outputs"
            fix = f"add an output from `{name}` (with format.chat before it if needed) and name that"
            found.append((Issue("DM-TRAIN-022", message, step="train", fix=fix), ("train",)))
    return found


def _place(issue: Issue) -> Place:
    parts = (issue.field or "").split(".")
    return ("train", *(parts if parts[0] in {"dataflex", "llamafactory"} else ("llamafactory", *parts)))
