"""A saved adapter is loaded back before a run is called done.

Under ZeRO-3 an adapter that was not gathered is saved with shapes `[0]` and found out when somebody wants to use it.
The check reads the file's header for shapes, compares them with the rank in `adapter_config.json`, and the values of
the B factors: they start as zeros, so all zeros after training means nothing was learned or nothing was saved.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from datamill.errors import DatamillError, ExitCode

ADAPTER_FILE: Final = "adapter_model.safetensors"
CONFIG_FILE: Final = "adapter_config.json"


def shape_problems(shapes: Mapping[str, Sequence[int]], rank: int | None = None) -> list[str]:
    """What is wrong with the shapes of LoRA factors: one sentence a tensor, empty when all is well.

    Args:
        shapes: by tensor name; A is (rank, inputs) and B is (outputs, rank).
        rank: expected rank, not checked when None.
    """
    problems = []
    for name, shape in shapes.items():
        if len(shape) == 0 or 0 in shape:
            problems.append(f"{name} is empty: shape {list(shape)}")
        elif rank is not None and len(shape) == 2:
            found = shape[0] if "lora_A" in name else shape[1] if "lora_B" in name else rank
            if found != rank:
                problems.append(f"{name} has rank {found}, not {rank}")
    return problems


def check_adapter(folder: Path) -> dict[str, list[int]]:
    """Load a saved LoRA adapter back.

    Args:
        folder: holds `adapter_model.safetensors` and `adapter_config.json`.

    Returns:
        Shape by tensor name.

    Raises:
        DatamillError: `DM-TRAIN-011` naming every bad tensor, or saying that every B is zero.
    """
    from safetensors import SafetensorError, safe_open

    path = folder / ADAPTER_FILE
    try:
        with safe_open(path, framework="numpy") as tensors:
            shapes = {name: list(tensors.get_slice(name).get_shape()) for name in tensors.keys()}  # noqa: SIM118 - no mapping
            problems = shape_problems(shapes, _rank(folder))
            if not shapes:
                problems = ["the file holds no tensor"]
            outputs = [name for name in shapes if "lora_B" in name]
            if not problems and outputs and not any(tensors.get_tensor(name).any() for name in outputs):
                problems = ["every B factor is zero: training changed nothing"]
    except (OSError, SafetensorError) as error:
        raise _refuse(path, [f"cannot load it: {error}"]) from error
    if problems:
        raise _refuse(path, problems)
    return shapes


def _rank(folder: Path) -> int | None:
    config = folder / CONFIG_FILE
    if not config.is_file():
        return None
    data = json.loads(config.read_text(encoding="utf-8"))
    return None if data.get("rank_pattern") else data.get("r")


def _refuse(path: Path, problems: Sequence[str]) -> DatamillError:
    return DatamillError(
        "DM-TRAIN-011",
        f"the saved adapter is not usable: {'; '.join(problems)}",
        exit_code=ExitCode.STEP_FAILED,
        file=str(path),
        fix="train again; with DeepSpeed set stage3_gather_16bit_weights_on_model_save: true",
    )
