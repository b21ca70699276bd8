"""Case 36: exactly one row of each group stays, the first unless told otherwise."""

from pathlib import Path
from typing import Any

import pytest
from support.case_rows import load_rows

from datamill.operators.declaration import Context
from datamill.operators.dedup.exact import ExactParams, run

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "36-keep-first-inverted"
pytestmark = pytest.mark.skipif(not CASE.exists(), reason="../shared/cases is not there")


def split(partitions: int, **params: Any) -> tuple[set[Any], set[Any]]:
    data, own = load_rows(CASE / "in.jsonl", partitions)
    decided = run([data], ExactParams(**params), Context("exact")).collect().to_pylist()
    assert len(decided) == len(own) == 6
    kept = {own[row["_id"]] for row in decided if row["fate"] is None}
    return kept, {own[row["_id"]] for row in decided if row["fate"] == "merged"}


@pytest.mark.parametrize("partitions", [1, 2, 7, 50])
def test_the_first_of_each_group_stays(partitions: int) -> None:
    kept, removed = split(partitions)
    assert kept == {1, 3, 6}
    assert removed == {2, 4, 5}
    assert kept | removed == {1, 2, 3, 4, 5, 6}
    assert not kept & removed


def test_longest_keeps_the_row_with_most_characters() -> None:
    kept, removed = split(1, keep="longest")
    assert 6 in kept
    assert 5 in kept
    assert len(kept & {1, 2}) == 1
    assert kept | removed == {1, 2, 3, 4, 5, 6}


def test_without_normalisation_the_trailing_space_counts() -> None:
    assert split(1, normalise=False)[0] == {1, 3, 5, 6}
