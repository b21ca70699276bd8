"""Length-bucketed scoring batches under a token budget, shared out so that every rank runs the same number.

Under ZeRO-3 and FSDP a forward pass is a collective: a rank with one batch fewer would leave the others waiting. The
batches depend on the rows alone, never on the number of ranks, so a row meets the same neighbours in every world size.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from datamill.errors import DatamillError
from datamill.training.contracts import DUMMY_ID, Ids, ScoringContext, ScoringRows


@dataclass(frozen=True, slots=True)
class ScoringBatch:
    """Rows of one batch; `real` is false for a filler whose results are thrown away."""

    ids: tuple[int, ...]
    real: bool = True


def plan_batches(ids: Ids, lengths: npt.NDArray[np.int64], token_budget: int) -> list[ScoringBatch]:
    """All rows in batches of at most `token_budget` padded tokens, longest rows first.

    A row longer than the budget is a batch of its own. Equal lengths are ordered by id, so that the order of the
    input does not matter.

    Args:
        ids: (n,) distinct row ids.
        lengths: (n,) tokens per row.
        token_budget: rows times the longest row of a batch, at least 1.

    Raises:
        DatamillError: `DM-SIG-103` for a budget below one token or arrays that do not match.
    """
    if token_budget < 1 or len(ids) != len(lengths):
        raise DatamillError(
            "DM-SIG-103", f"cannot batch {len(ids)} rows, {len(lengths)} lengths, {token_budget} tokens"
        )
    batches: list[ScoringBatch] = []
    rows: list[int] = []
    width = 0
    for place in np.lexsort((ids, -lengths)):
        if rows and (len(rows) + 1) * width > token_budget:
            batches.append(ScoringBatch(tuple(rows)))
            rows = []
        if not rows:
            width = max(int(lengths[place]), 1)
        rows.append(int(ids[place]))
    return [*batches, ScoringBatch(tuple(rows))] if rows else batches


def share_of_rank(batches: Sequence[ScoringBatch], rank: int, world_size: int) -> list[ScoringBatch]:
    """Every `world_size`-th batch from `rank` on, filled up so that all ranks get equally many.

    Over all ranks the real batches are a partition of `batches`. The filler is one row of the cheapest batch.
    """
    mine = list(batches[rank::world_size])
    short = -(-len(batches) // world_size) - len(mine)
    return mine + [ScoringBatch(batches[-1].ids[:1], real=False) for _ in range(short)]


def iterate(context: ScoringContext, rows: ScoringRows) -> Iterator[tuple[Mapping[str, Any], Ids, Ids]]:
    """This rank's collated batches on the model's device.

    Yields:
        the batch; for each of its samples, row by row and segment by segment, the sample's id (`DUMMY_ID` where there
        is nothing to report) and the id of the row it lies in. Both are (samples,) int64.

    Raises:
        DatamillError: `DM-SIG-101` for rows packed without boundaries.
    """
    device = next(context.model.parameters()).device
    planned = plan_batches(rows.ids, rows.lengths, context.token_budget)
    for batch in share_of_rank(planned, context.rank, context.world_size):
        tensors = {
            key: value.to(device) if isinstance(value, torch.Tensor) else value
            for key, value in rows.collate(batch.ids).items()
        }
        _refuse_mixed_samples(context, tensors)
        rows_of = np.asarray(batch.ids, dtype=np.int64)
        samples = rows_of
        if "segments" in tensors:
            table = torch.as_tensor(tensors["sample_ids"])[:, : int(tensors["segments"].max())]
            samples = np.asarray(table.cpu(), dtype=np.int64).reshape(-1)
            rows_of = rows_of.repeat(table.shape[1])
        yield tensors, samples if batch.real else np.full_like(samples, DUMMY_ID), rows_of


def _refuse_mixed_samples(context: ScoringContext, batch: Mapping[str, Any]) -> None:
    if context.packing == "plain" or (context.packing == "neat" and "segments" not in batch):
        raise DatamillError(
            "DM-SIG-101",
            "rows are packed without a boundary between samples, so a sample has no loss or gradient of its own",
            field="packing",
            fix="set neat_packing: true, or packing: false",
        )
