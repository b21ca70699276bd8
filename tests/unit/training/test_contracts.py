"""Signal tables hold one value a row and refuse to be read where they have none."""

from typing import Any

import numpy as np
import pytest

from datamill.errors import DatamillError
from datamill.training.contracts import SignalTable


def test_values_are_read_by_id() -> None:
    table = SignalTable("loss", np.array([7, 2, 5]), np.array([0.7, 0.2, 0.5]))
    assert table.at(np.array([5, 7])).tolist() == [0.5, 0.7]
    assert table.sorted().ids.tolist() == [2, 5, 7]
    assert len(table) == 3


def test_rows_of_several_columns_are_read_whole() -> None:
    table = SignalTable("s", np.array([3, 1]), np.array([[3.0, 30], [1, 10]]))
    assert table.at(np.array([1, 3])).tolist() == [[1, 10], [3, 30]]


@pytest.mark.parametrize(
    ("ids", "values"),
    [([0, 1], [1.0]), ([0, 0], [1.0, 2.0]), ([-1, 0], [1.0, 2.0]), ([[0, 1]], [[1.0, 2.0]]), ([0], [[[1.0]]])],
)
def test_ill_formed_tables_are_refused(ids: Any, values: Any) -> None:
    with pytest.raises(DatamillError, match="DM-SIG-001"):
        SignalTable("loss", np.array(ids), np.array(values))


def test_missing_rows_are_counted_and_the_first_shown() -> None:
    table = SignalTable("loss", np.array([1]), np.array([0.5]))
    with pytest.raises(DatamillError, match=r"6 candidate rows have no value \(ids 10, 11, 12, 13, 14, \.\.\.\)"):
        table.at(np.array([1, 10, 11, 12, 13, 14, 15]))


def test_an_empty_table_has_no_rows() -> None:
    empty = SignalTable("loss", np.empty(0, np.int64), np.empty(0))
    assert empty.at(np.empty(0, np.int64)).tolist() == []
    with pytest.raises(DatamillError, match="DM-SIG-002"):
        empty.at(np.array([0]))


def test_a_row_with_one_bad_column_is_refused() -> None:
    table = SignalTable("s", np.array([0, 1]), np.array([[0.0, 1], [np.nan, 1]]))
    assert table.at(np.array([0])).tolist() == [[0, 1]]
    with pytest.raises(DatamillError, match="not finite"):
        table.at(np.array([0, 1]))


def test_tables_of_ranks_are_joined_in_order_of_id() -> None:
    parts = [
        SignalTable("loss", np.array([4, 0]), np.array([0.4, 0.0])),
        SignalTable("loss", np.array([2]), np.array([0.2])),
    ]
    whole = SignalTable.concat(parts)
    assert whole.ids.tolist() == [0, 2, 4]
    assert whole.values.tolist() == [0.0, 0.2, 0.4]
    with pytest.raises(DatamillError, match="repeat"):
        SignalTable.concat([parts[0], parts[0]])
