"""Prefer rows whose current loss lies in one band of the pool's losses, as perplexity pruning does.

The pool is cut at two quantiles of the loss into low, medium and high; rows of the band in focus are `focus_weight`
times as likely to be drawn as others, and rows are drawn one after the other without replacement (Marion et al. 2023,
arXiv 2309.04564, keep such a band outright). Drawing uses exponential races (Efraimidis and Spirakis 2006), which
give the same distribution as drawing in sequence, in one pass.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator

from datamill.training.contracts import (
    Params,
    SelectionPlan,
    SelectionState,
    SignalRequest,
    SignalTable,
    Values,
    require,
    selector,
)
from datamill.training.selectors.budget import best, clip_budget


class LossParams(Params):
    """Which band, and how strongly it is preferred."""

    focus: Literal["low", "medium", "high"] = Field("medium", description="band of losses to prefer")
    focus_weight: float = Field(5.0, ge=1.0, description="odds of a row in focus against any other")
    quantiles: tuple[float, float] = Field((0.33, 0.66), description="cuts between low, medium and high")
    temperature: float = Field(1.0, gt=0.0, description="above 1 flattens the odds, below 1 sharpens them")

    @model_validator(mode="after")
    def _ordered(self) -> "LossParams":
        low, high = self.quantiles
        if not 0 < low < high < 1:
            raise ValueError("quantiles must rise within 0 .. 1")
        return self


@selector(
    "loss",
    "prefer rows of low, medium or high loss under the current model",
    params=LossParams,
    reference="Marion et al. 2023, arXiv 2309.04564; DataFlex 1.1.0",
    obsolete={
        "cache_dir": "plans are kept in the ledger",
        "replacement": "a plan never repeats a row",
        "score_batch_size": "scoring batches follow a token budget",
        "score_num_workers": "scoring needs no loader processes",
    },
)
class LossSelector:
    """A weighted draw over bands of the loss."""

    def __init__(self, params: LossParams) -> None:
        self.params = params

    def signals(self) -> Sequence[SignalRequest]:
        """The loss of every candidate."""
        return (SignalRequest("loss"),)

    def select(
        self, signals: Mapping[str, SignalTable], budget: int, state: SelectionState, rng: np.random.Generator
    ) -> SelectionPlan:
        """`budget` rows in the order drawn; scores are the losses.

        Raises:
            DatamillError: `DM-SIG-002` for a candidate without a finite loss, `DM-SIG-003`, `DM-SIG-004`.
        """
        wanted, warnings = clip_budget(budget, state.candidates)
        ids = np.sort(state.candidates)
        losses = require(signals, "loss").at(ids)
        weights = self.weights(losses)
        arrivals = rng.standard_exponential(len(ids)) / weights
        metadata = {
            "selector": "loss",
            "cuts": [float(cut) for cut in np.quantile(losses, self.params.quantiles)],
            "expected_share_in_focus": float(weights[weights == weights.max()].sum() / weights.sum()),
            "warnings": warnings,
        }
        return SelectionPlan(best(ids, -arrivals, wanted), SignalTable("score", ids, losses), metadata)

    def weights(self, losses: Values) -> Values:
        """(n,) odds of each row to be drawn: `focus_weight ** (1 / temperature)` in the band in focus, else 1."""
        low, high = np.quantile(losses, self.params.quantiles)
        band = {
            "low": losses <= low,
            "medium": (losses > low) & (losses <= high),
            "high": losses > high,
        }[self.params.focus]
        return np.where(band, self.params.focus_weight ** (1 / self.params.temperature), 1.0)

    def state_dict(self) -> dict[str, Any]:
        """Nothing is remembered."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Nothing to restore."""
