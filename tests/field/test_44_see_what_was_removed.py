"""Case 44: the duplicate of the two-step plan is in the record of removals."""

from pathlib import Path

import pyarrow as pa
import pytest
from support.case_rows import load_rows

from datamill.operators.declaration import Context
from datamill.operators.registry import find
from datamill.workflows.decisions import apply_decisions

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "44-see-what-was-removed"
pytestmark = pytest.mark.skipif(not CASE.exists(), reason="../shared/cases is not there")


@pytest.mark.parametrize("partitions", [1, 2, 5, 50])
@pytest.mark.parametrize("operator_id", ["dedup.exact", "dedup.minhash"])
def test_after_the_length_filter_one_duplicate_is_recorded(operator_id: str, partitions: int) -> None:
    data, own = load_rows(CASE / "in.jsonl", partitions)
    long = data.map_tables(
        lambda table: table.filter(pa.compute.greater_equal(pa.compute.utf8_length(table["text"]), 10))
    )
    assert data.num_rows - long.num_rows == 2
    operator = find(operator_id)
    decided = operator.run([long], operator.params(), Context("dedup")).collect()
    added = [column for column in ("cluster_id", "cluster_size") if column in decided.column_names]
    outcome = apply_decisions(long.collect(), decided, added)
    assert outcome.rows.num_rows + outcome.fates.num_rows == 3
    fate = outcome.fates.to_pylist()[0]
    assert own[fate["id"]] == 3
    assert own[fate["into"]] == 1
    assert (fate["fate"], fate["value"]) == ("merged", 1.0)
    assert fate["reason"] in operator.reasons
