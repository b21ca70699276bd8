import json
from typing import Any

import pytest

from datamill.training.config import from_mapping
from datamill.training.explain import explain

LESS = {
    "train_type": "dynamic_select",
    "component_name": "less",
    "component_params": {"proj_dim": 4096},
    "warmup_step": 10,
    "update_step": 25,
    "update_times": 4,
    "target_dataset": "t",
}


@pytest.fixture
def make(tmp_path: Any) -> Any:
    rows = [{"instruction": "x" * 20, "output": "y" * 19}] * 101  # with the line break 40 bytes: 10 tokens
    (tmp_path / "d.json").write_text(json.dumps(rows))
    (tmp_path / "t.json").write_text(json.dumps([{"instruction": "z" * 79, "output": ""}] * 3))
    info = {"d": {"file_name": "d.json"}, "t": {"file_name": "t.json"}, "hub": {"hf_hub_url": "a/b"}}
    (tmp_path / "dataset_info.json").write_text(json.dumps(info))

    def build(section: Any = None, **changes: Any) -> Any:
        data = {"model_name_or_path": "tiny", "dataset": "d", "dataset_dir": str(tmp_path), **changes}
        data |= {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2}
        return from_mapping(data | ({"dataflex": section} if section else {}), base_dir=tmp_path)

    return build


def test_numbers_of_a_selection(make: Any) -> None:
    found = explain(make(LESS | {"candidate_window": 50}))
    assert (found.steps, found.warmup_steps, found.rounds, found.scored_rows) == (110, 10, 4, 50)
    assert found.trained_tokens == 110 * 8 * 10
    assert found.scored_tokens == 4 * (50 * 10 + 3 * 20)
    assert found.feature_bytes == 4096 * 50 * 4
    text = "\n".join(found.lines())
    assert "warm-up 10 steps, then 4 rounds, each scoring 50 rows" in text
    assert "50 of 101 rows a round" in text
    assert "nothing was started" in text


def test_full_pool_is_said_by_its_size(make: Any) -> None:
    found = explain(make(LESS))
    assert found.scored_rows == 101
    assert not found.notes


def test_static_follows_the_rows(make: Any) -> None:
    found = explain(make({"train_type": "static"}, num_train_epochs=3), nproc=2)
    assert (found.steps, found.rounds, found.scored_tokens, found.feature_bytes) == (21, 0, 0, None)
    assert "3 epochs" in found.rule


def test_random_scores_nothing(make: Any) -> None:
    assert explain(make(LESS | {"component_name": "random", "component_params": {}})).scored_tokens == 0


def test_max_samples_counts(make: Any) -> None:
    assert explain(make(LESS, max_samples=7)).scored_rows == 7


def test_data_elsewhere_is_unknown_and_says_so(make: Any) -> None:
    found = explain(make(None, dataset="hub"))
    assert (found.rows, found.steps, found.trained_tokens) == (None, None, None)
    assert "? rows, ? steps" in found.lines()[0]
