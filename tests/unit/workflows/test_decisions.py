"""Applying the decisions of global operators to rows."""

from support.tables import decide, table

from datamill.operators.declaration import ColumnType
from datamill.workflows.decisions import added_columns, apply_decisions

TEXT = ColumnType("string")


def test_a_column_that_is_there_already_is_written_anew() -> None:
    rows = table(split=["old"] * 10)
    decisions = decide("split", rows, ratios=[0.5, 0.5])
    added = added_columns(decisions, {"split": TEXT}, {"split": TEXT})
    assert added == ("split",)
    assert set(apply_decisions(rows, decisions, added).rows["split"].to_pylist()) == {"train", "val"}


def test_a_column_called_like_a_field_of_fates_stays_as_it_is() -> None:
    rows = table(reason=["mine"] * 4)
    decisions = decide("sample.random", rows, n=2)
    assert added_columns(decisions, {"reason": TEXT}, {"reason": TEXT}) == ()
    outcome = apply_decisions(rows, decisions, ())
    assert outcome.rows["reason"].to_pylist() == ["mine", "mine"]
    assert outcome.fates["reason"].to_pylist() == ["not_sampled", "not_sampled"]


def test_a_remark_does_not_take_the_row_away() -> None:
    rows = table(v=[1, 2, 3])
    outcome = apply_decisions(rows, decide("sample.random", rows, n=9), ())
    assert outcome.rows.num_rows == 3
    assert outcome.fates["fate"].to_pylist() == ["noted"]
