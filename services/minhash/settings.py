"""Settings of a MinHash sketch and the detection curve of its banding.

A sketch hashes the set of word or character n-grams of a text with `bands * rows` random permutations; two texts
become a candidate pair when all `rows` minima of at least one band agree. With Jaccard similarity `s` that happens
with probability `1 - (1 - s^rows)^bands`.

Source: A. Broder, "On the resemblance and containment of documents" (1997); the banding of P. Indyk and R. Motwani
(1998) as told in Leskovec, Rajaraman and Ullman, "Mining of Massive Datasets", chapter 3.
"""

import math
import unicodedata
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

Unit = Literal["auto", "words", "chars"]
Backend = Literal["fused", "datasketch"]
Verify = Literal["jaccard", "none"]

FORMAT_VERSION: Final[int] = 1
"""Raised whenever the same text and settings would give another sketch."""

NORMALISATION: Final[str] = f"nfc+simple_lower/unicode-{unicodedata.unidata_version}"
"""Canonical composition, then one-to-one lower case, with the Unicode tables of the running Python."""

VERIFY_SLACK: Final[int] = 2
"""Rows left out of every band key when candidates are verified (see `SketchSettings.key_rows`)."""


@dataclass(frozen=True, slots=True)
class SketchSettings:
    """Everything that decides whether two sketches may be compared.

    Attributes:
        unit: what an n-gram is made of; `auto` decides per text.
        ngram: tokens per shingle, >= 1.
        bands: number of bands, >= 1.
        rows: permutations per band, >= 1.
        seed: seed of the permutations.
        verify: whether candidates will be checked by exact Jaccard.
        backend: who computes the minima.
    """

    unit: Unit = "auto"
    ngram: int = 5
    bands: int = 14
    rows: int = 8
    seed: int = 1
    verify: Verify = "jaccard"
    backend: Backend = "fused"

    @property
    def key_rows(self) -> int:
        """Rows that enter a band key.

        Without verification all `rows`. With verification two fewer (never less than one): each shortened band
        matches whenever the full band does, so the candidates are a superset of what `bands x rows` finds, and
        exact Jaccard removes the excess.
        """
        return max(1, self.rows - VERIFY_SLACK) if self.verify == "jaccard" else self.rows

    def identity(self) -> dict[str, Any]:
        """The settings, with the number of permutations, normalisation and format, as stored with an index."""
        return {
            **asdict(self),
            "num_perm": self.bands * self.rows,
            "normalisation": NORMALISATION,
            "version": FORMAT_VERSION,
        }

    def permutations(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Multipliers (odd) and offsets of the used permutations, each `(bands * key_rows,) uint32`.

        The full `bands x rows` table is drawn and the leading `key_rows` of every band are taken, so that
        shortened bands are prefixes of the full ones.
        """
        return permutations(self.seed, self.bands, self.rows, self.key_rows)


def permutations(seed: int, bands: int, rows: int, key_rows: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Draw the maps `x -> a * x + b (mod 2^32)`, `a` odd, of `bands` bands; keep `key_rows` of each band's `rows`."""
    generator = np.random.Generator(np.random.PCG64(seed))
    a = generator.integers(0, 1 << 32, (bands, rows), dtype=np.uint32) | np.uint32(1)
    b = generator.integers(0, 1 << 32, (bands, rows), dtype=np.uint32)
    return np.ascontiguousarray(a[:, :key_rows]).ravel(), np.ascontiguousarray(b[:, :key_rows]).ravel()


def detection_probability(similarity: float, bands: int, rows: int) -> float:
    """Probability that a pair of Jaccard `similarity` (0..1) shares at least one band: `1 - (1 - s^r)^b`."""
    if similarity >= 1.0:
        return 1.0
    return -math.expm1(bands * math.log1p(-(similarity**rows)))


def suggest_banding(similarity: float, num_perm: int, at_least: float = 0.9) -> tuple[int, int]:
    """The `(bands, rows)` with most rows, within `num_perm` permutations, that detects `similarity` with `at_least`."""
    for rows in range(num_perm, 0, -1):
        bands = num_perm // rows
        if detection_probability(similarity, bands, rows) >= at_least:
            return bands, rows
    return num_perm, 1
