"""filter.score and filter.topk."""

import math
from typing import Any

import pytest
from pydantic import ValidationError
from support.tables import apply, decide, ids, kept, reasons, table

from datamill.errors import DatamillError
from datamill.operators.filter.score import ScoreParams
from datamill.operators.filter.topk import TopKParams

ROWS = table(s=[0.1, 0.9, None, 0.5, math.nan, 0.9], g=["a", "a", "b", "b", "b", None])


def order(decisions: Any, rows: Any = ROWS) -> list[int]:
    stay = kept(decisions)
    return [index for index, name in enumerate(rows["_id"].to_pylist()) if name in stay]


def test_bounds_null_and_nan() -> None:
    outcome = apply("filter.score", ROWS, column="s", min=0.5, max=0.8)
    assert ids(outcome.rows) == [3]
    assert reasons(outcome) == {0: "below_min", 1: "above_max", 2: "null_s", 4: "null_s", 5: "above_max"}


def test_integers_are_numbers_too() -> None:
    assert ids(apply("filter.score", table(s=[1, 2, 3]), column="s", min=2).rows) == [1, 2]


@pytest.mark.parametrize(
    "params", [{"column": "s"}, {"column": "s", "min": 2, "max": 1}, {"column": "s", "min": "nan"}]
)
def test_bad_bounds(params: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ScoreParams.model_validate(params)


@pytest.mark.parametrize("partitions", [1, 2, 6, 50])
def test_topk_ties_go_to_the_earlier_row(partitions: int) -> None:
    assert order(decide("filter.topk", ROWS, partitions, column="s", n=1)) == [1]
    assert order(decide("filter.topk", ROWS, partitions, column="s", n=2)) == [1, 5]
    assert order(decide("filter.topk", ROWS, partitions, column="s", n=1, order="lowest")) == [0]


def test_topk_by_group_and_fraction() -> None:
    assert order(decide("filter.topk", ROWS, column="s", n=1, by="g")) == [1, 3, 5]
    assert order(decide("filter.topk", ROWS, column="s", fraction=0.5)) == [1, 5]
    assert order(decide("filter.topk", ROWS, column="s", n=0)) == []
    assert order(decide("filter.topk", ROWS, column="s", n=99)) == [0, 1, 3, 5]


def test_topk_null_takes_no_place_and_follows_its_policy() -> None:
    assert order(decide("filter.topk", ROWS, column="s", n=1, on_null="keep")) == [1, 2, 4]
    with pytest.raises(DatamillError, match="DM-OPA-001"):
        decide("filter.topk", ROWS, column="s", n=1, on_null="error")


def test_topk_fates_show_the_cut() -> None:
    made = {row["_id"]: row for row in decide("filter.topk", ROWS, column="s", n=2).to_pylist()}
    lost = made[ROWS["_id"][3].as_py()]
    assert (lost["fate"], lost["reason"], lost["value"], lost["threshold"]) == (
        "not_selected",
        "outside_quota",
        0.5,
        0.9,
    )
    assert made[ROWS["_id"][2].as_py()]["reason"] == "null_s"


def test_dropping_the_worst_fifth_equals_a_sort() -> None:
    scores = [((i * 37) % 101) / 10 for i in range(100)]
    rows = table(s=scores)
    stay = order(decide("filter.topk", rows, 7, column="s", fraction=0.8), rows)
    best = sorted(range(100), key=lambda i: (-scores[i], i))[:80]
    assert stay == sorted(best)


@pytest.mark.parametrize(
    "params", [{"column": "s"}, {"column": "s", "n": 1, "fraction": 0.1}, {"column": "s", "n": -1}]
)
def test_topk_wants_one_size(params: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TopKParams.model_validate(params)
