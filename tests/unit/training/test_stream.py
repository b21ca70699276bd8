import itertools
from typing import Any

import pytest

from datamill.errors import DatamillError
from datamill.training.stream import (
    BatchRule,
    SampleStream,
    length_grouped_order,
    seeded_order,
    sequential_order,
)

pytestmark = pytest.mark.train


def flat(micros: Any) -> Any:
    return [row for micro in micros for batch in micro for row in batch]


def stock(rows: Any, batch: Any, world: Any, epoch: Any, seed: Any) -> Any:
    """What Accelerate's loader gives each rank in an epoch."""
    from accelerate.data_loader import BatchSamplerShard, SeedableRandomSampler
    from torch.utils.data import BatchSampler

    sampler = SeedableRandomSampler(range(rows), data_seed=seed)
    sampler.set_epoch(epoch)
    if world == 1:
        return [[list(batch)] for batch in BatchSampler(sampler, batch, False)]
    shards = []
    for rank in range(world):
        sampler.set_epoch(epoch)
        shards.append(list(BatchSamplerShard(BatchSampler(sampler, batch, False), world, rank)))
    return [[list(batch) for batch in micro] for micro in zip(*shards, strict=True)]


@pytest.mark.parametrize(("rows", "batch", "world"), [(41, 2, 1), (41, 2, 2), (40, 4, 2), (3, 4, 2), (7, 1, 3)])
def test_whole_pool_is_the_stock_loader(rows: Any, batch: Any, world: Any) -> None:
    stream = SampleStream(rows, seeded_order(9), BatchRule(batch, world))
    for epoch in range(3):
        expected = stock(rows, batch, world, epoch, 9)
        assert stream.take(len(expected)) == expected


def test_taking_in_pieces_loses_nothing() -> None:
    whole = SampleStream(11, seeded_order(1), BatchRule(2)).take(12)
    stream = SampleStream(11, seeded_order(1), BatchRule(2))
    assert list(itertools.chain(*(stream.take(n) for n in (1, 0, 5, 2, 4)))) == whole


def test_same_set_goes_on_and_another_begins_anew() -> None:
    stream = SampleStream(8, seeded_order(0), BatchRule(2))
    first = flat(stream.take(2))
    stream.retarget(range(8))
    assert sorted(first + flat(stream.take(2))) == list(range(8))
    stream.take(1)
    stream.retarget([1, 3, 5, 7])
    assert sorted(flat(stream.take(2))) == [1, 3, 5, 7]
    assert stream.passes == 3


def test_small_set_is_served_in_whole_passes() -> None:
    stream = SampleStream(9, seeded_order(0), BatchRule(2))
    stream.retarget([2, 4, 6])
    served = stream.take(4)
    assert [len(micro[0]) for micro in served] == [2, 1, 2, 1]
    assert sorted(flat(served)) == [2, 2, 4, 4, 6, 6]


def test_state_restores_the_middle_of_a_pass() -> None:
    stream = SampleStream(9, seeded_order(0), BatchRule(2))
    stream.retarget([0, 2, 3, 5, 8])
    stream.take(2)
    state = stream.state_dict()
    expected = stream.take(5)
    other = SampleStream(9, seeded_order(0), BatchRule(2))
    other.load_state_dict(state)
    assert other.take(5) == expected


def test_fresh_state_is_a_fresh_stream() -> None:
    other = SampleStream(5, seeded_order(0), BatchRule(2))
    other.load_state_dict(SampleStream(5, seeded_order(0), BatchRule(2)).state_dict())
    assert other.take(3) == SampleStream(5, seeded_order(0), BatchRule(2)).take(3)


@pytest.mark.parametrize("rows", [[], [0, 0], [9], [-1]])
def test_sets_that_do_not_fit_are_refused(rows: Any) -> None:
    with pytest.raises(DatamillError, match="DM-TRAIN-020"):
        SampleStream(9, sequential_order, BatchRule(2)).retarget(rows)


def test_drop_last_that_leaves_nothing_is_refused() -> None:
    with pytest.raises(DatamillError, match="DM-TRAIN-021"):
        SampleStream(3, sequential_order, BatchRule(4, drop_last=True)).take(1)


def test_orders() -> None:
    assert sequential_order([3, 5], 7) == [3, 5]
    order = seeded_order(3)
    assert order([1, 2, 3, 4], 0) == order([1, 2, 3, 4], 0)
    assert {tuple(order([1, 2, 3, 4], n)) for n in range(6)} != {tuple(order([1, 2, 3, 4], 0))}
    grouped = length_grouped_order([1, 9, 2, 8, 3, 7, 4, 6], 2, seed=0)
    assert sorted(grouped(range(8), 0)) == list(range(8))
    assert grouped(range(8), 0)[0] == 1  # the longest row comes first, as in stock


def test_seeded_orders_leave_the_global_generator_alone() -> None:
    import torch

    before = torch.get_rng_state()
    seeded_order(3)([1, 2, 3], 0)
    length_grouped_order([1, 2, 3], 2, seed=0)([0, 1, 2], 0)
    assert bool((torch.get_rng_state() == before).all())
    length_grouped_order([1, 2, 3], 2, seed=None)([0, 1, 2], 0)
    assert not bool((torch.get_rng_state() == before).all())
