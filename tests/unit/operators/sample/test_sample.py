"""sample.random and sample.stratified: sizes, independence of partitions and order, uniformity."""

from collections import Counter
from typing import Any

import pytest
from pydantic import ValidationError
from support.tables import decide, kept, table

from datamill.operators.sample.random import RandomParams
from datamill.operators.sample.stratified import StratifiedParams, group_sizes

ROWS = table(g=["a"] * 60 + ["b"] * 30 + [None] * 10, v=list(range(100)))
GROUP = dict(zip(ROWS["_id"].to_pylist(), ROWS["g"].to_pylist(), strict=True))


def drawn(operator_id: str, partitions: int = 1, seed: int = 7, **params: Any) -> set[str]:
    return kept(decide(operator_id, ROWS, partitions, seed, **params))


@pytest.mark.parametrize("n", [0, 1, 37, 100])
def test_exactly_n_rows(n: int) -> None:
    assert len(drawn("sample.random", n=n)) == n


@pytest.mark.parametrize(("fraction", "n"), [(0.0, 0), (0.25, 25), (0.005, 1), (0.004, 0), (1.0, 100)])
def test_fractions_round_half_up(fraction: float, n: int) -> None:
    assert len(drawn("sample.random", fraction=fraction)) == n


@pytest.mark.parametrize("partitions", [2, 7, 50, 300])
def test_partitions_do_not_matter(partitions: int) -> None:
    assert drawn("sample.random", partitions, n=33) == drawn("sample.random", n=33)
    assert drawn("sample.stratified", partitions, by="g", n=33) == drawn("sample.stratified", by="g", n=33)


def test_order_of_rows_does_not_matter() -> None:
    reversed_rows = ROWS.take(list(range(99, -1, -1)))
    for operator_id, params in (("sample.random", {"n": 10}), ("sample.stratified", {"by": "g", "n": 10})):
        one, other = decide(operator_id, ROWS, **params), decide(operator_id, reversed_rows, 3, **params)
        assert kept(one) == kept(other)


def test_seeds_matter_and_a_given_seed_beats_the_steps() -> None:
    assert drawn("sample.random", n=50) != drawn("sample.random", n=50, seed=8)
    fixed = RandomParams(n=50, seed=1234).model_dump()
    assert kept(decide("sample.random", ROWS, 1, 7, **fixed)) == kept(decide("sample.random", ROWS, 1, 8, **fixed))


def test_a_larger_sample_contains_the_smaller() -> None:
    assert drawn("sample.random", n=10) < drawn("sample.random", n=40)


def test_too_few_rows_gives_all_of_them_with_one_remark() -> None:
    for operator_id, params in (("sample.random", {"n": 500}), ("sample.stratified", {"by": "g", "n": 500})):
        made = decide(operator_id, ROWS, 3, **params)
        assert len(kept(made)) == 100
        notes = [row for row in made.to_pylist() if row["fate"] is not None]
        assert [(row["fate"], row["reason"], row["value"], row["threshold"]) for row in notes] == [
            ("noted", "fewer_than_asked", 100.0, 500.0)
        ]


def test_rows_left_over_are_not_selected() -> None:
    made = [row for row in decide("sample.random", ROWS, n=99).to_pylist() if row["fate"] is not None]
    assert [(row["fate"], row["reason"]) for row in made] == [("not_selected", "not_sampled")]


def test_every_row_is_drawn_about_equally_often() -> None:
    counts = Counter(name for seed in range(300) for name in drawn("sample.random", n=20, seed=seed))
    assert len(counts) == 100
    chi2 = sum((counts[name] - 60) ** 2 / 60 for name in counts)
    assert chi2 < 160  # 99 degrees of freedom, variance factor 0.8: 0.9999 quantile is about 130


def test_no_rows_at_all() -> None:
    empty = ROWS.slice(0, 0)
    assert decide("sample.random", empty, n=5).num_rows == 0
    assert decide("sample.stratified", empty, by="g", n=5).num_rows == 0


@pytest.mark.parametrize(
    ("params", "sizes"),
    [
        ({"n": 10}, {"a": 6, "b": 3, None: 1}),
        ({"n": 7}, {"a": 4, "b": 2, None: 1}),
        ({"fraction": 0.5}, {"a": 30, "b": 15, None: 5}),
        ({"max_per_group": 20}, {"a": 20, "b": 20, None: 10}),
        ({"n": 30, "allocation": "equal"}, {"a": 10, "b": 10, None: 10}),
        ({"n": 60, "allocation": "equal"}, {"a": 25, "b": 25, None: 10}),
        ({"n": 100}, {"a": 60, "b": 30, None: 10}),
    ],
)
def test_sizes_of_groups(params: dict[str, Any], sizes: dict[str | None, int]) -> None:
    assert Counter(GROUP[name] for name in drawn("sample.stratified", by="g", **params)) == Counter(sizes)


def test_several_columns_make_the_groups() -> None:
    rows = table(a=["x", "x", "y", "y"], b=[1, 2, 1, 1])
    assert len(kept(decide("sample.stratified", rows, by=["a", "b"], max_per_group=1))) == 3


def test_the_text_null_is_not_null() -> None:
    rows = table(g=["null", None, "null", None])
    assert len(kept(decide("sample.stratified", rows, by="g", max_per_group=1))) == 2


def test_group_sizes_settle_ties_by_label() -> None:
    params = StratifiedParams(by=("g",), n=2)
    assert group_sizes(params, {"c": 5, "a": 5, "b": 5}) == {"a": 1, "b": 1, "c": 0}


@pytest.mark.parametrize("params", [{}, {"n": 1, "fraction": 0.5}, {"n": -1}, {"fraction": 1.1}])
def test_bad_sizes(params: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        RandomParams.model_validate(params)
    with pytest.raises(ValidationError):
        StratifiedParams.model_validate({"by": "g", **params})
