"""Two gloo ranks under DDP and under DeepSpeed ZeRO-3 decide and train what one process does."""

import json
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from datamill.training.adapter_check import check_adapter
from datamill.training.plan_ledger import read_entries

pytestmark = [pytest.mark.train, pytest.mark.slow]

ENGINES = ("ddp", "zero3")
EVERYTHING = {
    "train_type": "dynamic_select",
    "component_name": "less",
    "component_params": {"proj_dim": 256},
    "target_dataset": "val_d",
    "warmup_step": 2,
    "update_step": 5,
    "scoring_token_budget": 256,
    "train_step": 7,
}
CHOICE = EVERYTHING | {"update_step": 2, "train_step": 6, "candidate_window": 12}
ZERO3 = {
    "train_batch_size": "auto",
    "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto",
    "gradient_clipping": "auto",
    "zero_allow_untested_optimizer": True,
    "zero_optimization": {
        "stage": 3,
        "overlap_comm": False,
        "stage3_param_persistence_threshold": 0,
        "stage3_gather_16bit_weights_on_model_save": True,
    },
}
CPU = {"DS_ACCELERATOR": "cpu", "CUDA_VISIBLE_DEVICES": "", "DUMP_FEATURES": "1"}


@pytest.fixture(scope="module")
def single(workbench: Any, tmp_path_factory: Any) -> Any:
    """The reference: one process, accumulation in place of the second rank."""
    folder = tmp_path_factory.mktemp("single")
    spec = workbench.spec(folder, CHOICE, gradient_accumulation_steps=2, max_samples=16)
    done = workbench.run("ours", [spec], env=CPU)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.fixture(scope="module", params=ENGINES)
def two_ranks(request: Any, workbench: Any, tmp_path_factory: Any) -> Any:
    """Static, selection of everything, and a real selection under one engine, one torchrun for the three."""
    root = tmp_path_factory.mktemp(request.param)
    changes = {"max_samples": 16}
    if request.param == "zero3":
        (root / "zero3.json").write_text(json.dumps(ZERO3))
        changes["deepspeed"] = str(root / "zero3.json")
    static = {"train_type": "static", "train_step": 7}
    sections = {"static": static, "everything": EVERYTHING, "choice": CHOICE}
    specs = [workbench.spec(root / name, section, nproc=2, **changes) for name, section in sections.items()]
    done = workbench.run("ours", specs, nproc=2, env=CPU)
    assert done.returncode == 0, done.stderr[-4000:]
    return root


def test_plan_is_the_one_of_a_single_process(single: Any, two_ranks: Any) -> None:
    ours, reference = (read_entries(folder / "plan_ledger.jsonl") for folder in (two_ranks / "choice", single))
    assert [(p.start, p.end, p.kind, p.ids) for p in ours] == [(p.start, p.end, p.kind, p.ids) for p in reference]
    assert [p.kind for p in ours] == ["natural", "selected", "selected"]
    assert all(len(micro) == 2 for plan in ours for window in plan.windows for micro in window)


def test_scores_are_those_of_a_single_process(single: Any, two_ranks: Any) -> None:
    for name in ("plan-0001.parquet", "plan-0002.parquet"):
        ours, reference = (pq.read_table(folder / "scores" / name) for folder in (two_ranks / "choice", single))
        assert ours["id"].to_pylist() == reference["id"].to_pylist()
        np.testing.assert_allclose(ours["score"].to_numpy(), reference["score"].to_numpy(), rtol=0, atol=1e-5)
        assert np.ptp(reference["score"].to_numpy()) > 1e-2


def test_per_sample_features_are_those_of_a_single_process(single: Any, two_ranks: Any) -> None:
    """At the first selection: the models are equal up to rounding, later ones drift by what rounding does to Adam."""
    reference = np.load(single / "features-0-0.npz")
    ranks = [np.load(two_ranks / "choice" / f"features-0-{rank}.npz") for rank in (0, 1)]
    assert len(reference.files) == 12
    assert set(ranks[0].files) | set(ranks[1].files) == set(reference.files)
    assert min(len(rank.files) for rank in ranks) > 0
    for rank in ranks:
        for row in rank.files:
            error = np.linalg.norm(rank[row] - reference[row]) / np.linalg.norm(reference[row])
            assert error < 1e-5


def test_features_differ_between_rows(single: Any) -> None:
    features = np.load(single / "features-0-0.npz")
    first, second = (features[name] for name in features.files[:2])
    assert np.linalg.norm(first - second) / np.linalg.norm(first) > 0.1


def test_scoring_leaves_the_next_step_untouched(two_ranks: Any, read_losses: Any, read_weights: Any) -> None:
    """LESS that takes every row scores in the middle of training; nothing it does may be felt."""
    kinds = [entry.kind for entry in read_entries(two_ranks / "everything" / "plan_ledger.jsonl")]
    assert kinds == ["natural", "selected"]
    assert len(read_losses(two_ranks / "everything")) == 7
    assert read_losses(two_ranks / "everything") == read_losses(two_ranks / "static")
    assert read_weights(two_ranks / "everything") == read_weights(two_ranks / "static")


def test_adapter_is_whole(two_ranks: Any) -> None:
    shapes = check_adapter(two_ranks / "choice" / "model")
    assert len(shapes) == 2 * 7 * 4
    assert all(0 not in shape for shape in shapes.values())
