"""Mean token loss of each sample under the current model: one forward pass, no dropout.

The loss of a sample is the mean over its supervised tokens, each token weighing the same; with neat packing, the mean
within its segment, so that neighbours in a packed row do not mix. Cost: one forward pass of the pool.
"""

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from datamill.training.contracts import DUMMY_ID, Params, ScoringContext, SignalTable, provider
from datamill.training.signals.batches import iterate
from datamill.training.signals.guard import scoring_guard

_NOT_FOR_THE_MODEL = {"labels", "segments", "sample_ids", "sample_id", "segment_id", "domain_id"}
IGNORED = -100


def sample_losses(
    logits: torch.Tensor, labels: torch.Tensor, segments: torch.Tensor | None = None, kept: torch.Tensor | None = None
) -> torch.Tensor:
    """Mean cross-entropy of each sample in nats, NaN for a sample without supervised tokens.

    Args:
        logits: (rows, kept tokens, vocabulary); position t predicts the token at t + 1.
        labels: (rows, tokens), -100 where there is nothing to learn.
        segments: (rows, tokens) sample of each token, 1..k in each row, 0 for padding; None for one sample a row. A
            prediction across a boundary does not count.
        kept: positions of `logits` in the row, when not all were computed; not together with `segments`.

    Returns:
        (rows * k,) losses in float32, or float64 for float64 logits.
    """
    following = functional.pad(labels[:, 1:], (0, 1), value=IGNORED)
    if segments is not None:
        following = following.masked_fill(functional.pad(segments[:, 1:], (0, 1)) != segments, IGNORED)
    if kept is not None:
        following = following[:, kept]
    precise = logits.to(torch.promote_types(logits.dtype, torch.float32))
    tokens = functional.cross_entropy(
        precise.flatten(0, 1), following.flatten(), reduction="none", ignore_index=IGNORED
    ).view(following.shape)
    supervised = (following != IGNORED).to(tokens.dtype)
    if segments is None:
        return tokens.sum(1) / supervised.sum(1)
    member = membership(segments).to(tokens.dtype)
    total = torch.einsum("bst,bt->bs", member, tokens)
    return (total / torch.einsum("bst,bt->bs", member, supervised)).flatten()


def membership(segments: torch.Tensor) -> torch.Tensor:
    """(rows, k, tokens) true where a token belongs to its row's k-th sample; `segments` counts them from 1."""
    numbers = torch.arange(1, int(segments.max()) + 1, device=segments.device)
    return segments[:, None, :] == numbers[None, :, None]


def forward_losses(model: Any, batch: Mapping[str, Any]) -> torch.Tensor:
    """`sample_losses` of a batch; only positions that predict a supervised token go through the output layer."""
    inputs = {key: value for key, value in batch.items() if key not in _NOT_FOR_THE_MODEL}
    labels, segments = batch["labels"], batch.get("segments")
    kept = None
    if segments is None and _can_keep_logits(model):
        kept = (labels[:, 1:] != IGNORED).any(0).nonzero().flatten()
        inputs["logits_to_keep"] = kept
    return sample_losses(model(**inputs, use_cache=False).logits, labels, segments, kept)


def _can_keep_logits(model: Any) -> bool:
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    return "logits_to_keep" in inspect.signature(type(base).forward).parameters


class LossParams(Params):
    """The loss provider has no parameters."""


@provider("loss", params=LossParams)
class LossProvider:
    """Signal `loss`: (n,) mean token loss in nats."""

    key = "loss"

    def __init__(self, params: LossParams) -> None:
        self.params = params

    def check(self, context: ScoringContext) -> None:
        """Refuse plain packing (`DM-SIG-101`)."""
        with scoring_guard(context.model):
            next(iterate(context, context.rows), None)

    def compute(self, context: ScoringContext) -> SignalTable:
        """Losses of `context.rows`, the same for every batch size and world size up to rounding."""
        ids: list[np.ndarray[Any, Any]] = [np.empty(0, np.int64)]
        losses: list[np.ndarray[Any, Any]] = [np.empty(0)]
        with scoring_guard(context.model), torch.no_grad():
            for batch, samples, _ in iterate(context, context.rows):
                values = forward_losses(context.model, batch).double().cpu().numpy()
                real = samples != DUMMY_ID
                ids.append(samples[real])
                losses.append(values[real])
        local = SignalTable(self.key, np.concatenate(ids), np.concatenate(losses))
        return (context.gather(local) if context.gather else local).sorted()
