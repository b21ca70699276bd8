"""Case 48: exact dedup, then a minimum length: the same rows and types for 1, 2, 7 and 50 partitions."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from support.tables import apply, decide, table

from datamill.services.engines.tables import TableDataset
from datamill.workflows.decisions import apply_decisions

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "48-result-depends-on-partitions"
pytestmark = pytest.mark.skipif(not CASE.is_dir(), reason="the shared cases are not here")


def result(partitions: int) -> pa.Table:
    records = [json.loads(line) for line in (CASE / "in.jsonl").read_text(encoding="utf-8").splitlines()]
    source = table(id=[record["id"] for record in records], text=[record["text"] for record in records])
    decisions = decide("dedup.exact", source, partitions, columns=["text"])
    unique = TableDataset.of(source, partitions).map_tables(lambda part: apply_decisions(part, decisions, ()).rows)
    measured = unique.map_tables(lambda part: apply("filter.length", part, min=5).rows)
    assert len({str(part.schema) for part in measured.partitions}) == 1
    return measured.collect()


@pytest.mark.parametrize("partitions", [1, 2, 7, 50])
def test_rows_and_types_are_a_function_of_the_data(partitions: int) -> None:
    found = result(partitions)
    assert found["id"].to_pylist() == [1, 4, 6]
    assert found.equals(result(1))
