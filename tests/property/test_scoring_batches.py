"""Scoring batches are a partition of the rows for any lengths, budget and number of ranks."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch")

from datamill.errors import DatamillError
from datamill.training.signals.batches import plan_batches, share_of_rank

pytestmark = pytest.mark.train

LENGTHS = st.lists(st.integers(0, 300), max_size=60)


def batches_of(lengths: Any, budget: Any, first: Any = 0, order: Any = None) -> Any:
    ids = np.arange(first, first + len(lengths))
    sizes = np.asarray(lengths, dtype=np.int64)
    if order is not None:
        ids, sizes = ids[order], sizes[order]
    return plan_batches(ids, sizes, budget)


@settings(deadline=None)
@given(LENGTHS, st.integers(1, 500))
def test_every_row_is_in_one_batch_within_the_budget(lengths: Any, budget: Any) -> None:
    batches = batches_of(lengths, budget, first=1000)
    assert sorted(row for batch in batches for row in batch.ids) == list(range(1000, 1000 + len(lengths)))
    for batch in batches:
        widest = max(lengths[row - 1000] for row in batch.ids)
        assert batch.real
        assert len(batch.ids) == 1 or len(batch.ids) * widest <= budget


@settings(deadline=None)
@given(LENGTHS, st.integers(1, 500), st.integers(1, 9))
def test_sharding_is_a_partition_with_equal_counts(lengths: Any, budget: Any, world_size: Any) -> None:
    batches = batches_of(lengths, budget)
    shares = [share_of_rank(batches, rank, world_size) for rank in range(world_size)]
    assert len({len(share) for share in shares}) == 1
    real = [batch for share in shares for batch in share if batch.real]
    assert sorted(batch.ids for batch in real) == sorted(batch.ids for batch in batches)
    fillers = [batch for share in shares for batch in share if not batch.real]
    assert len(fillers) < world_size
    assert all(len(batch.ids) == 1 for batch in fillers)


@settings(deadline=None)
@given(LENGTHS, st.integers(1, 500), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(lengths: Any, budget: Any, shuffler: Any) -> None:
    order = list(range(len(lengths)))
    shuffler.shuffle(order)
    assert batches_of(lengths, budget, order=order) == batches_of(lengths, budget)


@settings(deadline=None)
@given(LENGTHS.filter(bool), st.integers(1, 500))
def test_padding_stays_small_because_neighbours_are_of_like_length(lengths: Any, budget: Any) -> None:
    widths = [[lengths[row] for row in batch.ids] for batch in batches_of(lengths, budget)]
    flat = [length for batch in widths for length in batch]
    assert flat == sorted(lengths, reverse=True)


@pytest.mark.parametrize(("lengths", "budget"), [([3, 4], 0), ([3], -1)])
def test_senseless_budgets_are_refused(lengths: Any, budget: Any) -> None:
    with pytest.raises(DatamillError, match="DM-SIG-103"):
        batches_of(lengths, budget)
