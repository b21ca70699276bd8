"""Words of a text for contamination checks, and 48-bit hashes of runs of them.

Normalisation: NFKC, lower case, apostrophes removed, punctuation dropped; a CJK character is a word of its own.
Numbers are *preserved* (`1,000` and `1000` are the word `1000`, `3.50` stays `3.50`): two questions that differ
in a number are different questions. Hashing is vectorised over a whole batch of texts: one pass per length of run.

Source: Brown et al. 2020, "Language Models are Few-Shot Learners", appendix C (13-grams, lower case, no punctuation).
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
import xxhash

Hashes = npt.NDArray[np.uint64]
Indices = npt.NDArray[np.int64]

HASH_BITS: Final = 48
"""Kept bits of a hash: a false hit has probability 3.6e-15 per pair of runs."""

_SHIFT: Final = np.uint64(64 - HASH_BITS)
_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)
_FINAL: Final = np.uint64(0xD6E8FEB86659FD93)
_HALF: Final = np.uint64(32)
_APOSTROPHES: Final = str.maketrans("", "", "'’‘ʼ`´")
_GROUPED: Final = re.compile(r"(?<=\d)[,\u00a0\u202f](?=\d{3}(?!\d))")
_CJK: Final = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD: Final = re.compile(rf"\d+(?:\.\d+)?|[{_CJK}]|[^\W\d_{_CJK}]+")


def words(text: str) -> list[str]:
    """Normalised words of `text`, numbers among them."""
    folded = unicodedata.normalize("NFKC", text).lower().translate(_APOSTROPHES)
    return _WORD.findall(_GROUPED.sub("", folded))


def is_number(word: str) -> bool:
    """Whether a normalised word is a number."""
    return word[0].isdigit()


@lru_cache(maxsize=1 << 17)
def word_hash(word: str) -> int:
    """64-bit hash of one normalised word."""
    return xxhash.xxh3_64_intdigest(word.encode("utf-8", "surrogatepass"))


@dataclass(frozen=True, slots=True)
class Batch:
    """Words of many texts in one array.

    Attributes:
        hashes: (num_words,) hashes of all words, text after text.
        starts: (num_texts + 1,) offsets of the texts in `hashes`.
        numbers: for each text the hashes of its numbers.
    """

    hashes: Hashes
    starts: Indices
    numbers: tuple[frozenset[int], ...]

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Batch":
        """Tokenise `texts`."""
        flat: list[int] = []
        starts = [0]
        numbers: list[frozenset[int]] = []
        for text in texts:
            tokens = words(text)
            flat.extend(map(word_hash, tokens))
            starts.append(len(flat))
            numbers.append(frozenset(word_hash(token) for token in tokens if is_number(token)))
        return cls(np.array(flat, np.uint64), np.array(starts, np.int64), tuple(numbers))

    @property
    def lengths(self) -> Indices:
        """(num_texts,) number of words of each text."""
        return np.diff(self.starts)


def run_hashes(batch: Batch, length: int) -> tuple[Hashes, Indices]:
    """Hashes of all runs of `length` words that lie inside one text.

    Returns:
        (num_runs,) hashes and (num_runs,) index of the text each run belongs to.
    """
    num_runs = len(batch.hashes) - length + 1
    if num_runs <= 0:
        return np.empty(0, np.uint64), np.empty(0, np.int64)
    mixed = np.full(num_runs, np.uint64(length))
    with np.errstate(over="ignore"):
        for position in range(length):
            mixed = mixed * _MULTIPLIER + batch.hashes[position : position + num_runs]
    owner = np.repeat(np.arange(len(batch.lengths)), batch.lengths)
    inside = owner[:num_runs] == owner[length - 1 :]
    return finish(mixed[inside]), owner[:num_runs][inside]


def whole_hashes(batch: Batch) -> Hashes:
    """(num_texts,) one hash per text over all its words; texts without a word get 0."""
    bounds = zip(batch.starts[:-1].tolist(), batch.starts[1:].tolist(), strict=True)
    raw = [xxhash.xxh3_64_intdigest(batch.hashes[lo:hi].tobytes(), seed=1) if hi > lo else 0 for lo, hi in bounds]
    return np.array(raw, np.uint64) >> _SHIFT


def finish(mixed: Hashes) -> Hashes:
    """Spread the bits of a running hash and keep the upper 48."""
    with np.errstate(over="ignore"):
        mixed = (mixed ^ (mixed >> _HALF)) * _FINAL
        mixed = (mixed ^ (mixed >> _HALF)) * _FINAL
    return mixed >> _SHIFT


def unique_runs(hashes: Hashes, owner: Indices) -> tuple[Hashes, Indices]:
    """Distinct (hash, owner) pairs, sorted by hash, then owner."""
    order = np.lexsort((owner, hashes))
    hashes, owner = hashes[order], owner[order]
    fresh = np.ones(len(hashes), bool)
    fresh[1:] = (hashes[1:] != hashes[:-1]) | (owner[1:] != owner[:-1])
    return hashes[fresh], owner[fresh]


def ragged(parts: Sequence[frozenset[int]]) -> tuple[Hashes, Indices]:
    """Concatenate sorted sets into one array with offsets."""
    offsets = np.cumsum([0, *map(len, parts)]).astype(np.int64)
    flat = [value for part in parts for value in sorted(part)]
    return np.array(flat, np.uint64), offsets
