"""Recall and precision on a planted corpus, against exact similarities; with negative controls."""

import numpy as np
import pytest

from datamill.operators.declaration import Context
from datamill.operators.dedup.minhash import MinHashParams, run

FAMILIES, LENGTH = 250, 120


def shingles(words: list[str]) -> set[tuple[str, ...]]:
    return {tuple(words[i : i + 5]) for i in range(len(words) - 4)}


class Corpus:
    """Families of a base and one variant at a known similarity, in random order."""

    def __init__(self, seed: int, letters: str = "") -> None:
        generator = np.random.default_rng(seed)
        texts, self.family, self.similarity = [], [], {}
        for family in range(FAMILIES):
            base = [f"{letters}{i}" for i in generator.zipf(1.3, LENGTH) % 40_000]
            variant = list(base)
            for place in generator.choice(LENGTH, int(generator.integers(0, 9)), replace=False):
                variant[place] = f"{letters}{generator.integers(40_000)}"
            a, b = shingles(base), shingles(variant)
            self.similarity[family] = len(a & b) / len(a | b)
            texts += [" ".join(base), " ".join(variant)]
            self.family += [family, family]
        order = generator.permutation(len(texts))
        self.texts = [texts[i] for i in order]
        self.family = [self.family[i] for i in order]


def removed_families(corpus: Corpus, make: object, **params: object) -> tuple[list[int], int]:
    """Families of removed rows, and how many removed rows name a row of another family."""
    decided = run([make(corpus.texts, 3)], MinHashParams(**params), Context("s")).collect().to_pylist()  # type: ignore[operator, arg-type]  # a fixture
    gone = [(int(row["_id"][1:]), int(row["into"][1:])) for row in decided if row["fate"] == "merged"]
    wrong = sum(corpus.family[row] != corpus.family[into] for row, into in gone)
    return [corpus.family[row] for row, _ in gone], wrong


@pytest.mark.parametrize("letters", ["", "слово"])
def test_verified_recall_and_precision(make: object, letters: str) -> None:
    corpus = Corpus(11, letters)
    found, wrong = removed_families(corpus, make)
    true = {family for family, value in corpus.similarity.items() if value >= 0.8}
    assert 40 < len(true) < FAMILIES - 40
    assert wrong == 0
    assert len(found) == len(set(found))
    assert set(found) <= true
    assert len(set(found)) / len(true) >= 0.97


def test_unverified_follows_the_curve_and_is_less_precise(make: object) -> None:
    corpus = Corpus(11)
    found, wrong = removed_families(corpus, make, verify="none")
    expected = sum(1 - (1 - value**8) ** 14 for value in corpus.similarity.values())
    assert wrong == 0
    assert abs(len(found) - expected) < 4 * FAMILIES**0.5 / 2
    assert any(corpus.similarity[family] < 0.8 for family in found)


def test_unrelated_documents_lose_nobody(make: object) -> None:
    """Control: every family broken up, so whatever leaves is an error."""
    corpus = Corpus(12)
    firsts = {family: i for i, family in reversed(list(enumerate(corpus.family)))}
    corpus.texts = [corpus.texts[i] for i in firsts.values()]
    corpus.family = list(firsts)
    for verify in ("jaccard", "none"):
        assert removed_families(corpus, make, verify=verify) == ([], 0)


def test_shuffled_labels_fall_to_chance(make: object) -> None:
    """Control of the measure itself: with families shuffled, hardly a removal stays inside its family."""
    corpus = Corpus(13)
    found, _ = removed_families(corpus, make)
    generator = np.random.default_rng(0)
    corpus.family = [corpus.family[i] for i in generator.permutation(len(corpus.family))]
    again, wrong = removed_families(corpus, make)
    assert len(again) == len(found)
    assert wrong > 0.95 * len(again)


def test_large_family_of_variants_is_one_cluster(make: object) -> None:
    generator = np.random.default_rng(3)
    base = [f"w{i}" for i in generator.integers(0, 9000, 200)]
    texts = []
    for _ in range(300):
        words = list(base)
        words[int(generator.integers(200))] = f"x{generator.integers(9000)}"
        texts.append(" ".join(words))
    decided = run([make(texts, 7)], MinHashParams(), Context("s")).collect().to_pylist()  # type: ignore[operator]  # a fixture
    assert {row["cluster_id"] for row in decided} == {"r0"}
    assert all(row["value"] >= 0.8 for row in decided if row["fate"])


def test_two_crowds_in_reach_of_each_other_are_not_mixed_nor_split(make: object) -> None:
    """500 copies of each of two texts at similarity .6: bands bring them together, verification keeps two rows."""
    base = [f"w{i}" for i in range(104)]
    other = base[:75] + [f"y{i}" for i in range(29)]
    value = len(shingles(base) & shingles(other)) / len(shingles(base) | shingles(other))
    assert 0.5 < value < 0.7
    texts = [" ".join(base if i % 2 else other) for i in range(1000)]
    decided = run([make(texts, 5)], MinHashParams(bands=60, rows=4), Context("s")).collect().to_pylist()  # type: ignore[operator]  # a fixture
    assert [row["_id"] for row in decided if row["fate"] is None] == ["r0", "r1"]
    assert {row["cluster_size"] for row in decided} == {500}
