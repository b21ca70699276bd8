import json
from typing import Any

import numpy as np
import pytest

from datamill.errors import DatamillError
from datamill.training.contracts import SignalTable
from datamill.training.plan_ledger import (
    PlanEntry,
    PlanLedger,
    fate_of,
    read_entries,
    scores_digest,
    write_samples,
    write_scores,
)

IDS = ["a", "b", "c", "d", "e"]


def entry(number: Any, start: Any, end: Any, windows: Any, kind: Any = "natural") -> Any:
    flat = [row for window in windows for micro in window for batch in micro for row in batch]
    return PlanEntry(number, start, end, kind, windows, [IDS[i] for i in flat], "less", {"config": "x"}, "00", 0.0)


@pytest.fixture
def ledger(tmp_path: Any) -> Any:
    book = PlanLedger(tmp_path)
    book.append(entry(0, 0, 2, [[[[0, 1]]], [[[2]]]]))
    book.append(entry(1, 2, 3, [[[[4, 3]]]], "selected"))
    return book


def test_written_lines_come_back(ledger: Any, tmp_path: Any) -> None:
    assert read_entries(tmp_path / "plan_ledger.jsonl") == ledger.entries
    assert ledger.entries[1].positions() == [4, 3]
    assert ledger.entries[1].ids == ["e", "d"]


def test_plans_follow_one_another(ledger: Any) -> None:
    with pytest.raises(DatamillError, match="does not follow step 3"):
        ledger.append(entry(2, 4, 5, [[[[0]]]]))
    with pytest.raises(DatamillError, match="DM-TRAIN-022"):
        ledger.append(entry(2, 3, 3, []))


def test_serving_is_the_last_plan_or_none(ledger: Any) -> None:
    assert ledger.serving(2).plan == 1
    assert ledger.serving(3) is None
    assert ledger.serving(0) is None


@pytest.mark.parametrize(("step", "kept"), [(0, 0), (1, 1), (2, 1), (3, 2)])
def test_truncation_keeps_the_plans_that_began(ledger: Any, tmp_path: Any, step: Any, kept: Any) -> None:
    ledger.truncate(step)
    assert len(ledger.entries) == kept
    assert read_entries(tmp_path / "plan_ledger.jsonl") == ledger.entries


def test_ranks_that_follow_write_nothing(tmp_path: Any) -> None:
    book = PlanLedger(tmp_path)
    book.append(entry(0, 0, 1, [[[[0]]]]), write=False)
    assert book.serving(0) is not None
    assert not (tmp_path / "plan_ledger.jsonl").exists()


def test_line_cut_short_by_a_kill_is_left_out(ledger: Any, tmp_path: Any) -> None:
    path = tmp_path / "plan_ledger.jsonl"
    path.write_bytes(path.read_bytes()[:-7])
    assert [plan.plan for plan in read_entries(path)] == [0]


def test_damage_in_the_middle_is_named_with_its_line(ledger: Any, tmp_path: Any) -> None:
    path = tmp_path / "plan_ledger.jsonl"
    path.write_text("{oops\n" + path.read_text())
    with pytest.raises(DatamillError) as caught:
        read_entries(path)
    assert caught.value.code == "DM-TRAIN-023"
    assert caught.value.issues[0].line == 1


def test_digest_is_of_what_is_trained() -> None:
    one, same, other = (entry(n, 0, 1, [[[rows]]]) for n, rows in ((0, [0, 1]), (7, [0, 1]), (0, [1, 0])))
    assert one.digest() == same.digest()
    assert one.digest() != other.digest()


def test_scores_digest_ignores_the_order_of_rows() -> None:
    table = SignalTable("score", np.array([1, 0]), np.array([0.5, 0.25]))
    turned = SignalTable("score", np.array([0, 1]), np.array([0.25, 0.5]))
    other = SignalTable("score", np.array([0, 1]), np.array([0.5, 0.25]))
    assert scores_digest(table) == scores_digest(turned) != scores_digest(other)


def test_fates(ledger: Any, tmp_path: Any) -> None:
    write_samples(tmp_path, IDS, ["gone"])
    scores = SignalTable("score", np.array([1, 3, 4]), np.array([0.1, 0.7, 0.9]))
    write_scores(tmp_path, 1, scores, [3, 4], IDS)
    assert fate_of(tmp_path, "gone").dropped
    chosen = fate_of(tmp_path, "e")
    assert chosen.trained_steps == (2,)
    assert [(plan.plan, plan.score, plan.selected) for plan in chosen.plans] == [(1, 0.9, True)]
    passed_over = fate_of(tmp_path, "b")
    assert [(plan.plan, plan.score, plan.selected, plan.steps) for plan in passed_over.plans] == [
        (0, None, False, (0,)),
        (1, 0.1, False, ()),
    ]
    assert fate_of(tmp_path, "c").trained_steps == (1,)


def test_unknown_row_and_unknown_folder(ledger: Any, tmp_path: Any) -> None:
    with pytest.raises(DatamillError, match="no training run"):
        fate_of(tmp_path, "a")
    write_samples(tmp_path, IDS, [])
    with pytest.raises(DatamillError, match="no row `z`"):
        fate_of(tmp_path, "z")


def test_line_is_plain_json(ledger: Any, tmp_path: Any) -> None:
    line = json.loads((tmp_path / "plan_ledger.jsonl").read_text().splitlines()[0])
    assert line["windows"] == [[[[0, 1]]], [[[2]]]]
    assert line["fingerprints"] == {"config": "x"}
