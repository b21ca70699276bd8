"""format.preference: rules, ties, one-sided rows, children and balanced books."""

import itertools
import random
from typing import Any

import pyarrow as pa
import pytest

from datamill.operators.declaration import Context, registered
from datamill.operators.format.preference import PreferenceParams, preference
from datamill.services.engines.protocol import Outcome


def batch(**columns: Any) -> pa.Table:
    size = len(next(iter(columns.values())))
    system = {"_id": [f"{i:032x}" for i in range(size)], "_ord": [i << 10 for i in range(size)], "_src": ["f:1"] * size}
    return pa.table({**system, **columns})


def run(table: pa.Table, **params: Any) -> Outcome:
    outcome: Outcome = preference(table, PreferenceParams(**params), Context(step="pairs"))
    return outcome


def scored(scores: list[float], rule: str, **params: Any) -> list[tuple[str, str]]:
    answers = [f"a{index}" for index in range(len(scores))]
    table = batch(prompt=["q"], answers=[answers], scores=[scores])
    names = {"answers": "answers", "scores": "scores"}
    rows = run(table, rule=rule, **names, **params).rows
    return list(zip(rows["chosen"].to_pylist(), rows["rejected"].to_pylist(), strict=True))


def test_rules_on_a_scored_list() -> None:
    assert scored([1, 9, 4], "best_vs_worst") == [("a1", "a0")]
    assert scored([1, 9, 4], "all_pairs") == [("a1", "a2"), ("a1", "a0"), ("a2", "a0")]
    assert scored([1, 9, 4], "threshold", min_gap=5) == [("a1", "a2"), ("a1", "a0")]
    assert scored([3, 3], "best_vs_worst") == []


def test_all_pairs_equals_the_naive_enumeration() -> None:
    rng = random.Random(2)
    for _ in range(30):
        scores = [float(rng.randint(0, 4)) for _ in range(rng.randint(2, 6))]
        naive = {(f"a{i}", f"a{j}") for i, j in itertools.permutations(range(len(scores)), 2) if scores[i] > scores[j]}
        assert set(scored(scores, "all_pairs")) == naive


def test_a_list_without_scores_is_a_ranking() -> None:
    rows = run(batch(prompt=["q"], answers=[["x", "y", "z"]]), answers="answers").rows
    assert rows.select(["instruction", "chosen", "rejected"]).to_pylist() == [
        {"instruction": "q", "chosen": "x", "rejected": "z"}
    ]


def test_reasons_and_books() -> None:
    table = batch(
        prompt=["q", "q", "q", " ", None, "q"],
        chosen=["a", "same ", "a", "a", "a", "a"],
        rejected=["b", "same", None, "b", "b", ""],
    )
    outcome = run(table)
    assert outcome.rows["_id"].to_pylist() == [f"{0:032x}"]
    reasons = dict(zip(outcome.fates["id"].to_pylist(), outcome.fates["reason"].to_pylist(), strict=True))
    assert [reasons[f"{i:032x}"] for i in range(1, 6)] == [
        "tie",
        "one_sided",
        "empty_prompt",
        "null_prompt",
        "one_sided",
    ]


def test_children_have_ids_of_their_own_and_follow_their_parent() -> None:
    table = batch(prompt=["p", "q"], answers=[["a", "b", "c"], ["d", "e"]], n=[1, 2])
    outcome = run(table, answers="answers", rule="all_pairs")
    ids, orders = outcome.rows["_id"].to_pylist(), outcome.rows["_ord"].to_pylist()
    assert len(set(ids)) == len(ids) == 4
    assert orders == sorted(orders)
    expanded = [fate for fate in outcome.fates.to_pylist() if fate["fate"] == "expanded"]
    assert [fate["id"] for fate in expanded] == ids[1:3]
    assert {fate["into"] for fate in expanded} == {ids[0]}
    assert outcome.rows.num_rows == table.num_rows + len(expanded)
    assert outcome.rows["n"].to_pylist() == [1, 1, 1, 2]
    again = [run(table.slice(i, 1), answers="answers", rule="all_pairs") for i in (0, 1)]
    assert pa.concat_tables([part.rows for part in again]).equals(outcome.rows)


@pytest.mark.parametrize("answers", ["[1, 2]", "not json", '["a", ""]', '"a"'])
def test_unusable_lists(answers: str) -> None:
    outcome = run(batch(prompt=["q"], answers=[answers]), answers="answers")
    assert outcome.fates["reason"].to_pylist() == ["bad_answers"]


def test_bad_scores() -> None:
    names = {"answers": "answers", "scores": "scores"}
    for scores in ([1.0], [float("nan"), 1.0]):
        outcome = run(batch(prompt=["q"], answers=[["a", "b"]], scores=[scores]), **names)
        assert outcome.fates["reason"].to_pylist() == ["bad_answers"]


def test_parameters_that_make_no_sense() -> None:
    check = registered()["format.preference"].check
    assert [field for _, field, _ in check(PreferenceParams(chosen="c"))] == ["params.chosen"]
    assert [field for _, field, _ in check(PreferenceParams(scores="s"))] == ["params.scores"]
    assert [field for _, field, _ in check(PreferenceParams(rule="threshold"))] == ["params.min_gap"]
