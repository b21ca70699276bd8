"""Example pairs with their estimated and exact similarity, to choose a threshold by before anything is removed.

Cost: all pairs of the sample are compared exactly, so it is cut at `MAX_TEXTS` texts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from datamill.services.minhash.settings import SketchSettings, detection_probability

MAX_TEXTS: Final[int] = 500
PERMUTATIONS: Final[int] = 512
"""Standard error of the estimate below 0.023 at any similarity."""


@dataclass(frozen=True, slots=True)
class SimilarPair:
    """Two texts of a sample.

    Attributes:
        left: position of the first text.
        right: position of the second text, > `left`.
        estimated: MinHash estimate of the Jaccard similarity, 0..1.
        exact: Jaccard similarity of the shingle sets, 0..1.
        detected: probability that the banding brings the pair together, 0..1.
        removed: whether one of them would go at the threshold, were the pair met.
    """

    left: int
    right: int
    estimated: float
    exact: float
    detected: float
    removed: bool

    def render(self, texts: Sequence[str | None], width: int = 60) -> str:
        """One line for people: similarity, what would happen, and the beginnings of both texts."""
        shown = " | ".join((texts[i] or "")[:width] for i in (self.left, self.right))
        return (
            f"{self.exact:.2f} (estimated {self.estimated:.2f}) {'one goes' if self.removed else 'both stay'}: {shown}"
        )


def similar_pairs(
    texts: Sequence[str | None], settings: SketchSettings, threshold: float, limit: int = 5
) -> tuple[SimilarPair, ...]:
    """The `limit` most similar pairs among the first `MAX_TEXTS` texts, most similar first.

    Args:
        texts: a sample; nulls and blank texts pair with nothing.
        settings: shingle unit, n-gram and banding.
        threshold: Jaccard similarity from which a pair counts as duplicate, 0..1.
        limit: number of pairs, >= 1.
    """
    from datamill.services.minhash.pairs import jaccards
    from datamill.services.minhash.sketch import shingle_set_arrays, sketch_column

    column = pa.array(list(texts[:MAX_TEXTS]), pa.large_string())
    flat, limits = shingle_set_arrays(column, settings.unit, settings.ngram)
    left, right = np.triu_indices(len(column), 1)
    exact = jaccards(flat, limits, left, right)
    chosen = np.lexsort((right, left, -exact))[:limit]
    wide = replace(settings, bands=PERMUTATIONS, rows=1, verify="none", backend="fused")
    minima = sketch_column(column, wide, signatures=True).signatures
    pairs = []
    for i in chosen[exact[chosen] > 0]:
        a, b, similarity = int(left[i]), int(right[i]), float(exact[i])
        estimated = float((minima[a] == minima[b]).mean())
        detected = detection_probability(similarity, settings.bands, settings.key_rows)
        pairs.append(SimilarPair(a, b, estimated, similarity, detected, similarity >= threshold))
    return tuple(pairs)
