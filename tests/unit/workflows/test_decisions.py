"""Applying the decisions of global operators to rows."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.tables import decide, table

from datamill.operators.declaration import ColumnType
from datamill.workflows import decisions as decisions_module
from datamill.workflows.decisions import DecisionIndex, added_columns, apply_decisions

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


@given(st.lists(st.integers(0, 30), max_size=40), st.lists(st.integers(0, 60), max_size=20, unique=True))
@settings(max_examples=60, deadline=None)
def test_an_index_gives_the_decisions_about_some_rows(decided: list[int], asked: list[int]) -> None:
    decisions = pa.table({"_id": pa.array([f"r{i}" for i in decided], pa.string()), "n": pa.array(decided, pa.int64())})
    ids = pa.chunked_array([pa.array([f"r{i}" for i in asked], pa.string())])
    found = DecisionIndex(decisions).about(ids)
    assert found["n"].to_pylist() == [i for i in decided if i in set(asked)]
    assert found.schema == decisions.schema


def test_ids_of_one_hash_are_all_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """The join that follows tells them apart."""
    monkeypatch.setattr(decisions_module, "_id_hashes", lambda ids: np.zeros(len(ids), np.uint64))
    decisions = pa.table({"_id": ["a", "b", "c"]})
    assert DecisionIndex(decisions).about(pa.chunked_array([["b"]])).num_rows == 3
    rows = table(text=["x", "y"])
    fated = pa.table({"_id": rows["_id"], "fate": ["dropped", None], "reason": ["r", None]})
    outcome = apply_decisions(rows.slice(1), DecisionIndex(fated).about(rows["_id"].slice(1)), ())
    assert (outcome.rows.num_rows, outcome.fates.num_rows) == (1, 0)
