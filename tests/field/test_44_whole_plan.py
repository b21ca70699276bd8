"""Case 44 through a whole plan: kept and rejected add up at each step, and every rejection can be looked up."""

from pathlib import Path

import pytest
from support.cases import project_of, rows_after, run_case

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "44-see-what-was-removed"
pytestmark = pytest.mark.skipif(not CASE.is_dir(), reason="the shared cases are not here")
WORKFLOW = """\
version: 1
name: removed
inputs: {load: {path: in.jsonl}}
steps:
  - {id: size, operator: filter.length, needs: load, params: {columns: [text], unit: chars, min: 10}}
  - {id: exact, operator: dedup.exact, needs: size, params: {columns: [text]}}
outputs: {kept: {from: exact, path: out/kept.jsonl}}
run: {shard_rows: SHARD}
"""


@pytest.mark.parametrize(("shard_rows", "workers"), [(1, 1), (2, 2), (100, 1)])
def test_five_in_two_kept_three_rejected(tmp_path: Path, shard_rows: int, workers: int) -> None:
    folder = project_of(CASE, tmp_path)
    result, data = run_case(folder, WORKFLOW.replace("SHARD", str(shard_rows)), workers)
    assert (result.rows_in, result.rows_out) == (5, 2)
    assert [row["id"] for row in rows_after(data, "exact")] == [1, 5]
    rejected = data.dropped(None, None, k=10)
    found = sorted((r["step"], r["fate"], r["row"]["id"], r["value"], r["threshold"]) for r in rejected)
    assert found == [
        ("exact", "merged", 3, 1.0, 1.0), ("size", "dropped", 2, 4.0, 10.0), ("size", "dropped", 4, 1.0, 10.0),
    ]  # fmt: skip
    pair = next(r for r in rejected if r["step"] == "exact")
    survivor = data.row("exact", pair["into"])
    assert survivor is not None
    assert survivor["id"] == 1
    for step in ("size", "exact"):
        books = result.steps[step]
        assert books["in"] == books["out"] + sum(v for k, v in books.items() if k.startswith("gone."))
