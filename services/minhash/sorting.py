"""Sorting inside compiled code.

numba generates the machine code of `sort` and `argsort` under names that are unique within a process only; code that
was compiled by different processes and kept on disk can meet in a third one and be mistaken for each other (seen
with numba 0.68.1: an `argsort` ran in the place of a `sort`). Functions with names of their own cannot.

Source: C. A. R. Hoare, "Quicksort" (1962); R. W. Floyd, "Treesort 3" (1964).
"""

from typing import Any

import numpy as np

from datamill.services.minhash.compiled import compiled

_SHORT = 24


@compiled
def _insertion_sort(values: Any, low: Any, high: Any) -> None:
    for i in range(low + 1, high):
        value, j = values[i], i
        while j > low and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value


@compiled
def _split(values: Any, low: Any, high: Any) -> Any:
    """Hoare partition of `[low, high)` around the median of three: first place of the upper part."""
    a, b, c = values[low], values[(low + high) // 2], values[high - 1]
    pivot = max(min(a, b), min(max(a, b), c))
    i, j = low, high - 1
    while True:
        while values[i] < pivot:
            i += 1
        while values[j] > pivot:
            j -= 1
        if i >= j:
            return j + 1 if j + 1 < high else j
        values[i], values[j] = values[j], values[i]
        i += 1
        j -= 1


@compiled
def sort_values(values: Any, low: Any, high: Any) -> None:
    """Sort `values[low:high]` ascending in place; quick on mixed hashes, never deeper than 64 pending parts."""
    lows, highs, depth = np.empty(64, np.int64), np.empty(64, np.int64), 0
    while True:
        if high - low <= _SHORT:
            _insertion_sort(values, low, high)
            if depth == 0:
                return
            depth -= 1
            low, high = lows[depth], highs[depth]
            continue
        middle = _split(values, low, high)
        if middle - low > high - middle:  # the larger part waits, so the stack stays logarithmic
            lows[depth], highs[depth] = low, middle
            low = middle
        else:
            lows[depth], highs[depth] = middle, high
            high = middle
        depth += 1


@compiled
def _sift(first: Any, second: Any, low: Any, root: Any, size: Any) -> None:
    while True:
        child = 2 * root + 1
        if child >= size:
            return
        a, b = low + root, low + child
        if child + 1 < size and (first[b + 1] > first[b] or (first[b + 1] == first[b] and second[b + 1] > second[b])):
            child, b = child + 1, b + 1
        if first[a] > first[b] or (first[a] == first[b] and second[a] >= second[b]):
            return
        first[a], first[b] = first[b], first[a]
        second[a], second[b] = second[b], second[a]
        root = child


@compiled
def sort_pairs(first: Any, second: Any, low: Any, high: Any) -> None:
    """Sort `[low, high)` of two arrays together by `first`, then `second`, in place and without extra memory."""
    size = high - low
    for root in range(size // 2 - 1, -1, -1):
        _sift(first, second, low, root, size)
    for last in range(size - 1, 0, -1):
        end = low + last
        first[low], first[end] = first[end], first[low]
        second[low], second[end] = second[end], second[low]
        _sift(first, second, low, 0, last)
