"""Starts training in child processes and follows it.

LLaMA-Factory runs in a process of its own (several under torchrun), so that its global state, its thread pools and a
crash stay there. The run folder holds `llamafactory.yaml`, `worker.json`, `events.jsonl`, `plan_ledger.jsonl`,
`samples.parquet`, `scores/`, `log.txt`, `result.json` and `model/` with the adapter and the checkpoints.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from datamill.errors import DatamillError, ExitCode, Issue
from datamill.services.models import resolve_model
from datamill.training.config import TrainConfig
from datamill.training.datasets import dataset_fingerprint, model_fingerprint
from datamill.training.events import EVENTS_FILE, EventCallback, EventReader
from datamill.training.plan_ledger import LEDGER_FILE, SAMPLES_FILE, SCORES_FOLDER
from datamill.training.run_spec import RunSpec
from datamill.training.targets import check_targets

MODEL_FOLDER: Final = "model"
CONFIG_FILE: Final = "llamafactory.yaml"
LOG_FILE: Final = "log.txt"
RESULT_FILE: Final = "result.json"
STATE_FILE: Final = "datamill_state.json"
POLL_SECONDS: Final = 0.1
STOP_SECONDS: Final = 20.0


@dataclass(frozen=True, slots=True)
class TrainResult:
    """What a finished run left.

    Attributes:
        folder: run folder.
        adapter: folder with the adapter (or the full model).
        ledger: plan ledger, None when LLaMA-Factory ran as it is.
        steps: optimizer steps of the whole run.
        losses: (step, loss) as logged.
        train_loss: mean training loss.
        eval_loss: last evaluation loss, if there was one.
        seconds: wall time of this call.
        resumed_from: step this call went on from, 0 for a fresh start.
        notes: sentences worth telling.
    """

    folder: Path
    adapter: Path
    ledger: Path | None
    steps: int
    losses: tuple[tuple[int, float], ...]
    train_loss: float | None
    eval_loss: float | None
    seconds: float
    resumed_from: int = 0
    notes: tuple[str, ...] = ()


def train(
    config: TrainConfig,
    out_dir: Path,
    *,
    nproc: int = 1,
    resume: bool = False,
    offline: bool = False,
    on_event: EventCallback | None = None,
    cache: Path | None = None,
    project: Path | None = None,
) -> TrainResult:
    """Train in child processes.

    Args:
        config: what to train.
        out_dir: run folder.
        nproc: processes on this machine.
        resume: go on from the last whole checkpoint in `out_dir`.
        offline: forbid Hugging Face libraries the network.
        on_event: is given every event (see `events`).
        cache: where local models are cached; the user's own cache when unset.
        project: folder with the project's own registered benchmarks.

    Raises:
        DatamillError: `DM-TRAIN-007` to `-013` before or after training; `DM-TRAIN-012` when a process fails.
    """
    began = time.monotonic()
    spec, notes = prepare(config, out_dir, nproc=nproc, resume=resume, cache=cache, project=project)
    path = spec.write()
    (out_dir / CONFIG_FILE).write_text(config.render_yaml(**_ours(spec)), encoding="utf-8")
    (out_dir / RESULT_FILE).unlink(missing_ok=True)
    offset = (out_dir / EVENTS_FILE).stat().st_size if (out_dir / EVENTS_FILE).exists() else 0
    _run(
        _command(path, nproc),
        _environment(spec, offline),
        config.base_dir,
        out_dir,
        EventReader(out_dir, offset),
        on_event,
    )
    result = json.loads((out_dir / RESULT_FILE).read_text(encoding="utf-8"))
    return TrainResult(
        folder=out_dir,
        adapter=Path(result["output"]),
        ledger=out_dir / LEDGER_FILE if spec.section else None,
        steps=result["steps"],
        losses=tuple((int(step), float(loss)) for step, loss in result["losses"]),
        train_loss=result["train_loss"],
        eval_loss=result["eval_loss"],
        seconds=time.monotonic() - began,
        resumed_from=_step(spec.resume),
        notes=notes,
    )


def prepare(
    config: TrainConfig,
    out_dir: Path,
    *,
    nproc: int = 1,
    resume: bool = False,
    cache: Path | None = None,
    project: Path | None = None,
) -> tuple[RunSpec, tuple[str, ...]]:
    """Everything that can be refused is refused here; then the spec the processes run.

    Raises:
        DatamillError: see `train`.
    """
    written = config.llamafactory.get("output_dir")
    output = out_dir.resolve() / MODEL_FOLDER
    if written is not None and (config.base_dir / str(written)).resolve() != output:
        notes: list[str] = [f"output_dir {written} of the file is not used: the run writes to {output}"]
    else:
        notes = []
    notes += [*config.notes, *check_targets(config, project)]
    model, template = resolve_model(str(config.llamafactory.get("model_name_or_path")), cache=cache)
    fingerprints = {
        "config": config.fingerprint(),
        "model": model_fingerprint(Path(config.base_dir / model)),
        "dataset": dataset_fingerprint(config),
        "processes": str(nproc),
    }
    checkpoint = _checkpoint(out_dir, fingerprints) if resume else None
    if resume and checkpoint is None:
        notes.append("no whole checkpoint to go on from: started at step 0")
    if checkpoint is None:
        _clear(out_dir)
    ours: dict[str, Any] = {"model_name_or_path": model, "output_dir": str(output), "overwrite_output_dir": True}
    if template is not None and "template" not in config.llamafactory:
        ours["template"] = template
    if checkpoint is not None:
        ours["resume_from_checkpoint"] = str(checkpoint)
    total = config.step_rule().total
    if total is not None:
        ours["max_steps"] = total
    spec = RunSpec(
        folder=out_dir.resolve(),
        llamafactory=config.render(**ours),
        section=config.section,
        fingerprints=fingerprints,
        resume=str(checkpoint) if checkpoint else None,
        deepspeed=config.llamafactory.get("deepspeed") is not None,
    )
    return spec, tuple(notes)


def whole_checkpoints(out_dir: Path) -> list[Path]:
    """Checkpoints that were written to the end, oldest first."""
    folders = sorted((out_dir / MODEL_FOLDER).glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
    return [folder for folder in folders if _is_whole(folder)]


def _is_whole(folder: Path) -> bool:
    try:
        json.loads((folder / "trainer_state.json").read_text(encoding="utf-8"))  # the last file of a checkpoint
        state = json.loads((folder / STATE_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return len(list(folder.glob("rng_state*.pth"))) >= int(state["world_size"])


def _checkpoint(out_dir: Path, fingerprints: Mapping[str, str]) -> Path | None:
    whole = whole_checkpoints(out_dir)
    if not whole:
        return None
    state = json.loads((whole[-1] / STATE_FILE).read_text(encoding="utf-8"))
    changed = [name for name, value in fingerprints.items() if state["fingerprints"].get(name) != value]
    if changed:
        raise DatamillError(
            "DM-TRAIN-009",
            f"the checkpoint was made with another {' and '.join(changed)}",
            exit_code=ExitCode.INVALID,
            file=str(whole[-1]),
            fix="continue with the old settings, or start a new run from these weights: give another folder and "
            f"adapter_name_or_path={whole[-1]}",
        )
    trainer_state = json.loads((whole[-1] / "trainer_state.json").read_text(encoding="utf-8"))
    if state["step"] >= trainer_state["max_steps"]:
        raise DatamillError(
            "DM-TRAIN-010",
            f"nothing to do: the run ended at step {state['step']} of {trainer_state['max_steps']}",
            exit_code=ExitCode.INVALID,
            file=str(whole[-1]),
            fix="start a new run with more steps, or use its result",
        )
    return whole[-1]


def _clear(out_dir: Path) -> None:
    """Remove what an earlier run of this folder left, and nothing else."""
    for name in (LEDGER_FILE, SAMPLES_FILE, EVENTS_FILE, RESULT_FILE, LOG_FILE):
        (out_dir / name).unlink(missing_ok=True)
    for name in (SCORES_FOLDER, MODEL_FOLDER):
        shutil.rmtree(out_dir / name, ignore_errors=True)


def _ours(spec: RunSpec) -> dict[str, Any]:
    return {key: spec.llamafactory[key] for key in ("model_name_or_path", "output_dir", "overwrite_output_dir")} | {
        key: spec.llamafactory[key] for key in ("template", "max_steps") if key in spec.llamafactory
    }


def _step(checkpoint: str | None) -> int:
    return int(Path(checkpoint).name.split("-")[1]) if checkpoint else 0


def _command(spec: Path, nproc: int) -> list[str]:
    module = ["-m", "datamill.training.worker", str(spec)]
    deepspeed = json.loads(spec.read_text(encoding="utf-8"))["deepspeed"]
    if nproc == 1 and not deepspeed:
        return [sys.executable, *module]
    launcher = ["-m", "torch.distributed.run", "--nproc_per_node", str(nproc), "--master_port", str(_free_port())]
    return [sys.executable, *launcher, *module]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _environment(spec: RunSpec, offline: bool) -> dict[str, str]:
    environment = dict(os.environ)
    if offline:
        environment |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    if spec.deepspeed and "CUDA_VISIBLE_DEVICES" not in environment and shutil.which("nvidia-smi") is None:
        environment |= {"DS_ACCELERATOR": "cpu", "CUDA_VISIBLE_DEVICES": ""}
    return environment


def _run(
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    out_dir: Path,
    events: EventReader,
    on_event: EventCallback | None,
) -> None:
    failed: list[Mapping[str, Any]] = []

    def follow() -> None:
        for event in events.new():
            if event["event"] == "failed":
                failed.append(event)
            if on_event is not None:
                on_event(event)

    with (out_dir / LOG_FILE).open("ab") as log:
        process = _start(command, environment, folder, log)
        try:
            while process.poll() is None:
                follow()
                time.sleep(POLL_SECONDS)
        finally:
            _stop(process)
    follow()
    if process.returncode != 0:
        raise _failure(process.returncode, failed, out_dir / LOG_FILE)


def _start(
    command: Sequence[str], environment: Mapping[str, str], folder: Path, log: IO[bytes]
) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(  # noqa: S603 - our own module, no shell
        command, env=dict(environment), cwd=folder, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
    )


def _stop(process: "subprocess.Popen[bytes]") -> None:
    """End the processes when the caller is interrupted, with whatever they started."""
    if process.poll() is not None:
        return
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _failure(code: int, failed: Sequence[Mapping[str, Any]], log: Path) -> DatamillError:
    if failed:
        issues = [Issue(**issue) for issue in failed[0]["issues"]]
        return DatamillError(issues[0].code, issues[0].message, exit_code=ExitCode.STEP_FAILED, issues=issues)
    tail = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:] if log.exists() else []
    return DatamillError(
        "DM-TRAIN-012",
        f"the training process ended with code {code}{': ' + tail[0] if tail else ''}",
        exit_code=ExitCode.STEP_FAILED,
        file=str(log),
        fix=f"read the end of {log}; datamill train --resume goes on from the last checkpoint",
    )
