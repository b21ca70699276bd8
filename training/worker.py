"""A training process: `python -m datamill.training.worker SPEC`, alone or one of several under torchrun.

It prepares what must happen before LLaMA-Factory is imported, runs LLaMA-Factory with our trainers in place, checks
what was saved, and writes `result.json`. Errors a person can act on leave as an event and exit code 3; anything else
is a traceback in the log and exit code 1.
"""

import json
import os
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

from datamill.errors import DatamillError
from datamill.training.adapter_check import CONFIG_FILE, check_adapter
from datamill.training.events import EventWriter
from datamill.training.llamafactory import cpu_ranks, torchaudio_placeholder
from datamill.training.llamafactory.versions import check_versions
from datamill.training.run_spec import RunSpec

RESULT_FILE: Final = "result.json"
ACTIONABLE_EXIT: Final = 3


def main(arguments: list[str]) -> int:
    """Run the spec file named on the command line."""
    spec = RunSpec.read(Path(arguments[0]))
    events = EventWriter(spec.folder, active=int(os.environ.get("RANK", "0")) == 0)
    try:
        run(spec, events)
    except DatamillError as error:
        events.emit("failed", code=error.code, issues=[issue.to_dict() for issue in error.issues])
        sys.stderr.write(f"{error}\n")
        return ACTIONABLE_EXIT
    return 0


def run(spec: RunSpec, events: EventWriter) -> None:
    """Train in this process.

    Raises:
        DatamillError: for anything a person can act on.
    """
    torchaudio_placeholder.install()
    versions = check_versions()
    cpu_ranks.install()
    if spec.deepspeed:
        _prepare_deepspeed()
    from llamafactory.train.tuner import run_exp

    from datamill.training.llamafactory.callbacks import EventCallback
    from datamill.training.llamafactory.placement import in_place

    plain = spec.section is None
    with nullcontext() if plain else in_place(spec):
        run_exp(dict(spec.llamafactory), callbacks=[EventCallback(events)])
    if int(os.environ.get("RANK", "0")) == 0:
        output = Path(str(spec.llamafactory["output_dir"]))
        result = {"output": str(output), "versions": versions, **outcome(output)}
        (spec.folder / RESULT_FILE).write_text(json.dumps(result, indent=1), encoding="utf-8")
        events.emit("done", **{key: result[key] for key in ("steps", "train_loss", "eval_loss")})


def outcome(output: Path) -> dict[str, Any]:
    """Losses and adapter of a finished run, the adapter checked.

    Raises:
        DatamillError: `DM-TRAIN-011` for an unusable adapter, `DM-TRAIN-010` when no step was trained.
    """
    state = json.loads((output / "trainer_state.json").read_text(encoding="utf-8"))
    history: list[Mapping[str, Any]] = state["log_history"]
    if not any("loss" in entry or "train_loss" in entry for entry in history):
        raise DatamillError("DM-TRAIN-010", "no step was trained", fix="raise train_step or num_train_epochs")
    adapter = (output / CONFIG_FILE).is_file()
    if adapter:
        check_adapter(output)
    evaluations = [entry["eval_loss"] for entry in history if "eval_loss" in entry]
    return {
        "steps": int(state["global_step"]),
        "losses": [(int(entry["step"]), float(entry["loss"])) for entry in history if "loss" in entry],
        "train_loss": next((entry["train_loss"] for entry in reversed(history) if "train_loss" in entry), None),
        "eval_loss": evaluations[-1] if evaluations else None,
        "adapter": adapter,
    }


def _prepare_deepspeed() -> None:
    """DeepSpeed must own the process group before a model is loaded, or ZeRO-3 does not shard it."""
    import torch

    backend = "nccl" if torch.cuda.is_available() else "gloo"
    if backend == "gloo":
        os.environ["DS_ACCELERATOR"] = "cpu"
    import deepspeed

    deepspeed.init_distributed(backend)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
