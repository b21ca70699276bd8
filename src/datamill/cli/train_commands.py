"""`datamill train`: dynamic training from a workflow, a run, or a LLaMA-Factory file."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from datamill.cli.session import Session, usage_error
from datamill.errors import DatamillError, ExitCode

if TYPE_CHECKING:
    from datamill.training.config import TrainConfig
    from datamill.workflows.plan import Plan
    from datamill.workflows.run_record import RunRecord


def register(app: typer.Typer) -> None:
    """Add the command to the tree."""
    app.command("train")(train)


def train(
    context: typer.Context,
    source: Annotated[str, typer.Argument(help="workflow, run id, @last, or a LLaMA-Factory/DataFlex YAML")] = "@last",
    method: Annotated[str | None, typer.Option("--method", help="selection method: random, loss, less")] = None,
    sets: Annotated[list[str] | None, typer.Option("--set", help="key=value, as in LLaMA-Factory")] = None,
    dry_run: Annotated[bool, typer.Option("-n", "--dry-run", "--explain", help="what would happen")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="go on from the last whole checkpoint")] = False,
    nproc: Annotated[int, typer.Option("--nproc", min=1, help="processes on this machine")] = 1,
    print_config: Annotated[bool, typer.Option("--print-config", help="the LLaMA-Factory YAML that would run")] = False,
    out: Annotated[str | None, typer.Option("-o", "--out", help="run folder (for a YAML file)")] = None,
) -> int:
    """Train with dynamic data selection."""
    session: Session = context.obj
    config, folder, plan, record = _resolve(session, source, method, sets or (), out)
    if print_config:
        text = config.render_yaml()
        session.result(config.render(), text.rstrip())
        return ExitCode.OK
    if dry_run:
        from datamill.training.explain import explain

        found = explain(config, nproc=nproc)
        session.result(asdict(found), "\n".join(found.lines()))
        session.say("nothing was started (dry run)")
        return ExitCode.OK
    return _train(session, config, folder, plan, record, nproc=nproc, resume=resume, method=method, sets=sets or ())


def _resolve(
    session: Session, source: str, method: str | None, sets: Any, out: str | None
) -> "tuple[TrainConfig, Path, Plan | None, RunRecord | None]":
    from datamill.training.config import TrainConfig

    path = session.project / source
    if path.is_file() and not _is_workflow(path):
        given = [*sets, *([f"dataflex.component_name={method}"] if method else [])]
        folder = session.project / (out or f"runs/train-{path.stem}")
        return TrainConfig.from_yaml(path, given, base_dir=session.project), folder, None, None
    from datamill.cli.values import load_plan
    from datamill.workflows.run_record import find_run
    from datamill.workflows.training_run import TRAIN, training_config

    plan = load_plan(session, source)
    record = find_run(session.project, source) if not path.is_file() else _run_of(session, plan, source)
    return training_config(session.project, plan, record, _changes(method, sets)), record.folder / TRAIN, plan, record


def _is_workflow(path: Path) -> bool:
    from datamill.workflows.yaml_file import load

    data = load(path).data
    return "version" in data or "steps" in data or "format_version" in data


def _run_of(session: Session, plan: "Plan", source: str) -> "RunRecord":
    from datamill.workflows.run_record import list_runs

    for record in reversed(list_runs(session.project)):
        state = record.state()
        if state["digest"] == plan.digest and state["status"] in {"done", "gate_failed"}:
            return record
    message = f"plan {plan.short} has no finished run to train on"
    raise DatamillError("DM-TRAIN-023", message, fix=f"datamill run {source}")


def _changes(method: str | None, sets: Any) -> dict[str, Any]:
    from datamill.cli.values import parse_set

    changes = parse_set(sets)
    if method is not None:
        changes["dataflex.component_name"] = method
    known = ("dataset", "target_dataset", "eval_dataset")
    return {k if "." in k or k in known else f"llamafactory.{k}": v for k, v in changes.items()}


def _train(
    session: Session, config: "TrainConfig", folder: Path, plan: "Plan | None", record: "RunRecord | None", *,
    nproc: int, resume: bool, method: str | None, sets: Any,
) -> int:  # fmt: skip
    from datamill.cli.preview import duration
    from datamill.cli.progress import ProgressLines

    progress = ProgressLines(session)
    if plan is not None and record is not None:
        from datamill.workflows.training_run import train_on_run

        result = train_on_run(
            session.project, plan, record, overrides=_changes(method, sets), nproc=nproc,
            resume=resume, listener=progress,
        )  # fmt: skip
        failed = [g for g in record.state()["training"]["gates"] if not g["passed"]]
    else:
        from datamill.training.launch import train as launch

        if not resume and (folder / "model").exists():
            raise usage_error(f"{folder} holds a finished training", "add --resume, or choose another folder with -o")
        result = launch(
            config, folder, nproc=nproc, resume=resume, project=session.project,
            on_event=lambda event: progress({**event, "event": f"train_{event['event']}"}),
        )  # fmt: skip
        failed = []
    loss = f"  eval_loss {result.eval_loss:.4g}" if result.eval_loss is not None else ""
    session.say(f"DONE {duration(result.seconds)}  {result.steps} steps{loss}")
    for note in result.notes:
        session.say(f"  ? {note}")
    session.result(
        {"folder": str(result.folder), "adapter": str(result.adapter), "steps": result.steps,
         "train_loss": result.train_loss, "eval_loss": result.eval_loss, "seconds": result.seconds,
         "resumed_from": result.resumed_from, "gates_failed": failed}, str(result.adapter),
    )  # fmt: skip
    return ExitCode.GATE_FAILED if failed else ExitCode.OK
