"""Case 32: similarity of template rows is shown before anything is removed."""

from pathlib import Path
from typing import Any

import pytest
from support.case_rows import load_rows

from datamill.operators.declaration import Context
from datamill.operators.dedup.minhash import MinHashParams, preview, run

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "32-template-rows-with-one-number"
pytestmark = pytest.mark.skipif(not CASE.exists(), reason="../shared/cases is not there")


def remaining(**params: Any) -> int:
    data, _ = load_rows(CASE / "in.jsonl")
    return run([data], MinHashParams(**params), Context("near")).collect()["fate"].null_count


def test_preview_names_pairs_and_their_similarity() -> None:
    data, _ = load_rows(CASE / "in.jsonl")
    pairs = preview(data.collect()["text"].to_pylist(), MinHashParams(ngram=1), limit=20)
    found = {(pair.left + 1, pair.right + 1): pair for pair in pairs}
    assert len(found) == 10
    assert found[1, 2].exact == pytest.approx(20 / 22)
    assert found[1, 2].estimated == pytest.approx(0.909, abs=0.06)
    assert found[1, 4].exact == pytest.approx(0.826, abs=0.001)
    assert found[1, 4].estimated == pytest.approx(0.826, abs=0.06)
    assert "Ferry 11" in found[1, 2].render(data.collect()["text"].to_pylist())


@pytest.mark.parametrize("ngram", [1, 2, 5])
def test_high_threshold_keeps_every_row(ngram: int) -> None:
    assert remaining(threshold=0.97, ngram=ngram) == 5


def test_single_words_at_one_half_leave_at_most_two() -> None:
    assert remaining(threshold=0.5, ngram=1) <= 2


def test_word_five_grams_put_neighbours_at_exactly_four_fifths() -> None:
    data, _ = load_rows(CASE / "in.jsonl")
    texts = data.collect()["text"].to_pylist()
    assert [p.exact for p in preview(texts, MinHashParams())] == [16 / 20] * 4 + [pytest.approx(13 / 23)]
    assert remaining(threshold=0.8) == 2
    assert remaining(threshold=0.81) == 5
