import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from datamill.errors import DatamillError
from datamill.training.adapter_check import check_adapter, shape_problems

CASE = Path(__file__).parents[4] / "shared" / "cases" / "74-zero3-empty-adapter-saved"


def save(folder: Any, **tensors: Any) -> None:
    from safetensors.numpy import save_file

    save_file({name.replace("__", "."): value for name, value in tensors.items()}, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps({"r": 2}))


@pytest.mark.skipif(not CASE.is_dir(), reason="../shared is absent")
def test_case_74() -> None:
    bad, good = (json.loads((CASE / f"shapes_{name}.json").read_text()) for name in ("bad", "ok"))
    assert [problem.split()[0] for problem in shape_problems(bad)] == ["q.lora_A", "q.lora_B"]
    assert shape_problems(good) == []


@pytest.mark.train
def test_good_adapter(tmp_path: Any) -> None:
    save(tmp_path, q__lora_A=np.ones((2, 3)), q__lora_B=np.ones((4, 2)))
    assert check_adapter(tmp_path) == {"q.lora_A": [2, 3], "q.lora_B": [4, 2]}


@pytest.mark.train
@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        ({"q__lora_A": np.ones((2, 3)), "q__lora_B": np.zeros((4, 2))}, "every B factor is zero"),
        ({"q__lora_A": np.ones(0), "q__lora_B": np.ones((4, 2))}, "q.lora_A is empty"),
        ({"q__lora_A": np.ones((3, 3)), "q__lora_B": np.ones((4, 2))}, "has rank 3, not 2"),
        ({}, "no tensor"),
    ],
)
def test_unusable_adapters(tmp_path: Any, tensors: Any, words: Any) -> None:
    save(tmp_path, **tensors)
    with pytest.raises(DatamillError, match=words) as caught:
        check_adapter(tmp_path)
    assert caught.value.code == "DM-TRAIN-011"


@pytest.mark.train
def test_file_that_is_none(tmp_path: Any) -> None:
    (tmp_path / "adapter_model.safetensors").write_bytes(b"nothing")
    with pytest.raises(DatamillError, match="cannot load it"):
        check_adapter(tmp_path)
