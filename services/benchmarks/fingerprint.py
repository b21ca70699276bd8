"""A fingerprint of a test set: hashes of the word n-grams of its questions, never their text.

A question of at least `n` words is known by its n-grams; one of `MIN_RUN` to `n - 1` words by one run of its own
length, so that it is found inside a longer text; a shorter one only as a whole text. Looking up a batch costs one
vectorised pass per distinct length and a binary search per run.

Source: Brown et al. 2020, appendix C (N between 8 and 13 words, by the length of the examples).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from datamill.services.benchmarks.tokens import Batch, Hashes, Indices, ragged, run_hashes, unique_runs, whole_hashes

MIN_RUN: Final = 8
"""Shortest run of words looked for inside a longer text."""


@dataclass(frozen=True, slots=True)
class Match:
    """The question of a test set that a text overlaps most.

    Attributes:
        benchmark: name of the fingerprint.
        question: 0-based number of the question.
        hits: distinct runs shared with it.
        overlap: share of the question's runs found in the text, 0 to 1.
        whole: the texts are equal after normalisation.
        same_numbers: every number of the question occurs in the text (true when it has none).
    """

    benchmark: str
    question: int
    hits: int
    overlap: float
    whole: bool
    same_numbers: bool

    def is_contaminated(self, min_overlap: float = 0.6) -> bool:
        """Whether this is the question itself and not a sibling from the same template.

        A copy keeps its numbers: one shared run is enough when they all recur. Otherwise `min_overlap` of the
        question's runs must be there.
        """
        return self.whole or self.overlap >= min_overlap or (self.hits > 0 and self.same_numbers)


@dataclass(frozen=True)
class Fingerprint:
    """Hashes of a test set.

    Attributes:
        name: `gsm8k:test`.
        n: words of a run.
        runs: (num_runs,) sorted hashes of the questions' runs.
        owners: (num_runs,) question each run belongs to.
        lengths: lengths of run that occur, in words.
        wholes: (num_questions,) hash of each whole question.
        numbers: hashes of the numbers of all questions, with `number_offsets` (num_questions + 1,).
    """

    name: str
    n: int
    runs: Hashes
    owners: Indices
    lengths: tuple[int, ...]
    wholes: Hashes
    numbers: Hashes
    number_offsets: Indices

    @property
    def num_questions(self) -> int:
        """Questions of the test set."""
        return len(self.wholes)

    @cached_property
    def run_counts(self) -> npt.NDArray[np.int64]:
        """(num_questions,) distinct runs of each question."""
        return np.bincount(self.owners, minlength=self.num_questions)

    @cached_property
    def _whole_index(self) -> dict[int, int]:
        return {value: number for number, value in reversed(list(enumerate(self.wholes.tolist()))) if value}

    def match_batch(self, texts: Iterable[str]) -> list[Match | None]:
        """For each text the question it overlaps most, or None when nothing is shared."""
        batch = Batch.of(texts)
        hits = self._hits(batch)
        found: list[Match | None] = []
        for index, whole in enumerate(whole_hashes(batch).tolist()):
            equal = self._whole_index.get(whole)
            if equal is not None:
                found.append(Match(self.name, equal, max(1, int(self.run_counts[equal])), 1.0, True, True))
            else:
                found.append(self._best(hits.get(index), batch.numbers[index]))
        return found

    def _hits(self, batch: Batch) -> dict[int, Counter[int]]:
        hits: dict[int, Counter[int]] = defaultdict(Counter)
        for length in self.lengths:
            hashes, owner = unique_runs(*run_hashes(batch, length))
            left = np.searchsorted(self.runs, hashes, side="left")
            right = np.searchsorted(self.runs, hashes, side="right")
            for position in np.flatnonzero(right > left).tolist():
                hits[int(owner[position])].update(self.owners[left[position] : right[position]].tolist())
        return hits

    def _best(self, hits: Counter[int] | None, present: frozenset[int]) -> Match | None:
        if not hits:
            return None
        candidates = [
            Match(
                self.name, number, count, count / int(self.run_counts[number]), False, self._numbers_in(number, present)
            )
            for number, count in hits.items()
        ]
        return max(candidates, key=lambda match: (match.is_contaminated(), match.overlap, -match.question))

    def _numbers_in(self, question: int, present: frozenset[int]) -> bool:
        lo, hi = self.number_offsets[question : question + 2].tolist()
        return present.issuperset(self.numbers[lo:hi].tolist())

    def save(self, path: Path) -> None:
        """Write as `.npz`; hashes take six bytes each."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as sink:
            np.savez_compressed(
                sink,
                n=np.int64(self.n),
                runs_high=_high(self.runs),
                runs_low=_low(self.runs),
                wholes_high=_high(self.wholes),
                wholes_low=_low(self.wholes),
                owners=self.owners.astype(np.uint32 if self.num_questions > 0xFFFF else np.uint16),
                lengths=np.array(self.lengths, np.int64),
                numbers=self.numbers,
                number_offsets=self.number_offsets.astype(np.uint32),
            )

    @classmethod
    def load(cls, path: Path, name: str) -> "Fingerprint":
        """Read what `save` wrote."""
        with np.load(path, allow_pickle=False) as data:
            return cls(
                name=name,
                n=int(data["n"]),
                runs=_unpacked(data["runs_high"], data["runs_low"]),
                owners=data["owners"].astype(np.int64),
                lengths=tuple(data["lengths"].tolist()),
                wholes=_unpacked(data["wholes_high"], data["wholes_low"]),
                numbers=data["numbers"],
                number_offsets=data["number_offsets"].astype(np.int64),
            )


def build_fingerprint(name: str, questions: Iterable[str], n: int = 13) -> Fingerprint:
    """Fingerprint of `questions` with runs of `n` words."""
    batch = Batch.of(questions)
    lengths = tuple(sorted({min(n, size) for size in batch.lengths.tolist() if size >= min(n, MIN_RUN)}))
    parts = []
    for length in lengths:
        hashes, owner = run_hashes(batch, length)
        mine = np.minimum(batch.lengths[owner], n) == length
        parts.append((hashes[mine], owner[mine]))
    runs, owners = unique_runs(*_joined(parts))
    numbers, offsets = ragged(batch.numbers)
    return Fingerprint(name, n, runs, owners, lengths, whole_hashes(batch), numbers, offsets)


def strongest(found: Sequence[Match | None], min_overlap: float = 0.6) -> Match | None:
    """The strongest of several matches of one row (columns, benchmarks); ties go to the earlier."""
    present = [match for match in found if match is not None]
    return max(present, key=lambda match: (match.is_contaminated(min_overlap), match.overlap), default=None)


def _joined(parts: Sequence[tuple[Hashes, Indices]]) -> tuple[Hashes, Indices]:
    if not parts:
        return np.empty(0, np.uint64), np.empty(0, np.int64)
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def _high(hashes: Hashes) -> npt.NDArray[np.uint32]:
    return (hashes >> np.uint64(16)).astype(np.uint32)


def _low(hashes: Hashes) -> npt.NDArray[np.uint16]:
    return (hashes & np.uint64(0xFFFF)).astype(np.uint16)


def _unpacked(high: npt.NDArray[np.uint32], low: npt.NDArray[np.uint16]) -> Hashes:
    return (high.astype(np.uint64) << np.uint64(16)) | low.astype(np.uint64)
