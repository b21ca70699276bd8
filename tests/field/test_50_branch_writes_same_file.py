"""Case 50: two branches of one parent, with and without a gold answer."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from support.tables import apply, ids, table

from datamill.operators.declaration import ColumnType
from datamill.operators.filter.expression import ExprParams
from datamill.operators.registry import find

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "50-branch-writes-same-file"
pytestmark = pytest.mark.skipif(not CASE.is_dir(), reason="the shared cases are not here")
WITH, WITHOUT = "golden_answer is not null", "golden_answer is null"


def rows(name: str) -> pa.Table:
    records = [json.loads(line) for line in (CASE / name).read_text(encoding="utf-8").splitlines()]
    answers = [record.get("golden_answer") for record in records]
    kinds = {"q": pa.string(), "golden_answer": pa.string()}
    return table(kinds, q=[record["q"] for record in records], golden_answer=answers)


def test_branches_have_their_own_rows_and_their_union_is_the_input() -> None:
    source = rows("in.jsonl")
    with_gold, without_gold = (apply("filter.expr", source, expr=expr).rows for expr in (WITH, WITHOUT))
    assert (with_gold.num_rows, without_gold.num_rows) == (2, 1)
    assert sorted(ids(with_gold) + ids(without_gold)) == ids(source)


def test_a_missing_column_is_declared_so_that_the_plan_can_say_so() -> None:
    operator = find("filter.expr")
    needs = operator.reads(ExprParams(expr=WITHOUT))
    assert [need.column for need in needs if need.column not in {"q": ColumnType("string")}] == ["golden_answer"]


def test_an_all_null_column_sends_every_row_to_one_branch() -> None:
    source = rows("in_nogold.jsonl")
    assert apply("filter.expr", source, expr=WITHOUT).rows.num_rows == 2
    assert apply("filter.expr", source, expr=WITH).rows.num_rows == 0
    untyped = source.set_column(source.column_names.index("golden_answer"), "golden_answer", pa.nulls(2))
    assert apply("filter.expr", untyped, expr=WITHOUT).rows.num_rows == 2
