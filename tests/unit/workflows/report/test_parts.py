"""Distributions as exact counts, and the training part from a real ledger."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from datamill.operators.declaration import ColumnType
from datamill.training.contracts import SignalTable
from datamill.training.plan_ledger import PlanEntry, PlanLedger, write_scores
from datamill.workflows.report.distributions import MAX_VALUES, columns_to_show, distributions
from datamill.workflows.report.training_part import QUANTILES, training_part

IDS = [f"{letter}" * 4 for letter in "abcdef"]
STATE = {"status": "done", "adapter": "a", "steps": 4, "seconds": 1.0, "train_loss": 1.0, "eval_loss": None}


def test_lengths_are_counted_in_powers_of_two_over_all_shards() -> None:
    texts = ["", "a", "bb", "ccc", "é" * 4, "x" * 1000, None]
    tables = [pa.table({"text": texts[:3]}), pa.table({"text": pa.array(texts[3:])})]
    found = distributions(tables, ["text"], [])
    assert found["rows"] == 7
    assert found["lengths"]["text"] == [[0, 0, 2], [1, 1, 1], [2, 3, 2], [4, 7, 1], [512, 1023, 1]]


def test_a_conversation_is_as_long_as_its_turns() -> None:
    chat = [{"role": "user", "content": "abc"}, {"role": "assistant", "content": "defgh"}]
    found = distributions([pa.table({"messages": [chat, []]})], ["messages"], [])
    assert found["lengths"]["messages"] == [[0, 0, 1], [8, 15, 1]]


def test_labels_are_counted_and_the_rare_ones_added_up() -> None:
    values = [f"v{n:02d}" for n in range(MAX_VALUES + 3) for _ in range(MAX_VALUES + 4 - n)]
    labels = distributions([pa.table({"lang": values})], [], ["lang"])["labels"]["lang"]
    assert labels[0] == ["v00", MAX_VALUES + 4]
    assert labels[-1] == ["(other)", 4 + 3 + 2]
    assert sum(count for _, count in labels) == len(values)


def test_columns_worth_a_picture() -> None:
    string = ColumnType("string", nullable=False)
    schema = {"text": string, "row_id": string, "lang": ColumnType("string", nullable=False, semantic="label"),
              "score": ColumnType("float64", nullable=False)}  # fmt: skip
    assert columns_to_show(schema) == (["text"], ["lang"])


def entry(plan: int, ids: list[str], kind: Any = "selected") -> PlanEntry:
    return PlanEntry(plan, plan, plan + 1, kind, [[[list(range(len(ids)))]]], ids, "less", {}, "", 0.0, 6, len(ids))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    ledger = PlanLedger(tmp_path)
    ledger.append(entry(0, IDS[:2], "natural"))
    ledger.append(entry(1, IDS[:3]))
    ledger.append(entry(2, IDS[2:5]))
    scores = np.array([0.1, 0.9, -0.5, 0.3, 0.2, 0.0])
    write_scores(tmp_path, 2, SignalTable("score", np.arange(6), scores), [2, 3, 4], IDS)
    return tmp_path


def rows() -> list[dict[str, Any]]:
    return [{"_id": name, "messages": [{"role": "user", "content": f"row {name}"}]} for name in IDS]


def test_plans_overlap_quantiles_and_samples(folder: Path) -> None:
    part = training_part(folder, STATE, [], rows())
    assert part is not None
    assert [plan["kind"] for plan in part["plans"]] == ["natural", "selected", "selected"]
    assert part["overlap"] == [[1.0, 0.2], [0.2, 1.0]], "one of five rows was served by both"
    quantiles = part["plans"][2]["quantiles"]
    assert len(quantiles) == len(QUANTILES)
    assert (quantiles[0], quantiles[3], quantiles[-1]) == pytest.approx((-0.5, 0.15, 0.9))
    assert [sample["id"] for sample in part["best"]][:2] == ["bbbb", "dddd"]
    assert part["worst"][0]["id"] == "cccc"
    assert part["best"][0]["text"] == "user: row bbbb"


def test_a_resumed_step_counts_once_with_its_later_loss(folder: Path) -> None:
    log = [
        ("train_log", 1, 3.0),
        ("train_log", 2, 2.5),
        ("train_log", 2, 2.4),
        ("other", 3, 9.0),
        ("train_log", 3, 2.0),
    ]
    events = [{"event": name, "step": step, "loss": loss} for name, step, loss in log]
    part = training_part(folder, STATE, [*events, {"event": "train_log", "step": 4}], rows())
    assert part is not None
    assert part["curve"] == [[1, 3.0], [2, 2.4], [3, 2.0]]


def test_training_without_a_ledger_or_scores(tmp_path: Path) -> None:
    part = training_part(tmp_path, STATE, [], [])
    assert part is not None
    assert (part["plans"], part["overlap"], part["best"], part["worst"]) == ([], [], [], [])
    assert training_part(tmp_path, {}, [], []) is None
