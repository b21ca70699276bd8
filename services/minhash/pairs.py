"""From band keys to candidate pairs, from pairs to exact Jaccard, from edges to connected components.

Rows are named by 64-bit hashes of their ids, so that a pair is two integers wherever it travels.

Cost: a bucket of `m` rows with distinct texts yields `m (m - 1) / 2` pairs up to `ALL_PAIRS` rows and
`(1 + NEIGHBOURS) m` beyond; a comparison walks two sorted sets once; components take near-linear time.

Source: union-find with path halving, R. Tarjan and J. van Leeuwen (1984).
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from datamill.services.minhash.compiled import compiled
from datamill.services.minhash.sorting import sort_pairs

ALL_PAIRS: Final[int] = 24
"""Rows of distinct text up to which every pair of a bucket is a candidate."""

NEIGHBOURS: Final[int] = 8
"""In larger buckets each row meets the leader and this many successors in an order of the bucket's own."""

_ALL = ALL_PAIRS
_NEAR = NEIGHBOURS
_MULTIPLIER = np.uint64(0xD6E8FEB86659FD93)


@compiled
def _shuffled(row: Any, key: Any) -> Any:
    value = (row ^ key) * _MULTIPLIER
    value = (value ^ (value >> np.uint64(32))) * _MULTIPLIER
    return value ^ (value >> np.uint64(32))


@compiled
def _bucket(
    keys: Any, contents: Any, rows: Any, low: Any, high: Any, left: Any, right: Any, same: Any, used: Any
) -> Any:
    """Pairs of the bucket `[low, high)`, sorted by content and row; counts, and stores where there is room."""
    store = left.shape[0] > 0
    heads = np.empty(high - low, np.uint64)
    num_heads = 0
    for i in range(low, high):
        if i == low or contents[i] != contents[i - 1]:
            heads[num_heads] = rows[i]
            num_heads += 1
        else:
            if store:
                left[used], right[used], same[used] = heads[num_heads - 1], rows[i], True
            used += 1
    reach = num_heads
    if num_heads > _ALL:
        places = np.empty(num_heads, np.uint64)
        for i in range(num_heads):
            places[i] = _shuffled(heads[i], keys[low])
        sort_pairs(places, heads, 0, num_heads)
        reach = _NEAR
    for i in range(num_heads):
        for j in range(i + 1, num_heads):
            if i > 0 and j - i > reach:
                break
            if store:
                left[used], right[used], same[used] = heads[i], heads[j], False
            used += 1
    return used


@compiled
def _all_buckets(keys: Any, contents: Any, rows: Any, left: Any, right: Any, same: Any) -> Any:
    used, low = 0, 0
    for i in range(1, keys.shape[0] + 1):
        if i < keys.shape[0] and keys[i] == keys[low]:
            continue
        if i - low > 1:
            if left.shape[0] == 0:  # the counting pass comes first and sorts for both
                sort_pairs(contents, rows, low, i)
            used = _bucket(keys, contents, rows, low, i, left, right, same, used)
        low = i
    return used


def candidate_pairs(
    keys: NDArray[np.uint64], contents: NDArray[np.uint64], rows: NDArray[np.uint64]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.bool_]]:
    """Pairs of rows that share a band key.

    Rows of equal content are tied to the first of them and stand in the bucket once, so that many copies of one
    text cost no more than their number.

    Args:
        keys: `(m,) uint64` band keys, equal keys adjacent.
        contents: `(m,) uint64` content hashes.
        rows: `(m,) uint64` row hashes.

    Returns:
        The smaller and the larger row of every pair, and whether their contents are equal; with repetition when a
        pair shares several bands, in an order that depends on nothing but the input.
    """
    if len(keys) < 2:
        return np.empty(0, np.uint64), np.empty(0, np.uint64), np.empty(0, np.bool_)
    equal = keys[1:] == keys[:-1]
    shared = np.zeros(len(keys), np.bool_)
    shared[1:] |= equal
    shared[:-1] |= equal
    keys, contents, rows = keys[shared], contents[shared], rows[shared]  # copies, sorted in place below
    none, flag = np.empty(0, np.uint64), np.empty(0, np.bool_)
    total = _all_buckets(keys, contents, rows, none, none, flag)
    left, right, same = np.empty(total, np.uint64), np.empty(total, np.uint64), np.empty(total, np.bool_)
    if total:
        _all_buckets(keys, contents, rows, left, right, same)
    return np.minimum(left, right), np.maximum(left, right), same


@compiled
def _overlap(flat: Any, low_a: Any, high_a: Any, low_b: Any, high_b: Any) -> Any:
    shared = 0
    while low_a < high_a and low_b < high_b:
        if flat[low_a] == flat[low_b]:
            shared += 1
            low_a += 1
            low_b += 1
        elif flat[low_a] < flat[low_b]:
            low_a += 1
        else:
            low_b += 1
    return shared


@compiled
def _jaccards(flat: Any, limits: Any, left: Any, right: Any, out: Any) -> None:
    for e in range(left.shape[0]):
        a, b = left[e], right[e]
        shared = _overlap(flat, limits[a], limits[a + 1], limits[b], limits[b + 1])
        total = limits[a + 1] - limits[a] + limits[b + 1] - limits[b] - shared
        out[e] = shared / total if total > 0 else 0.0


def jaccards(
    flat: NDArray[np.uint64], limits: NDArray[np.int64], left: NDArray[np.int64], right: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Exact Jaccard similarity of pairs of sets, `(e,) float64` in 0..1; 0 for two empty sets.

    Args:
        flat: sorted distinct elements of all sets, one set after another.
        limits: `(n + 1,) int64` limits of the sets in `flat`.
        left: `(e,) int64` set numbers.
        right: `(e,) int64` set numbers.
    """
    out = np.empty(len(left), np.float64)
    _jaccards(flat, limits, left, right, out)
    return out


@compiled
def _find(parent: Any, node: Any) -> Any:
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@compiled
def _unite(parent: Any, left: Any, right: Any) -> None:
    for e in range(left.shape[0]):
        a, b = _find(parent, left[e]), _find(parent, right[e])
        if a < b:
            parent[b] = a
        else:
            parent[a] = b
    for node in range(parent.shape[0]):
        parent[node] = _find(parent, node)


def connected_components(num_nodes: int, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
    """Label every node `0..num_nodes-1` with the smallest node it is connected to, `(num_nodes,) int64`.

    The one step that runs on the driver; a distributed version may take its place.
    """
    parent = np.arange(num_nodes, dtype=np.int64)
    _unite(parent, left.astype(np.int64), right.astype(np.int64))
    return parent
