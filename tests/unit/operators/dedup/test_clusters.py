"""From pairs to decisions: representatives, witnesses, ranks, and joining decisions to rows."""

import itertools
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from datamill.errors import DatamillError
from datamill.operators.dedup.clusters import (
    best_column,
    cluster_decisions,
    decision_schema,
    no_decisions,
    rank_values,
    with_decisions,
)


def members(*ranks: float | None, orders: list[int] | None = None) -> pa.Table:
    count = len(ranks)
    return pa.table(
        {
            "row": pa.array([100 + i for i in range(count)], pa.uint64()),
            "_id": [f"r{i}" for i in range(count)],
            "_ord": pa.array(orders or list(range(count)), pa.int64()),
            "rank": pa.array(ranks, pa.float64()),
        }
    )


def edges(*pairs: tuple[int, int, float | None]) -> pl.DataFrame:
    schema = {"left": pl.UInt64, "right": pl.UInt64, "value": pl.Float64}
    return pl.DataFrame([(100 + a, 100 + b, value) for a, b, value in pairs], schema=schema, orient="row")


def decided(table: pa.Table, pairs: pl.DataFrame, action: str = "keep_one") -> dict[str, dict[str, Any]]:
    found = cluster_decisions(table, pairs, threshold=0.8, action=action)
    assert found.schema.equals(decision_schema())
    return {row["_id"]: row for row in found.to_pylist()}


def test_components_have_one_survivor_each() -> None:
    found = decided(members(*[None] * 5), edges((0, 3, 0.9), (3, 4, 0.85), (1, 2, 1.0)))
    assert {name: row["into"] for name, row in found.items()} == {
        "r0": None, "r1": None, "r2": "r1", "r3": "r0", "r4": "r0",
    }  # fmt: skip
    assert [row["cluster_size"] for row in found.values()] == [3, 2, 2, 3, 3]


@pytest.mark.parametrize(
    ("ranks", "orders", "survivor"),
    [
        ((None, None, None), [2, 1, 0], "r2"),
        ((1.0, 3.0, 2.0), [0, 1, 2], "r1"),
        ((3.0, 3.0, None), [1, 0, 2], "r1"),
        ((None, -5.0, None), [0, 1, 2], "r1"),
        ((0.0, 0.0, 0.0), [7, 7, 7], "r0"),
    ],
)
def test_representative_by_rank_then_order_then_id(ranks: Any, orders: list[int], survivor: str) -> None:
    found = decided(members(*ranks, orders=orders), edges((0, 1, 0.9), (1, 2, 0.9)))
    assert [name for name, row in found.items() if row["fate"] is None] == [survivor]


def test_order_of_members_and_pairs_does_not_matter() -> None:
    table, pairs = members(1.0, 2.0, 2.0, None), edges((0, 1, 0.8), (1, 2, 0.9), (0, 2, 0.85), (2, 3, 0.99))
    expected = decided(table, pairs)
    for order in itertools.islice(itertools.permutations(range(4)), 0, 24, 5):
        assert decided(table.take(pa.array(order)), pairs[list(order)]) == expected


def test_witness_is_the_representative_where_compared_else_the_strongest() -> None:
    found = decided(members(*[None] * 4), edges((0, 1, 0.81), (1, 2, 0.95), (0, 3, 0.82), (2, 3, 0.99)))
    assert [(row["value"], row["detail"]) for row in found.values()] == [
        (None, None), (0.81, None), (0.99, "through r3"), (0.82, None),
    ]  # fmt: skip


def test_unverified_pairs_have_no_value() -> None:
    found = decided(members(None, None, None), edges((0, 1, None), (1, 2, 1.0)))
    assert [(row["value"], row["detail"]) for row in found.values()] == [
        (None, None),
        (None, None),
        (1.0, "through r1"),
    ]


def test_drop_all_keeps_nobody_and_names_the_cluster() -> None:
    found = decided(members(None, None), edges((0, 1, 0.9)), "drop_all")
    assert [(row["fate"], row["into"], row["detail"]) for row in found.values()] == [
        ("dropped", None, "cluster r0")
    ] * 2


def test_two_members_with_one_row_hash_are_refused() -> None:
    table = pa.concat_tables([members(None, None), members(None)])
    with pytest.raises(DatamillError, match="DM-DEDUP-005"):
        cluster_decisions(table, edges((0, 1, 0.9)), threshold=0.8, action="keep_one")


def test_rows_without_a_decision_stand_alone() -> None:
    found = with_decisions(pl.DataFrame({"_id": ["b", "a"]}), no_decisions()).to_pylist()
    assert [(row["_id"], row["fate"], row["cluster_id"], row["cluster_size"]) for row in found] == [
        ("b", None, "b", 1), ("a", None, "a", 1),
    ]  # fmt: skip


def test_decisions_join_in_the_order_of_the_rows_and_win_over_remarks() -> None:
    decisions = cluster_decisions(members(None, None), edges((0, 1, 0.9)), threshold=0.8, action="keep_one")
    rows = pl.DataFrame({"_id": ["x", "r1", "r0"], "fate": ["noted", None, None], "reason": ["empty_text", None, None]})
    found = with_decisions(rows, decisions)
    assert found.schema.equals(decision_schema())
    assert found["fate"].to_pylist() == ["noted", "merged", None]
    assert found["reason"].to_pylist() == ["empty_text", "near_duplicate", None]
    assert found["cluster_id"].to_pylist() == ["x", "r0", "r0"]


def test_without_cluster_columns() -> None:
    found = with_decisions(pl.DataFrame({"_id": ["a"]}), no_decisions(clusters=False), clusters=False)
    assert found.schema.equals(decision_schema(clusters=False))
    assert "cluster_id" not in found.column_names


def test_ranks() -> None:
    table = pa.table({"t": ["ab", None, "是是是"], "u": ["c", "dd", ""], "n": pa.array([1, None, 3])})
    assert rank_values(table, "first", ("t",)).to_pylist() == [None] * 3
    assert rank_values(table, "longest", ("t",)).to_pylist() == [2, 0, 3]
    assert rank_values(table, "longest", ("t", "u")).to_pylist() == [3, 2, 3]
    assert rank_values(table, "best:n", ("t",)).to_pylist() == [1, None, 3]
    assert [best_column(keep) for keep in ("first", "longest", "best:a:b")] == [None, None, "a:b"]
