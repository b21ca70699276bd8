"""Candidate pairs, exact Jaccard and connected components against plain Python."""

import itertools

import numpy as np
import pytest

from datamill.services.minhash.pairs import (
    ALL_PAIRS,
    NEIGHBOURS,
    candidate_pairs,
    connected_components,
    jaccards,
)


def u64(*values: int) -> np.ndarray:
    return np.array(values, np.uint64)


def pair_set(keys: np.ndarray, contents: np.ndarray, rows: np.ndarray) -> set[tuple[int, int, bool]]:
    left, right, same = candidate_pairs(keys, contents, rows)
    return set(zip(left.tolist(), right.tolist(), same.tolist(), strict=True))


def test_rows_of_one_key_pair_up_and_lone_keys_do_not() -> None:
    assert pair_set(u64(1, 2, 2, 2, 9), u64(1, 2, 3, 4, 5), u64(10, 30, 20, 40, 50)) == {
        (20, 30, False), (20, 40, False), (30, 40, False),
    }  # fmt: skip


def test_copies_hang_on_the_first_of_them_and_stand_once() -> None:
    found = pair_set(u64(7, 7, 7, 7), u64(5, 5, 5, 6), u64(3, 1, 2, 4))
    assert found == {(1, 2, True), (1, 3, True), (1, 4, False)}


@pytest.mark.parametrize("size", [0, 1])
def test_too_few_rows_for_a_pair(size: int) -> None:
    assert pair_set(*(np.arange(size, dtype=np.uint64),) * 3) == set()


@pytest.mark.parametrize("size", [2, ALL_PAIRS - 1, ALL_PAIRS])
def test_small_buckets_give_every_pair(size: int) -> None:
    rows = np.arange(size, dtype=np.uint64) * np.uint64(3)
    found = pair_set(np.zeros(size, np.uint64), rows, rows)
    assert found == {(int(a), int(b), False) for a, b in itertools.combinations(rows, 2)}


def test_large_buckets_stay_linear_and_connected() -> None:
    size = 1000
    rows = np.arange(size, dtype=np.uint64)
    left, right, _ = candidate_pairs(np.zeros(size, np.uint64), rows, rows)
    assert len(left) <= (1 + NEIGHBOURS) * size
    assert (connected_components(size, left.astype(np.int64), right.astype(np.int64)) == 0).all()
    degree = np.bincount(np.concatenate([left, right]).astype(np.int64), minlength=size)
    assert degree.min() >= NEIGHBOURS
    assert (degree == size - 1).sum() == 1


def test_neighbours_of_large_buckets_differ_from_band_to_band() -> None:
    rows = np.arange(200, dtype=np.uint64)
    one = pair_set(np.full(200, 1, np.uint64), rows, rows)
    two = pair_set(np.full(200, 2, np.uint64), rows, rows)
    assert len(one & two) < len(one) / 5


def test_many_copies_cost_their_number() -> None:
    size = 5000
    left, _, same = candidate_pairs(
        np.zeros(size, np.uint64), np.zeros(size, np.uint64), np.arange(size, dtype=np.uint64)
    )
    assert len(left) == size - 1
    assert same.all()


def test_pairs_do_not_depend_on_the_order_inside_a_key() -> None:
    generator = np.random.default_rng(0)
    keys = np.sort(generator.integers(0, 40, 600)).astype(np.uint64)
    contents, rows = generator.integers(0, 300, 600).astype(np.uint64), np.arange(600, dtype=np.uint64)
    expected = pair_set(keys, contents, rows)
    for _ in range(5):
        order = np.lexsort((generator.random(600), keys))
        assert pair_set(keys[order], contents[order], rows[order]) == expected


def test_arguments_are_left_alone() -> None:
    keys, contents, rows = u64(1, 1, 1), u64(9, 8, 7), u64(3, 2, 1)
    candidate_pairs(keys, contents, rows)
    assert contents.tolist() == [9, 8, 7]
    assert rows.tolist() == [3, 2, 1]


def test_jaccard_equals_python_sets() -> None:
    generator = np.random.default_rng(1)
    sets = [sorted(set(generator.integers(0, 30, generator.integers(0, 20)).tolist())) for _ in range(12)]
    flat = np.array([value for one in sets for value in one], np.uint64)
    limits = np.cumsum([0, *map(len, sets)])
    left, right = (np.array(side) for side in zip(*itertools.product(range(12), repeat=2), strict=True))
    found = jaccards(flat, limits, left, right)
    for a, b, value in zip(left, right, found, strict=True):
        union = set(sets[a]) | set(sets[b])
        assert value == (len(set(sets[a]) & set(sets[b])) / len(union) if union else 0.0)


def test_components_carry_the_smallest_node() -> None:
    left, right = np.array([5, 1, 7, 2]), np.array([4, 5, 8, 2])
    assert connected_components(9, left, right).tolist() == [0, 1, 2, 3, 1, 1, 6, 7, 7]


def test_components_equal_a_search() -> None:
    generator = np.random.default_rng(2)
    left, right = generator.integers(0, 200, 150), generator.integers(0, 200, 150)
    labels = connected_components(200, left, right)
    expected = list(range(200))
    for _ in range(200):
        for a, b in zip(left, right, strict=True):
            expected[a] = expected[b] = min(expected[a], expected[b])
    assert labels.tolist() == expected
