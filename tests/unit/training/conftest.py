"""A tiny model and a small data set shared by every training test, and short ways to run them."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from datamill.training.config import from_mapping
from datamill.training.launch import prepare

HARNESS = Path(__file__).parent / "many_runs.py"
ROWS = 41


def _rows(prefix: str, count: int) -> list[dict[str, str]]:
    rows = []
    for i in range(count):
        a, b = (7 * i + 3) % 50, (11 * i + 5) % 40
        tail = " and show every step of it" * (i % 4)
        rows.append(
            {
                "_id": f"{prefix}{i:03d}",
                "instruction": f"Case {prefix}{i}: add {a} to {b}{tail}.",
                "input": "",
                "output": f"The answer is {a + b}." if i % 3 else f"It makes {a + b}, as {a} plus {b} is {a + b}.",
            }
        )
    return rows


@dataclass(frozen=True)
class Workbench:
    """Where the tiny model and the data are."""

    root: Path
    model: Path

    def arguments(self, **changes: Any) -> dict[str, Any]:
        """Arguments of a short LoRA run."""
        return {
            "model_name_or_path": str(self.model),
            "template": "qwen",
            "stage": "sft",
            "do_train": True,
            "finetuning_type": "lora",
            "lora_rank": 4,
            "lora_target": "all",
            "dataset": "train_d",
            "dataset_dir": str(self.root / "data"),
            "cutoff_len": 64,
            "per_device_train_batch_size": 2,
            "gradient_accumulation_steps": 1,
            "learning_rate": 1.0e-3,
            "logging_steps": 1,
            "save_strategy": "no",
            "num_train_epochs": 1.0,
            "report_to": "none",
            **changes,
        }

    def spec(self, folder: Path, section: Mapping[str, Any] | None, nproc: int = 1, **changes: Any) -> Path:
        """Write the spec of one run of ours."""
        data = self.arguments(**changes) | ({"dataflex": dict(section)} if section is not None else {})
        spec, _ = prepare(from_mapping(data, base_dir=self.root), folder, nproc=nproc)
        return spec.write()

    def stock(self, folder: Path, **changes: Any) -> Path:
        """Write the arguments of one run of LLaMA-Factory as it is."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "arguments.json"
        path.write_text(json.dumps(self.arguments(output_dir=str(folder / "model"), **changes)))
        return path

    def run(
        self, kind: str, paths: Sequence[Any], *, nproc: int = 1, env: Mapping[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Run several specs in one process (or one torchrun)."""
        text = json.dumps(paths, default=str)
        listing = self.root / f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.json"
        listing.write_text(text)
        command = [str(HARNESS), kind, str(listing)]
        if nproc > 1:
            port = str(20000 + os.getpid() % 20000)
            command = ["-m", "torch.distributed.run", "--nproc_per_node", str(nproc), "--master_port", port, *command]
        return subprocess.run(
            [sys.executable, *command],
            env={**os.environ, **offline(self.root), **(env or {})},
            cwd=self.root,
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )


def offline(root: Path) -> dict[str, str]:
    """No hub, no shared caches, one thread."""
    return {
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "HF_HOME": str(root / "hf"),
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }


def losses(folder: Path) -> list[tuple[int, float]]:
    """(step, loss) as logged, unrounded."""
    history = json.loads((folder / "model" / "trainer_state.json").read_text())["log_history"]
    return [(entry["step"], entry["loss"]) for entry in history if "loss" in entry]


def weights(folder: Path) -> bytes:
    """Bytes of the saved adapter."""
    return (folder / "model" / "adapter_model.safetensors").read_bytes()


@pytest.fixture(scope="session")
def workbench(tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    root = tmp_path_factory.mktemp("training")
    data = root / "data"
    data.mkdir()
    train, target = _rows("r", ROWS), _rows("v", 6)
    (data / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in train))
    (data / "val.jsonl").write_text("".join(json.dumps(row) + "\n" for row in target))
    texts = "".join(json.dumps({"_id": row["_id"], "text": row["instruction"]}) + "\n" for row in train)
    (data / "text.jsonl").write_text(texts)
    info = {
        "train_d": {"file_name": "train.jsonl"},
        "val_d": {"file_name": "val.jsonl"},
        "text_d": {"file_name": "text.jsonl", "columns": {"prompt": "text"}},
    }
    (data / "dataset_info.json").write_text(json.dumps(info))
    model = root / "tiny"
    make = (
        "import sys; from pathlib import Path; from datamill.services.models import tiny; tiny.build(Path(sys.argv[1]))"
    )
    subprocess.run([sys.executable, "-c", make, str(model)], check=True, capture_output=True, timeout=200)
    return Workbench(root, model)


@pytest.fixture(scope="session")
def read_losses() -> Callable[[Path], list[tuple[int, float]]]:
    return losses


@pytest.fixture(scope="session")
def read_weights() -> Callable[[Path], bytes]:
    return weights
