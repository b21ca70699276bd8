"""A run that changes nothing about the data is stock LLaMA-Factory, bit for bit, trained in a process of its own."""

import json
from typing import Any

import pytest

pytestmark = [pytest.mark.train, pytest.mark.slow]

STATIC = {"train_type": "static"}
ALL_IDS = {
    "train_type": "dynamic_select",
    "component_name": "loss",
    "warmup_step": 3,
    "update_step": 6,
    "train_step": 9,
}
CASES = {
    "plain": (STATIC, {}),
    "dropout": (STATIC, {"lora_dropout": 0.1, "num_train_epochs": 2.0}),
    "accumulate": (STATIC, {"gradient_accumulation_steps": 4, "num_train_epochs": 2.0}),
    "accumulate_dropout": (STATIC, {"gradient_accumulation_steps": 4, "lora_dropout": 0.1, "num_train_epochs": 2.0}),
    "by_length": (STATIC, {"train_sampling_strategy": "group_by_length", "num_train_epochs": 2.0, "lora_dropout": 0.1}),
    "in_order": (STATIC, {"disable_shuffling": True, "gradient_accumulation_steps": 4}),
    "pretrain": (STATIC, {"stage": "pt", "dataset": "text_d", "packing": False, "gradient_accumulation_steps": 4}),
    "packed": (STATIC, {"packing": True, "neat_packing": False}),
    "all_ids": (ALL_IDS | {"target_dataset": "val_d"}, {"gradient_accumulation_steps": 4, "lora_dropout": 0.1}),
}


@pytest.fixture(scope="module")
def pairs(workbench: Any, tmp_path_factory: Any) -> Any:
    root = tmp_path_factory.mktemp("identity")
    specs = [workbench.spec(root / "ours" / name, section, **changes) for name, (section, changes) in CASES.items()]
    steps = {name: section["train_step"] for name, (section, _) in CASES.items() if "train_step" in section}
    arguments = [
        workbench.stock(root / "stock" / name, **changes, **({"max_steps": steps[name]} if name in steps else {}))
        for name, (_, changes) in CASES.items()
    ]
    for kind, paths in (("stock", arguments), ("ours", specs)):
        done = workbench.run(kind, paths)
        assert done.returncode == 0, done.stderr[-3000:]
    return root


@pytest.mark.parametrize("name", CASES)
def test_losses_and_parameters_are_stock(pairs: Any, name: Any, read_losses: Any, read_weights: Any) -> None:
    ours, stock = pairs / "ours" / name, pairs / "stock" / name
    assert len(read_losses(ours)) >= 3
    assert read_losses(ours) == read_losses(stock)
    assert read_weights(ours) == read_weights(stock)


def test_dropout_is_felt(pairs: Any, read_losses: Any) -> None:
    assert read_losses(pairs / "ours" / "accumulate") != read_losses(pairs / "ours" / "accumulate_dropout")


def test_every_row_is_served_once_an_epoch(pairs: Any) -> None:
    lines = (pairs / "ours" / "accumulate" / "plan_ledger.jsonl").read_text().splitlines()
    plans = [json.loads(line) for line in lines]
    assert [(plan["start"], plan["end"]) for plan in plans] == [(0, 6), (6, 12)]
    for plan in plans:
        assert sorted(plan["ids"]) == [f"r{i:03d}" for i in range(41)]
    assert plans[0]["ids"] != plans[1]["ids"]


def test_selection_of_everything_is_recorded(pairs: Any) -> None:
    lines = (pairs / "ours" / "all_ids" / "plan_ledger.jsonl").read_text().splitlines()
    kinds = [(plan["kind"], plan["chosen"]) for plan in map(json.loads, lines)]
    assert kinds == [("natural", 41), ("selected", 41)]
