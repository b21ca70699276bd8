"""Case 38: only new rows leave, each naming the old row it matched."""

from pathlib import Path

import pytest
from support.case_rows import load_rows

from datamill.operators.declaration import Context
from datamill.operators.dedup.minhash import MinHashParams, run

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "38-dedup-against-an-older-set"
pytestmark = pytest.mark.skipif(not CASE.exists(), reason="../shared/cases is not there")


@pytest.mark.parametrize("source", ["input", "index"])
def test_new_rows_are_held_against_old_ones(tmp_path: Path, source: str) -> None:
    (old, old_ids), (new, new_ids) = load_rows(CASE / "old.jsonl"), load_rows(CASE / "new.jsonl")
    before = old.digest
    if source == "index":
        run([old], MinHashParams(save_index="idx"), Context("old", project=tmp_path))
        params, context = MinHashParams(against="./idx"), Context("near", project=tmp_path)
    else:
        params, context = MinHashParams(against="old"), Context("near", inputs={"old": old})
    decided = {new_ids[row["_id"]]: row for row in run([new], params, context).collect().to_pylist()}
    assert set(decided) == {"n1", "n2", "n3"}
    assert [key for key, row in decided.items() if row["fate"] is None] == ["n2", "n3"]
    assert decided["n1"]["fate"] == "merged"
    assert old_ids[decided["n1"]["into"]] == "o1"
    assert decided["n1"]["value"] == 1.0
    assert old.digest == before
