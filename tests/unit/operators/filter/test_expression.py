"""filter.expr: true stays, false and null leave with their own reasons, types are checked against the plan."""

import pytest
from pydantic import ValidationError
from support.tables import apply, books_balance, ids, reasons, table

from datamill.errors import DatamillError
from datamill.operators.declaration import ColumnType
from datamill.operators.filter.expression import ExprParams
from datamill.operators.registry import find

ROWS = table(n=[1, 5, None, 9], lang=["en", "zh", "en", None])


def test_true_false_and_null() -> None:
    outcome = apply("filter.expr", ROWS, expr="n >= 5")
    assert ids(outcome.rows) == [1, 3]
    assert reasons(outcome) == {0: "condition_false", 2: "null_condition"}
    assert {fate["detail"] for fate in outcome.fates.to_pylist()} == {"n >= 5"}
    assert books_balance(ROWS, outcome)


def test_null_may_stay_or_stop() -> None:
    assert ids(apply("filter.expr", ROWS, expr="n >= 5", on_null="keep").rows) == [1, 2, 3]
    with pytest.raises(DatamillError, match="DM-OPA-001"):
        apply("filter.expr", ROWS, expr="n >= 5", on_null="error")
    assert ids(apply("filter.expr", ROWS, expr="n is not null and lang is not null", on_null="error").rows) == [0, 1]


def test_constants() -> None:
    assert ids(apply("filter.expr", ROWS, expr="true").rows) == [0, 1, 2, 3]
    assert ids(apply("filter.expr", ROWS, expr="1 > 2").rows) == []
    assert set(reasons(apply("filter.expr", ROWS, expr="null")).values()) == {"null_condition"}


def test_an_empty_partition() -> None:
    outcome = apply("filter.expr", ROWS.slice(0, 0), expr="n >= 5")
    assert outcome.rows.schema == ROWS.schema
    assert outcome.fates.num_rows == 0


def test_types_are_checked_against_the_plan() -> None:
    operator = find("filter.expr")
    schema = {"n": ColumnType("int64"), "lang": ColumnType("string"), "mixed": ColumnType("json")}
    assert operator.writes(ExprParams(expr="n > 1"), schema) == schema
    for expr, code in [("n > 'a'", "DM-OPA-013"), ("n + 1", "DM-OPA-013"), ("mixed == 'a'", "DM-OPA-013")]:
        with pytest.raises(DatamillError) as caught:
            operator.writes(ExprParams(expr=expr), schema)
        assert caught.value.code == code
    assert [need.column for need in operator.reads(ExprParams(expr="n > 1 and lang == 'en'"))] == ["n", "lang"]


@pytest.mark.parametrize("expr", ["", "n >", "n = 1", "__import__('os').system('ls')", "n.x > 1", "[x for x in n]"])
def test_syntax_errors_are_parameter_errors(expr: str) -> None:
    with pytest.raises(ValidationError):
        ExprParams(expr=expr)
