"""Case 44: every removed row is in the log with step, reason and value; kept and removed add up."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from support.tables import apply, decide, kept, reasons, table

from datamill.workflows.decisions import apply_decisions

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "44-see-what-was-removed"
pytestmark = pytest.mark.skipif(not CASE.is_dir(), reason="the shared cases are not here")


def rows() -> pa.Table:
    records = [json.loads(line) for line in (CASE / "in.jsonl").read_text(encoding="utf-8").splitlines()]
    return table(id=[record["id"] for record in records], text=[record["text"] for record in records])


@pytest.mark.parametrize("partitions", [1, 2, 50])
def test_five_rows_are_two_kept_and_three_removed(partitions: int) -> None:
    source = rows()
    first = apply("filter.length", source, min=5)
    assert reasons(first) == {1: "too_short", 3: "too_short"}
    assert sorted((f["value"], f["threshold"]) for f in first.fates.to_pylist()) == [(1.0, 5.0), (4.0, 5.0)]
    decisions = decide("dedup.exact", first.rows, partitions, columns=["text"])
    second = apply_decisions(first.rows, decisions, ())
    assert len(kept(decisions)) == second.rows.num_rows == 2
    assert second.rows["id"].to_pylist() == [1, 5]
    (merged,) = second.fates.to_pylist()
    assert (merged["fate"], merged["into"]) == ("merged", source["_id"][0].as_py())
    removed = [*first.fates["id"].to_pylist(), *second.fates["id"].to_pylist()]
    assert sorted([*removed, *second.rows["_id"].to_pylist()]) == sorted(source["_id"].to_pylist())
