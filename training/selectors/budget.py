"""What all selectors do the same way: a budget larger than the pool, and the k best with ties decided by id."""

import numpy as np

from datamill.errors import DatamillError
from datamill.training.contracts import Ids, Values


def clip_budget(budget: int, candidates: Ids) -> tuple[int, list[str]]:
    """The number of rows to choose and the warnings that go with it.

    Args:
        budget: rows asked for, at least 1.
        candidates: distinct row ids to choose from, at least one.

    Raises:
        DatamillError: `DM-SIG-004` for a budget below 1, no candidates, or candidates that repeat.
    """
    if budget < 1 or not len(candidates) or len(np.unique(candidates)) != len(candidates):
        raise DatamillError(
            "DM-SIG-004",
            f"cannot choose {budget} of {len(candidates)} candidates ({len(np.unique(candidates))} distinct)",
            expected="a budget of at least one row and distinct candidates",
        )
    if budget <= len(candidates):
        return budget, []
    return len(candidates), [f"{budget} rows were asked for and only {len(candidates)} are there: all are taken once"]


def best(ids: Ids, scores: Values, count: int) -> Ids:
    """The `count` ids of the highest scores, best first; equal scores in ascending order of id."""
    return ids[np.lexsort((ids, -scores))[:count]]
