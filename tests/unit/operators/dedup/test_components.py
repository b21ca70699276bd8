"""Components by alternating stars against union-find and closed forms, in memory, however the edges are cut."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datamill.errors import DatamillError
from datamill.operators.dedup import components
from datamill.operators.dedup.components import connected, downwards, large_star, small_star
from datamill.services.engines.tables import TableDataset
from datamill.services.minhash.pairs import connected_components


def edges(pairs: list[tuple[int, int]]) -> pa.Table:
    return pa.table([pa.array([p[i] for p in pairs], pa.uint64()) for i in (0, 1)], names=["left", "right"])


def found(pairs: list[tuple[int, int]], partitions: int = 1) -> dict[int, int]:
    rows = connected(TableDataset.of(edges(pairs), partitions)).collect().to_pylist()
    assert len({row["node"] for row in rows}) == len(rows)
    return {row["node"]: row["component"] for row in rows}


def by_union_find(pairs: list[tuple[int, int]]) -> dict[int, int]:
    pairs = [pair for pair in pairs if pair[0] != pair[1]]
    nodes = sorted({node for pair in pairs for node in pair})
    place = {node: i for i, node in enumerate(nodes)}
    left, right = (np.array([place[pair[i]] for pair in pairs], np.int64) for i in (0, 1))
    labels = connected_components(len(nodes), left, right)
    low: dict[int, int] = {}
    for node, label in zip(nodes, labels.tolist(), strict=True):
        low.setdefault(label, node)
    return {node: low[label] for node, label in zip(nodes, labels.tolist(), strict=True)}


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=40), st.sampled_from([1, 3, 9]))
@settings(max_examples=80, deadline=None)
def test_equals_union_find(pairs: list[tuple[int, int]], partitions: int) -> None:
    assert found(pairs, partitions) == by_union_find(pairs)


@pytest.mark.parametrize("length", [1, 2, 63, 1000])
def test_a_path_is_one_component_in_few_rounds(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(length)
    names = rng.permutation(10 * length + 10)[: length + 1].tolist()
    monkeypatch.setattr(components, "MAX_ROUNDS", 4 + 2 * int(np.log2(length + 1)))
    assert set(found(list(pairwise(names))).values()) == {min(names)}


def test_largest_values_are_not_signed() -> None:
    top = 2**64 - 1
    assert found([(top, top - 1), (5, top), (2**63, 7)]) == {5: 5, top: 5, top - 1: 5, 7: 7, 2**63: 7}


def test_no_edges_and_loops() -> None:
    assert found([]) == {}
    assert found([(3, 3)]) == {}
    assert found([(3, 3), (4, 3)]) == {3: 3, 4: 3}


def test_the_two_stars_on_a_small_graph() -> None:
    both = pa.table({"node": pa.array([1, 2, 2, 3], pa.uint64()), "other": pa.array([2, 1, 3, 2], pa.uint64())})
    assert sorted(tuple(r.values()) for r in large_star(both).to_pylist()) == [(2, 1), (3, 1)]
    low = pa.table({"node": pa.array([5, 5], pa.uint64()), "other": pa.array([2, 4], pa.uint64())})
    assert sorted(tuple(r.values()) for r in small_star(low).to_pylist()) == [(4, 2), (5, 2)]
    assert downwards(low).to_pylist() == low.to_pylist()


def test_giving_up_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(components, "MAX_ROUNDS", 1)
    with pytest.raises(DatamillError, match="did not settle"):
        found([(1, 2), (2, 3)])
