"""Outcomes from masks: what stays, what leaves and with which fate."""

import polars as pl
import pyarrow as pa
import pytest
from support.tables import books_balance, ids, table, texts

from datamill.errors import DatamillError
from datamill.operators.outcomes import (
    decisions,
    fates_of,
    keep_where,
    keep_within,
    text_column,
    then,
    with_column,
    without_nulls,
)
from datamill.services.records import FATE_SCHEMA, Fate


def test_a_false_mask_leaves_with_reason_value_and_threshold() -> None:
    rows = texts("a", "bb", "ccc")
    outcome = keep_where(rows, [True, False, True], reason="too_short", value=[1, 2, 3], threshold=5, detail="why")
    assert ids(outcome.rows) == [0, 2]
    (fate,) = outcome.fates.to_pylist()
    assert (fate["fate"], fate["reason"], fate["value"], fate["threshold"]) == ("dropped", "too_short", 2.0, 5.0)
    assert (fate["detail"], fate["src"], fate["id"]) == ("why", "test:2", rows["_id"][1].as_py())


def test_a_null_in_the_mask_keeps_the_row() -> None:
    outcome = keep_where(texts("a", "b", "c"), pl.Series([None, False, True]), reason="x")
    assert ids(outcome.rows) == [0, 2]


def test_fates_always_have_the_ledger_schema() -> None:
    rows = texts("a", "b")
    for mask in ([True, True], [False, False], [None, False]):
        assert keep_where(rows, mask, reason="x").fates.schema == FATE_SCHEMA
    assert fates_of(rows.slice(0, 0), [], reason="x").schema == FATE_SCHEMA


def test_keep_within_names_the_side_and_its_bound() -> None:
    rows = texts("a", "b", "c", "d")
    outcome = keep_within(rows, pl.Series([1, 5, 9, None]), 2, 8, reasons=("low", "high"))
    assert ids(outcome.rows) == [1, 3]
    assert [(f["reason"], f["value"], f["threshold"]) for f in outcome.fates.to_pylist()] == [
        ("low", 1.0, 2.0),
        ("high", 9.0, 8.0),
    ]


def test_bounds_are_inclusive_and_optional() -> None:
    rows = texts("a", "b", "c")
    values = pl.Series([1.0, 2.0, 3.0])
    assert ids(keep_within(rows, values, 2, None, reasons=("l", "h")).rows) == [1, 2]
    assert ids(keep_within(rows, values, None, 2, reasons=("l", "h")).rows) == [0, 1]


@pytest.mark.parametrize(("policy", "left"), [("drop", [0, 2]), ("keep", [0, 1, 2])])
def test_null_policies(policy: str, left: list[int]) -> None:
    rows = texts("a", None, "c")
    outcome = without_nulls(rows, ["text"], policy)  # type: ignore[arg-type]  # parametrised literal
    assert ids(outcome.rows) == left
    assert books_balance(rows, outcome)


def test_null_error_names_the_place() -> None:
    with pytest.raises(DatamillError, match="test:2") as caught:
        without_nulls(texts("a", None), ["text"], "error")
    assert caught.value.code == "DM-OPA-001"


def test_the_first_null_column_gives_the_reason() -> None:
    rows = table({"a": pa.string(), "b": pa.string()}, a=["x", None, None], b=[None, "x", None])
    outcome = without_nulls(rows, ["a", "b"], "drop")
    assert sorted(f["reason"] for f in outcome.fates.to_pylist()) == ["null_a", "null_a", "null_b"]
    assert outcome.rows.num_rows == 0


def test_then_keeps_the_fates_of_both() -> None:
    rows = texts("a", "b", "c")
    first = keep_where(rows, [False, True, True], reason="one")
    both = then(first, lambda left: keep_where(left, [False, True], reason="two"))
    assert [f["reason"] for f in both.fates.to_pylist()] == ["one", "two"]
    assert books_balance(rows, both)


def test_with_column_replaces_in_place_and_states_its_type() -> None:
    rows = texts("a", "b")
    assert with_column(rows, "text", [1, 2], pa.int64()).column_names == rows.column_names
    empty = with_column(rows.slice(0, 0), "n", [], pa.int64())
    assert empty.schema.field("n").type == pa.int64()
    assert with_column(rows, "n", None, pa.float64())["n"].null_count == 2


def test_an_untyped_null_column_is_text() -> None:
    rows = table(text=[None, None])
    assert text_column(rows, "text").dtype == pl.String


def test_decisions_without_a_fate_keep_every_row() -> None:
    rows = texts("a", "b")
    made = decisions(rows["_id"])
    assert made["fate"].null_count == 2
    assert made.column_names == ["_id", "fate", "reason", "value", "threshold", "into", "detail"]


def test_notes_do_not_count_as_leaving() -> None:
    rows = texts("a", "b")
    note = fates_of(rows, [True, False], reason="seen", fate=Fate.NOTED)
    assert note.to_pylist()[0]["fate"] == "noted"
