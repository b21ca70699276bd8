"""Uniform choice without replacement: the baseline every other method must be compared with."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from datamill.training.contracts import (
    Params,
    SelectionPlan,
    SelectionState,
    SignalRequest,
    SignalTable,
    selector,
)
from datamill.training.selectors.budget import clip_budget


class RandomParams(Params):
    """Random selection has no parameters."""


@selector(
    "random",
    "choose rows uniformly without replacement",
    params=RandomParams,
    obsolete={"cache_dir": "plans are kept in the ledger", "replacement": "a plan never repeats a row"},
)
class RandomSelector:
    """Uniform over `state.candidates`."""

    def __init__(self, params: RandomParams) -> None:
        self.params = params

    def signals(self) -> Sequence[SignalRequest]:
        """Nothing is measured."""
        return ()

    def select(
        self, signals: Mapping[str, SignalTable], budget: int, state: SelectionState, rng: np.random.Generator
    ) -> SelectionPlan:
        """`budget` rows in random order; the order of the candidates does not matter."""
        wanted, warnings = clip_budget(budget, state.candidates)
        ids = rng.permutation(np.sort(state.candidates))[:wanted]
        scores = SignalTable("score", np.empty(0, np.int64), np.empty(0))
        return SelectionPlan(ids, scores, {"selector": "random", "warnings": warnings})

    def state_dict(self) -> dict[str, Any]:
        """Nothing is remembered."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Nothing to restore."""
