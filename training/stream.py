"""The order in which rows of a set are served: passes, each a permutation, cut into micro-batches as stock does it.

A pass over the whole pool is what the stock loop's loader would yield for that epoch, so a run that never leaves the
whole pool is stock training row for row. A pass over a subset is the same permutation rule over the subset in
ascending order. When the set changes a new pass begins; while it stays the pass goes on, across plans. Cutting and
dealing to ranks is done by Accelerate's `BatchSamplerShard`, the class the stock loader uses.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from datamill.errors import DatamillError

MicroBatch = list[list[int]]
"""Row positions for every rank."""

Order = Callable[[Sequence[int], int], list[int]]
"""From a set of positions (ascending) and the number of the pass to the order of that pass."""


@dataclass(frozen=True, slots=True)
class BatchRule:
    """How the stock loader cuts a pass.

    Attributes:
        batch_size: rows of a micro-batch of one rank.
        world_size: ranks.
        drop_last: leave out a last micro-batch that is not full.
        split_batches: Accelerate's option of that name.
        even_batches: fill the last micro-batches from the start of the pass so that ranks have equally many.
    """

    batch_size: int
    world_size: int = 1
    drop_last: bool = False
    split_batches: bool = False
    even_batches: bool = True

    def cut(self, order: Sequence[int]) -> list[MicroBatch]:
        """The micro-batches of a pass in the given order, one list of positions a rank."""
        from accelerate.data_loader import BatchSamplerShard
        from torch.utils.data import BatchSampler

        size = self.batch_size * (self.world_size if self.split_batches else 1)
        whole = BatchSampler(order, size, self.drop_last)
        if self.world_size == 1:
            return [[list(batch)] for batch in whole]
        shards = [
            list(BatchSamplerShard(whole, self.world_size, rank, self.split_batches, self.even_batches))
            for rank in range(self.world_size)
        ]
        return [[list(batch) for batch in batches] for batches in zip(*shards, strict=True)]


def sequential_order(positions: Sequence[int], _pass: int) -> list[int]:
    """Rows as they lie in the file (`disable_shuffling`)."""
    return list(positions)


def seeded_order(seed: int) -> Order:
    """Accelerate's `SeedableRandomSampler`: pass p is `torch.randperm` under the seed `seed + p`."""

    def order(positions: Sequence[int], number: int) -> list[int]:
        import torch

        generator = torch.Generator().manual_seed(seed + number)
        return [positions[i] for i in torch.randperm(len(positions), generator=generator).tolist()]

    return order


def length_grouped_order(lengths: Sequence[int], batch_rows: int, seed: int | None) -> Order:
    """Transformers' length-grouped order.

    Args:
        lengths: tokens of each row of the pool.
        batch_rows: rows of a group, as `LengthGroupedSampler` was given.
        seed: of pass 0; None draws from the global generator, as stock training does.
    """

    def order(positions: Sequence[int], number: int) -> list[int]:
        import torch
        from transformers.trainer_pt_utils import get_length_grouped_indices

        generator = None if seed is None else torch.Generator().manual_seed(seed + number)
        places = get_length_grouped_indices([lengths[i] for i in positions], batch_rows, generator=generator)
        return [positions[i] for i in places]

    return order


class SampleStream:
    """Serves micro-batches of a changing set of rows."""

    def __init__(self, size: int, order: Order, rule: BatchRule) -> None:
        self.size = size
        self._order = order
        self._rule = rule
        self._positions: list[int] = list(range(size))
        self._pass = -1
        self._offset = 0
        self._cut: list[MicroBatch] | None = None

    @property
    def passes(self) -> int:
        """Passes begun."""
        return self._pass + 1

    def retarget(self, positions: Sequence[int]) -> None:
        """Serve these rows from now on; the same set as before changes nothing.

        Raises:
            DatamillError: `DM-TRAIN-020` for an empty set, a repeated row or one outside the pool.
        """
        wanted = sorted(positions)
        if not wanted or len(set(wanted)) != len(wanted) or wanted[0] < 0 or wanted[-1] >= self.size:
            raise DatamillError(
                "DM-TRAIN-020",
                f"a plan of {len(wanted)} rows does not fit a pool of {self.size}",
                expected=f"distinct positions from 0 to {self.size - 1}, at least one",
            )
        if wanted != self._positions:
            self._positions = wanted
            self._cut = None

    def take(self, count: int) -> list[MicroBatch]:
        """The next `count` micro-batches."""
        return [
            micro for _, micro in zip(range(count), self._endless(), strict=False)
        ]  # range first: it must end the zip

    def _endless(self) -> Iterator[MicroBatch]:
        while True:
            if self._cut is None or self._offset >= len(self._cut):
                self._begin(self._pass + 1)
            current = self._cut
            assert current is not None
            self._offset += 1
            yield current[self._offset - 1]

    def _begin(self, number: int) -> None:
        self._pass, self._offset = number, 0
        self._cut = self._rule.cut(self._order(self._positions, number))
        if not self._cut:
            raise DatamillError(
                "DM-TRAIN-021",
                f"{len(self._positions)} rows do not fill one micro-batch and dataloader_drop_last is set",
                fix="lower per_device_train_batch_size or unset dataloader_drop_last",
            )

    def state_dict(self) -> dict[str, Any]:
        """Set, pass and place in it; JSON-ready. The whole pool is written as null."""
        whole = len(self._positions) == self.size
        served = self._cut is not None
        return {
            "positions": None if whole else self._positions,
            "pass": self._pass,
            "rest": self._cut[self._offset :] if served and self._cut is not None else None,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was taken; the rest of the pass comes from the state, not from a new draw."""
        positions = state["positions"]
        self._positions = list(range(self.size)) if positions is None else list(positions)
        self._pass = int(state["pass"])
        self._offset = 0
        self._cut = None if state["rest"] is None else list(state["rest"])
