"""columns.map, rename, cast and select."""

from typing import Any

import pyarrow as pa
import pytest
from pydantic import ValidationError
from support.tables import apply, books_balance, ids, reasons, table

from datamill.errors import DatamillError
from datamill.operators.columns.cast import CastParams
from datamill.operators.columns.map import MapParams
from datamill.operators.columns.rename import RenameParams
from datamill.operators.columns.select import SelectParams
from datamill.operators.declaration import ColumnType, Schema
from datamill.operators.registry import find

SCHEMA: Schema = {"q": ColumnType("string", semantic="text"), "n": ColumnType("int64", semantic="number")}
ROWS = table({"q": pa.string(), "n": pa.int64()}, q=["a", None, "c"], n=[1, 2, None])


def schema_after(operator_id: str, **params: Any) -> Schema:
    operator = find(operator_id)
    return operator.writes(operator.params.model_validate(params), SCHEMA)


def test_select_keeps_system_columns_and_the_order_asked_for() -> None:
    assert apply("columns.select", ROWS, columns=["n", "q"]).rows.column_names == ["_id", "_ord", "_src", "n", "q"]
    assert apply("columns.select", ROWS, drop="q").rows.column_names == ["_id", "_ord", "_src", "n"]
    assert list(schema_after("columns.select", columns="n")) == ["n"]


def test_select_cannot_drop_system_columns() -> None:
    assert "_id" in apply("columns.select", ROWS, drop=["_id"]).rows.column_names


@pytest.mark.parametrize("params", [{}, {"columns": ["a"], "drop": ["b"]}, {"columns": []}])
def test_select_wants_exactly_one_list(params: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SelectParams.model_validate(params)


def test_rename_can_swap() -> None:
    swapped = apply("columns.rename", ROWS, mapping={"q": "n", "n": "q"}).rows
    assert swapped["n"].to_pylist() == ["a", None, "c"]
    assert {
        name: kind.dtype for name, kind in schema_after("columns.rename", mapping={"q": "n", "n": "q"}).items()
    } == {
        "n": "string",
        "q": "int64",
    }


def test_rename_onto_another_column_is_an_error_before_the_run() -> None:
    with pytest.raises(DatamillError) as caught:
        schema_after("columns.rename", mapping={"q": "n"})
    assert caught.value.code == "DM-OPA-020"


@pytest.mark.parametrize("mapping", [{}, {"a": "x", "b": "x"}, {"_id": "x"}, {"a": "_ord"}, {"a": ""}])
def test_rename_refuses_bad_names(mapping: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        RenameParams(mapping=mapping)


@pytest.mark.parametrize(
    ("values", "name", "cast"),
    [
        (["007", " 5 ", "-3"], "int", [7, 5, -3]),
        (["1.5", "1e3", "nan"], "float", [1.5, 1000.0, "failed"]),
        (["7 kg", "", "1.0"], "int", ["failed", "failed", 1]),
        (["yes", "TRUE", "0"], "bool", [True, True, False]),
        (["maybe", "2", None], "bool", ["failed", "failed", None]),
        ([1.0, 2.5, None], "int", [1, "failed", None]),
        ([1, 0, 5], "bool", [True, False, "failed"]),
        ([1, 2, None], "string", ["1", "2", None]),
        ([True, False, None], "int", [1, 0, None]),
        ([2**62, 1, None], "float", [float(2**62), 1.0, None]),
        (["9223372036854775807", "9223372036854775808", "x"], "int", [2**63 - 1, "failed", "failed"]),
    ],
)
def test_cast_converts_exactly_or_quarantines(values: list[Any], name: str, cast: list[Any]) -> None:
    rows = table(v=values)
    outcome = apply("columns.cast", rows, types={"v": name})
    failed = [index for index, value in enumerate(cast) if value == "failed"]
    assert outcome.rows["v"].to_pylist() == [value for value in cast if value != "failed"]
    assert reasons(outcome) == dict.fromkeys(failed, "cast_failed")
    assert {fate["fate"] for fate in outcome.fates.to_pylist()} <= {"quarantined"}
    assert books_balance(rows, outcome)


def test_cast_can_give_null_instead_and_says_so_in_the_schema() -> None:
    outcome = apply("columns.cast", table(v=["1", "x"]), types={"v": "int"}, on_fail="null")
    assert outcome.rows["v"].to_pylist() == [1, None]
    params = CastParams(types={"v": "int"}, on_fail="null")
    assert find("columns.cast").writes(params, {"v": ColumnType("string", nullable=False)})["v"].nullable


def test_cast_shows_the_value_it_refused() -> None:
    (fate,) = apply("columns.cast", table(v=["7 kg"]), types={"v": "int"}).fates.to_pylist()
    assert fate["detail"] == "v = 7 kg, not a int64"


def test_map_from_an_expression_has_the_type_of_the_plan() -> None:
    outcome = apply("columns.map", ROWS, column="m", expr="n * 2")
    assert outcome.rows["m"].to_pylist() == [2, 4, None]
    assert outcome.rows.schema.field("m").type == pa.int64()
    assert schema_after("columns.map", column="m", expr="n * 2")["m"] == ColumnType("int64", True, "number")


def test_map_from_a_template() -> None:
    outcome = apply("columns.map", ROWS, column="p", template="{{Q}}: {q} ({n})")
    assert outcome.rows["p"].to_pylist() == ["{Q}: a (1)", None, None]


@pytest.mark.parametrize("policy", ["drop", "keep"])
def test_map_null_policy(policy: str) -> None:
    outcome = apply("columns.map", ROWS, column="p", template="{q}", on_null=policy)
    assert ids(outcome.rows) == ([0, 2] if policy == "drop" else [0, 1, 2])
    assert reasons(outcome) == ({1: "null_p"} if policy == "drop" else {})


@pytest.mark.parametrize(
    "params",
    [
        {"column": "p"},
        {"column": "p", "expr": "n", "template": "{n}"},
        {"column": "_id", "expr": "n"},
        {"column": "p", "template": "{q.__class__}"},
        {"column": "p", "template": "{q[0]}"},
        {"column": "p", "template": "{q!r}"},
        {"column": "p", "template": "{q:>9}"},
        {"column": "p", "template": "{}"},
        {"column": "p", "template": "{q"},
        {"column": "p", "expr": "n +"},
    ],
)
def test_map_refuses_bad_parameters(params: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        MapParams.model_validate(params)


def test_map_type_errors_come_from_the_schema() -> None:
    with pytest.raises(DatamillError, match="DM-OPA-013"):
        schema_after("columns.map", column="m", expr="q * 2")
    with pytest.raises(DatamillError, match="DM-OPA-013"):
        schema_after("columns.map", column="m", expr="null")


def test_map_reads_what_it_names() -> None:
    operator = find("columns.map")
    params = operator.params.model_validate({"column": "p", "template": "{q} {n} {q}"})
    assert [need.column for need in operator.reads(params)] == ["q", "n"]
