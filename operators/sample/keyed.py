"""Keyed order of rows: randomness that depends on the seed and the row's id alone.

A row's key is xxh3-64 of its id under the seed. Sorting by key is a random permutation, and the n rows with the
smallest keys are a simple random sample without replacement; neither partitions nor engines nor row order matter.
Two rows have equal keys with probability n^2 / 2^65 (one in 400,000 for ten million rows); they then share one fate.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

Keys = npt.NDArray[np.uint64]
_MASK = (1 << 64) - 1


def keyed_hashes(ids: pa.ChunkedArray | pa.Array | Iterable[str], seed: int, purpose: str) -> Keys:
    """Keys of the rows, `(num_rows,)` uint64.

    Args:
        ids: `_id` of every row, or another stable name of it.
        seed: any integer; equal seeds give equal keys.
        purpose: keeps apart the draws of different operators under one seed.
    """
    derived = xxhash.xxh3_64_intdigest(f"{purpose}\0{seed}".encode())
    values = ids.to_pylist() if isinstance(ids, pa.ChunkedArray | pa.Array) else list(ids)
    digest = xxhash.xxh3_64_intdigest
    return np.fromiter((digest(value.encode(), derived) for value in values), dtype=np.uint64, count=len(values))


def smallest(keys: Keys, count: int) -> int:
    """The bound below or at which exactly `count` keys lie (more if keys are equal); -1 for none, int of uint64."""
    if count <= 0 or not len(keys):
        return -1
    if count >= len(keys):
        return _MASK
    return int(np.partition(keys, count - 1)[count - 1])


def at_or_below(keys: Keys, bound: int) -> npt.NDArray[np.bool_]:
    """Which keys a bound from `smallest` selects, `(num_rows,)` bool."""
    return np.zeros(len(keys), dtype=np.bool_) if bound < 0 else keys <= np.uint64(bound)
