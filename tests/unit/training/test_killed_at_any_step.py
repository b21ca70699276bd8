"""`kill -9` at every step of a run with LESS, and of one of two ranks: the resumed run is the one that was never killed."""

import json
from pathlib import Path
from typing import Any

import pytest

from datamill.training.config import from_mapping
from datamill.training.launch import train, whole_checkpoints
from datamill.training.plan_ledger import read_entries

pytestmark = [pytest.mark.train, pytest.mark.slow]

STEPS = 8
SECTION = {
    "train_type": "dynamic_select",
    "component_name": "less",
    "component_params": {"proj_dim": 256, "checkpoints": 2},
    "warmup_step": 2,
    "update_step": 3,
    "train_step": STEPS,
    "target_dataset": "val_d",
}
ZERO3 = {
    "train_batch_size": "auto",
    "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto",
    "gradient_clipping": "auto",
    "zero_allow_untested_optimizer": True,
    "zero_optimization": {"stage": 3, "overlap_comm": False, "stage3_gather_16bit_weights_on_model_save": True},
}
CHANGES = {"lora_dropout": 0.1, "save_strategy": "steps", "save_steps": 2, "gradient_accumulation_steps": 2}


@pytest.fixture(scope="module")
def killed(workbench: Any, tmp_path_factory: Any) -> Path:
    """`whole` was left alone; `at-K` died when step K + 1 was about to start and was resumed."""
    root = tmp_path_factory.mktemp("killed")
    done = workbench.run("ours", [workbench.spec(root / "whole", SECTION, **CHANGES)])
    assert done.returncode == 0, done.stderr[-3000:]
    config = workbench.arguments(**CHANGES) | {"dataflex": SECTION}
    cases = [
        {"step": step, "config": config, "base": str(workbench.root), "folder": str(root / f"at-{step}")}
        for step in range(STEPS)
    ]
    done = workbench.run("killed", cases)
    assert done.returncode == 0, done.stderr[-3000:]
    return root


@pytest.mark.parametrize("step", range(STEPS))
def test_resumed_run_is_the_one_never_killed(killed: Path, step: int, read_losses: Any, read_weights: Any) -> None:
    resumed = (killed / f"at-{step}" / "resumed_from").read_text()
    last = (step - 1) // 2 * 2 if step else 0  # a checkpoint of step K is whole only when K + 1 was served
    assert resumed == "None" if step < 2 else Path(resumed).name in (f"checkpoint-{last}", f"checkpoint-{last + 2}")
    whole, cut = (read_entries(killed / name / "plan_ledger.jsonl") for name in ("whole", f"at-{step}"))
    assert [(p.start, p.end, p.kind, p.ids, p.windows, p.scores_digest) for p in whole] == [
        (p.start, p.end, p.kind, p.ids, p.windows, p.scores_digest) for p in cut
    ]
    assert [p.kind for p in whole] == ["natural", "selected", "selected"]
    assert read_losses(killed / "whole") == read_losses(killed / f"at-{step}")
    assert read_weights(killed / "whole") == read_weights(killed / f"at-{step}")


def test_the_plans_differ_from_each_other(killed: Path) -> None:
    """Else equality above would say little."""
    digests = [entry.scores_digest for entry in read_entries(killed / "whole" / "plan_ledger.jsonl")]
    assert len(set(digests)) == len(digests)


@pytest.mark.parametrize("engine", ["ddp", "zero3"])
def test_one_of_two_ranks_killed(
    engine: str, workbench: Any, tmp_path: Path, read_losses: Any, read_weights: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The launcher ends the other rank; the resumed pair decides and trains what an untouched pair does."""
    changes = CHANGES | {"gradient_accumulation_steps": 1}
    if engine == "zero3":
        (tmp_path / "zero3.json").write_text(json.dumps(ZERO3))
        changes["deepspeed"] = str(tmp_path / "zero3.json")
    for name, value in {"DS_ACCELERATOR": "cpu", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}.items():
        monkeypatch.setenv(name, value)
    section = SECTION | {"train_step": 6}
    whole, cut = (workbench.spec(tmp_path / name, section, nproc=2, **changes) for name in ("whole", "cut"))
    died = workbench.run("ours", [whole, cut], nproc=2, env={"KILL_AT": "5", "KILL_RANK": "1"})
    assert died.returncode != 0
    assert [path.name for path in whole_checkpoints(tmp_path / "cut")] in (
        [f"checkpoint-{step}" for step in steps] for steps in ((2,), (2, 4))
    )
    monkeypatch.setenv("HF_HOME", str(workbench.root / "hf"))
    config = from_mapping(workbench.arguments(**changes) | {"dataflex": section}, base_dir=workbench.root)
    result = train(config, tmp_path / "cut", nproc=2, resume=True, offline=True)
    assert result.resumed_from in (2, 4)
    plans = [
        [(p.ids, p.windows) for p in read_entries(tmp_path / name / "plan_ledger.jsonl")] for name in ("whole", "cut")
    ]
    assert plans[0] == plans[1]
    assert read_losses(tmp_path / "whole") == read_losses(tmp_path / "cut")
    assert read_weights(tmp_path / "whole") == read_weights(tmp_path / "cut")
