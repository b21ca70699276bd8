"""Case 30: short answers are compared whole, blank texts are no near-duplicates."""

from pathlib import Path
from typing import Any

import pytest
from support.case_rows import load_rows

from datamill.operators.declaration import Context
from datamill.operators.dedup.minhash import MinHashParams, run

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "30-short-texts-collapse"
pytestmark = pytest.mark.skipif(not CASE.exists(), reason="../shared/cases is not there")


def fates(**params: Any) -> dict[Any, tuple[str | None, str | None]]:
    data, own = load_rows(CASE / "in.jsonl")
    decided = run([data], MinHashParams(ngram=5, **params), Context("near")).collect().to_pylist()
    return {own[row["_id"]]: (row["fate"], row["reason"]) for row in decided}


@pytest.mark.parametrize("unit", ["auto", "words", "chars"])
@pytest.mark.parametrize("verify", ["jaccard", "none"])
def test_short_texts_stay_apart_and_blank_ones_are_reported(unit: str, verify: str) -> None:
    found = fates(unit=unit, verify=verify, on_empty="drop")
    assert [key for key, (fate, _) in found.items() if fate is None] == [1, 2, 4, 5, 6]
    assert found[3] == ("merged", "near_duplicate")
    assert found[7] == found[8] == ("dropped", "empty_text")


def test_blank_texts_stay_with_a_remark_by_default() -> None:
    found = fates()
    assert found[7] == found[8] == ("noted", "empty_text")
    assert [key for key, (fate, _) in found.items() if fate == "merged"] == [3]
