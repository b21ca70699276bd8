"""Largest remainders, limits and shares."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datamill.operators.sample.allocation import allocate, largest_remainder
from datamill.operators.sample.shares import normalized_shares


@pytest.mark.parametrize(
    ("weights", "total", "shares"),
    [
        ([47, 16, 15.8, 12, 6.1, 3.1], 10, [5, 2, 1, 1, 1, 0]),
        ([1, 1, 1], 2, [1, 1, 0]),
        ([0.9, 0.05, 0.05], 100, [90, 5, 5]),
        ([0.1] * 10, 10, [1] * 10),
        ([0, 0], 5, [0, 0]),
        ([], 5, []),
    ],
)
def test_largest_remainder(weights: list[float], total: int, shares: list[int]) -> None:
    assert largest_remainder(weights, total) == shares


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=8), st.integers(0, 10_000))
def test_shares_sum_to_the_total_and_respect_quota(weights: list[float], total: int) -> None:
    shares = largest_remainder(weights, total)
    if sum(weights) > 0:
        assert sum(shares) == total
        for share, weight in zip(shares, weights, strict=True):
            assert abs(share - total * weight / sum(weights)) < 1 + 1e-6


@given(st.lists(st.tuples(st.floats(0, 10), st.integers(0, 50)), min_size=1, max_size=6), st.integers(0, 300))
def test_limits_hold_and_nothing_is_wasted(entries: list[tuple[float, int]], total: int) -> None:
    weights, limits = [w for w, _ in entries], [n for _, n in entries]
    shares = allocate(weights, total, limits)
    assert all(0 <= share <= limit for share, limit in zip(shares, limits, strict=True))
    assert sum(shares) == min(total, sum(limit for weight, limit in entries if weight > 0))


def test_surplus_goes_to_the_others_in_proportion() -> None:
    assert allocate([1, 1, 1], 60, [10, 100, 100]) == [10, 25, 25]


@pytest.mark.parametrize(
    ("shares", "normal"),
    [
        ([0.3333, 0.3333, 0.3333], [1 / 3] * 3),
        ([90, 5, 5], [0.9, 0.05, 0.05]),
        ([0.7, 0.3], [0.7, 0.3]),
        ([50.1, 50.1], [0.5, 0.5]),
    ],
)
def test_shares_close_to_one_are_rescaled(shares: list[float], normal: list[float]) -> None:
    assert normalized_shares(shares) == pytest.approx(normal, abs=1e-12)
    assert sum(normalized_shares(shares)) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("shares", [[0.2, 0.2, 0.2], [1.2, -0.4, 0.2], [float("nan"), 0.5, 0.5], [0.9, 0.2], [90, 20]])
def test_other_sums_are_refused(shares: list[float]) -> None:
    with pytest.raises(ValueError, match="share"):
        normalized_shares(shares)
