"""Case 48: the result is a function of the data, whatever the partitions."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.case_rows import load_rows

from datamill.operators.declaration import Context
from datamill.operators.registry import find

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "48-result-depends-on-partitions"
pytestmark = pytest.mark.skipif(not CASE.exists(), reason="../shared/cases is not there")


def outcome(operator_id: str, partitions: int) -> tuple[list[Any], pa.Schema]:
    """Ids left after deduplication and a minimum length of five characters, and the schema of the decisions."""
    data, own = load_rows(CASE / "in.jsonl", partitions)
    operator = find(operator_id)
    decided = operator.run([data], operator.params(), Context("dedup"))
    kept = {row["_id"] for row in decided.collect().to_pylist() if row["fate"] is None}
    rows = data.collect().to_pylist()
    return [own[r["_id"]] for r in rows if r["_id"] in kept and len(r["text"]) >= 5], decided.schema


@pytest.mark.parametrize("operator_id", ["dedup.exact", "dedup.minhash"])
@pytest.mark.parametrize("partitions", [1, 2, 7, 50])
def test_same_rows_and_types_for_any_partitioning(operator_id: str, partitions: int) -> None:
    ids, schema = outcome(operator_id, partitions)
    assert ids == [1, 4, 6]
    assert schema.equals(outcome(operator_id, 1)[1])
