"""Training on what a run left: its registered outputs become a dataset folder, the rest is `datamill.training`.

The dataset folder lies in the run's own folder and holds links to (or copies of) the outputs and a
`dataset_info.json`, so stock LLaMA-Factory can train on it too.
"""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from datamill.errors import DatamillError, ExitCode
from datamill.services.storage.atomic import write_json
from datamill.training.config import TrainConfig
from datamill.training.launch import TrainResult, train
from datamill.workflows.events import EventStream, Listener, silent
from datamill.workflows.llamafactory_dataset import REGISTRY, require_entry
from datamill.workflows.plan import Plan
from datamill.workflows.report import write_report
from datamill.workflows.run_record import RunRecord
from datamill.workflows.spec import TrainSpec

TRAIN = "train"
DATA = "data"


def training_config(
    project: Path, plan: Plan, record: RunRecord, overrides: Mapping[str, Any] | None = None
) -> TrainConfig:
    """The checked configuration for training on the outputs of a finished run.

    Args:
        project: project folder.
        plan: the plan of the run.
        record: the run.
        overrides: changes to the `train` block by dotted name, such as `dataflex.component_name`.

    Raises:
        DatamillError: `DM-TRAIN-023` when the plan has no `train` section or the run is not finished, and what
            `TrainConfig.from_workflow` raises.
    """
    if plan.train is None:
        message = f"workflow `{plan.name}` has no `train` section"
        raise DatamillError("DM-TRAIN-023", message, exit_code=ExitCode.INVALID, fix="add one, see docs/training.md")
    status = record.state()["status"]
    if status not in {"done", "gate_failed"}:
        message = f"run {record.id} is {status}; training needs its outputs"
        raise DatamillError("DM-TRAIN-023", message, fix="run the same command again to finish it")
    block = with_overrides(plan.train, overrides or {})
    folder = record.folder / TRAIN / DATA
    names = {}
    for name in {n for n in (block["dataset"], block.get("target_dataset"), block.get("eval_dataset")) if n}:
        names[name] = _link(project, plan, name, folder)
    return TrainConfig.from_workflow(block, dataset_dir=folder, names=names, base_dir=project)


def with_overrides(spec: TrainSpec, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """The `train` block as plain data with `overrides` applied."""
    block = spec.model_dump(mode="json", exclude_none=True)
    for name, value in overrides.items():
        *parents, leaf = name.split(".")
        node = block
        for parent in parents:
            node = node.setdefault(parent, {})
        node[leaf] = value
    return block


def _link(project: Path, plan: Plan, name: str, folder: Path) -> str:
    output = plan.outputs.get(name)
    if output is None or output.llamafactory is None:
        message = f"`{name}` is not an output registered for LLaMA-Factory"
        raise DatamillError("DM-TRAIN-021", message, exit_code=ExitCode.INVALID)
    source = project / output.path
    registered = output.llamafactory.name
    entry = dict(require_entry(source.parent, registered))
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{registered}{source.suffix}"
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:  # another file system: a copy serves as well
        shutil.copyfile(source, target)
    registry = folder / REGISTRY
    known = json.loads(registry.read_text(encoding="utf-8")) if registry.is_file() else {}
    write_json(registry, {**known, registered: {**entry, "file_name": target.name}}, "train.registry")
    return registered


def train_on_run(
    project: Path,
    plan: Plan,
    record: RunRecord,
    *,
    overrides: Mapping[str, Any] | None = None,
    nproc: int = 1,
    resume: bool = False,
    listener: Listener = silent,
) -> TrainResult:
    """Train as the plan's `train` section says; results lie in `<run>/train/`.

    Raises:
        DatamillError: whatever was wrong before training, or stopped it; the run's record says so.
    """
    config = training_config(project, plan, record, overrides)
    events = EventStream(record.folder / "events.jsonl", listener)
    out = record.folder / TRAIN
    record.update(training={"status": "running"})

    def on_event(event: Mapping[str, Any]) -> None:
        facts = {k: v for k, v in event.items() if k not in {"event", "time"}}
        events.emit(f"train_{event['event']}", **facts)

    try:
        result = train(config, out, nproc=nproc, resume=resume, on_event=on_event, project=project)
    except DatamillError as error:
        record.update(training={"status": "failed", "error": [issue.to_dict() for issue in error.issues]})
        raise
    gates = training_gates(plan.train, result)
    status = "gate_failed" if any(not gate["passed"] for gate in gates) else "done"
    facts = {k: str(v) if isinstance(v, Path) else v for k, v in asdict(result).items()}
    record.update(training={"status": status, "gates": gates, **facts})
    write_report(project, record, plan)
    return result


def training_gates(spec: TrainSpec | None, result: TrainResult) -> list[dict[str, Any]]:
    """Gates of the `train` section held against the result; an unmeasured metric does not pass."""
    measured = {"eval_loss": result.eval_loss, "train_loss": result.train_loss}
    gates = []
    for gate in spec.gates if spec else ():
        value = measured.get(gate.metric)
        low = value is not None and (gate.min is None or value >= gate.min)
        high = value is not None and (gate.max is None or value <= gate.max)
        gates.append({**gate.model_dump(), "value": value, "passed": low and high})
    return gates
