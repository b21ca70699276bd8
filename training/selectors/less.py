"""LESS: train on the rows whose optimizer step points where the target's gradient points.

Xia et al., "LESS: Selecting Influential Data for Targeted Instruction Tuning", ICML 2024, arXiv 2402.04333:

    score(z) = max over subtasks j of  sum over checkpoints e of  lr_e cos(Gamma_e(z), mean of the targets of j),

with Gamma the Adam step of row z. Online, a checkpoint is the state of training at an update; `checkpoints` says how
many of the last ones count (1: the current model alone). Rates are divided by their sum, which changes no rank.
Cost: forward and backward of targets and candidates at each update; the provider `grad_similarity` has the details.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from pydantic import Field

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

SIGNAL = "grad_similarity"
STEADY_STEPS = 40
"""Optimizer steps below which Adam's second moments are too fresh for features to be more than noise."""


class LessParams(Params):
    """Parameters of LESS; defaults are the paper's."""

    gradient_type: Literal["adam", "sgd"] = Field("adam", description="a row's Adam step, or its plain gradient")
    projection: Literal["auto", "sjlt", "rademacher", "none"] = Field(
        "auto", description="none compares whole gradients (exact), sjlt and rademacher projected ones; auto: as fits"
    )
    proj_dim: int = Field(8192, ge=1, description="dimension of projected features, where they are projected")
    seed: int = Field(42, description="seed of the projection")
    checkpoints: int = Field(1, ge=1, description="updates that count, weighted by learning rate")
    compat: Literal["none", "official", "dataflex"] = Field("none", description="whose formulas; none is the paper")


@selector(
    "less",
    "prefer rows whose next optimizer step lowers the loss on a target set",
    params=LessParams,
    reference="Xia et al., ICML 2024, arXiv 2402.04333",
    obsolete={
        "cache_dir": "scores are kept in the ledger, not in a cache that only knows the step",
        "save_interval": "features are not stored",
    },
)
class LessSelector:
    """Top rows by influence; remembers the similarities of the last `checkpoints - 1` updates."""

    def __init__(self, params: LessParams) -> None:
        self.params = params
        self._past: deque[tuple[SignalTable, float]] = deque(maxlen=max(params.checkpoints - 1, 0))

    def signals(self) -> Sequence[SignalRequest]:
        """Similarities of every candidate to every subtask."""
        names = ("gradient_type", "projection", "proj_dim", "seed", "compat")
        return (SignalRequest(SIGNAL, {name: getattr(self.params, name) for name in names}),)

    def select(
        self, signals: Mapping[str, SignalTable], budget: int, state: SelectionState, rng: np.random.Generator
    ) -> SelectionPlan:
        """The `budget` rows of the highest score, shuffled; equal scores go to the smaller id.

        Raises:
            DatamillError: `DM-SIG-002` for a candidate without a finite similarity at one of the checkpoints that
                count, `DM-SIG-003`, `DM-SIG-004`.
        """
        wanted, warnings = clip_budget(budget, state.candidates)
        ids = np.sort(state.candidates)
        current = require(signals, SIGNAL)
        checkpoints = [*self._past, (current, state.learning_rate)]
        scores = influence([table.at(ids) for table, _ in checkpoints], [rate for _, rate in checkpoints])
        self._past.append((current, state.learning_rate))
        if state.step < STEADY_STEPS and self.params.gradient_type == "adam":
            warnings.append(
                f"after {state.step} optimizer steps Adam's features are noisy; {STEADY_STEPS} are advisable"
            )
        chosen = best(ids, scores, wanted)
        metadata = {
            "selector": "less",
            "checkpoints": len(checkpoints),
            "lowest_chosen_score": float(scores[np.isin(ids, chosen)].min()),
            "warnings": warnings,
        }
        return SelectionPlan(rng.permutation(chosen), SignalTable("score", ids, scores), metadata)

    def state_dict(self) -> dict[str, Any]:
        """The similarities of past updates: lists of ids, values and rates."""
        return {"past": [(table.ids.tolist(), table.values.tolist(), rate) for table, rate in self._past]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self._past.clear()
        for ids, values, rate in state["past"]:
            self._past.append((SignalTable(SIGNAL, np.asarray(ids, np.int64), np.asarray(values, float)), rate))


def influence(similarities: Sequence[Values], learning_rates: Sequence[float]) -> Values:
    """LESS scores from similarities.

    Args:
        similarities: for each checkpoint (n, subtasks), or (n,) for one subtask.
        learning_rates: mean rate around each checkpoint, not negative; all zero counts all alike.

    Returns:
        (n,) maximum over subtasks of the rate-weighted mean over checkpoints.
    """
    rates = np.asarray(learning_rates, dtype=float)
    shares = rates / rates.sum() if rates.sum() > 0 else np.full(len(rates), 1 / len(rates))
    summed = sum(share * np.asarray(table, float) for share, table in zip(shares, similarities, strict=True))
    matrix = np.asarray(summed)
    return matrix if matrix.ndim == 1 else np.asarray(matrix.max(axis=1))
