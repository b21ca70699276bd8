"""Own sorting against numpy, also when machine code of several processes meets."""

import subprocess
import sys

import numpy as np
import pytest

from datamill.services.minhash.sorting import sort_pairs, sort_values


@pytest.mark.parametrize("size", [0, 1, 2, 3, 23, 24, 25, 26, 64, 500, 4096])
@pytest.mark.parametrize("spread", [1, 2, 7, 1 << 60])
def test_values_and_pairs_equal_numpy(size: int, spread: int) -> None:
    generator = np.random.default_rng(size + spread % 97)
    mixed = generator.integers(0, spread, size).astype(np.uint64)
    for values in (mixed, np.sort(mixed), np.sort(mixed)[::-1].copy()):
        mine = values.copy()
        sort_values(mine, 0, size)
        assert np.array_equal(mine, np.sort(values))
        first = generator.integers(0, 3, size).astype(np.uint64)
        a, b = first.copy(), values.copy()
        sort_pairs(a, b, 0, size)
        order = np.lexsort((values, first))
        assert np.array_equal(a, first[order])
        assert np.array_equal(b, values[order])


def test_only_the_given_range_is_touched() -> None:
    values = np.arange(100, dtype=np.uint64)[::-1].copy()
    sort_values(values, 30, 90)
    assert np.array_equal(values[:30], np.arange(99, 69, -1))
    assert np.array_equal(values[30:90], np.arange(10, 70))
    assert np.array_equal(values[90:], np.arange(9, -1, -1))


def test_organ_pipes_do_not_exhaust_the_stack() -> None:
    pipe = np.concatenate([np.arange(5000), np.arange(5000)[::-1]]).astype(np.uint64)
    expected = np.sort(pipe)
    sort_values(pipe, 0, len(pipe))
    assert np.array_equal(pipe, expected)


PROGRAM = """
import numpy as np, pyarrow as pa
from datamill.services.minhash import pairs, sketch
{first}
{second}
"""
SETS = """
flat, limits = sketch.shingle_set_arrays(pa.array([" ".join(map(str, range(400)))] * 2), "words", 5)
assert all((np.diff(flat[a:b].astype(object)) > 0).all() for a, b in zip(limits[:-1], limits[1:])), "unsorted set"
"""
PAIRS = """
k = np.zeros(60, np.uint64)
left, right, same = pairs.candidate_pairs(k, np.arange(60, dtype=np.uint64) % 40, np.arange(60, dtype=np.uint64))
assert same.sum() == 20 and len(left) > 300, (same.sum(), len(left))
"""


@pytest.mark.parametrize("order", [(SETS, PAIRS), (PAIRS, SETS)])
def test_cached_code_of_two_modules_is_not_confused(order: tuple[str, str]) -> None:
    program = PROGRAM.format(first=order[0], second=order[1])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
