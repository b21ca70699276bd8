"""Preview of similar pairs."""

import pytest

from datamill.operators.dedup.minhash import MinHashParams, preview
from datamill.operators.dedup.preview import MAX_TEXTS
from datamill.services.minhash import reference

TEXTS = ["a b c d e f g h", "a b c d e f g x", None, "", "", "q r s t u v w z", "a b c d e f g h"]


def test_most_similar_pairs_first_with_exact_and_estimated_similarity() -> None:
    pairs = preview(TEXTS, MinHashParams(ngram=1, threshold=0.8))
    assert [(p.left, p.right) for p in pairs] == [(0, 6), (0, 1), (1, 6)]
    for pair in pairs:
        exact = reference.jaccard(TEXTS[pair.left] or "", TEXTS[pair.right] or "", "auto", 1)
        assert pair.exact == pytest.approx(exact)
        assert pair.estimated == pytest.approx(exact, abs=0.09)  # four standard errors
    assert [p.removed for p in pairs] == [True, False, False]
    assert pairs[0].detected == 1.0
    assert 0 < pairs[1].detected < 1


def test_limit_and_nothing_similar() -> None:
    assert len(preview(TEXTS, MinHashParams(ngram=1), limit=1)) == 1
    assert preview(["a b", "c d", ""], MinHashParams(ngram=1)) == ()
    assert preview([], MinHashParams()) == ()


def test_a_pair_reads_as_one_line() -> None:
    first = preview(TEXTS, MinHashParams(ngram=1))[0]
    assert first.render(TEXTS) == "1.00 (estimated 1.00) one goes: a b c d e f g h | a b c d e f g h"


def test_only_the_head_of_a_large_sample_is_compared() -> None:
    texts = [f"only {i}" for i in range(MAX_TEXTS)] + ["twin text here", "twin text here"]
    assert all(pair.right < MAX_TEXTS for pair in preview(texts, MinHashParams(ngram=1)))
