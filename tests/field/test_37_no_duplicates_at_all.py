"""Case 37: no duplicates, one row, no row: the input comes back."""

from pathlib import Path

import pyarrow as pa
import pytest
from support.case_rows import load_rows

from datamill.operators.declaration import Context
from datamill.operators.registry import find
from datamill.workflows.decisions import apply_decisions

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "37-no-duplicates-at-all"
pytestmark = pytest.mark.skipif(not CASE.exists(), reason="../shared/cases is not there")


@pytest.mark.parametrize("operator_id", ["dedup.exact", "dedup.minhash"])
@pytest.mark.parametrize(("name", "count"), [("in.jsonl", 3), ("one.jsonl", 1), ("zero.jsonl", 0)])
@pytest.mark.parametrize("partitions", [1, 4])
def test_every_row_stays_untouched_and_in_order(operator_id: str, name: str, count: int, partitions: int) -> None:
    operator = find(operator_id)
    data, _ = load_rows(CASE / name, partitions)
    decided = operator.run([data], operator.params(), Context("dedup")).collect()
    assert decided["fate"].null_count == decided.num_rows == count
    added = [column for column in ("cluster_id", "cluster_size") if column in decided.column_names]
    outcome = apply_decisions(data.collect(), decided, added)
    assert outcome.fates.num_rows == 0
    assert outcome.rows.select(data.schema.names).equals(data.collect())
    assert outcome.rows.schema.field("text").type == pa.string()


@pytest.mark.parametrize("operator_id", ["dedup.exact", "dedup.minhash"])
def test_schema_of_nothing_is_the_schema_of_something(operator_id: str) -> None:
    operator = find(operator_id)
    schemas = [
        operator.run([load_rows(CASE / name)[0]], operator.params(), Context("dedup")).schema
        for name in ("in.jsonl", "zero.jsonl")
    ]
    assert schemas[0].equals(schemas[1])
