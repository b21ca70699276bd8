"""dedup.exact: normalisation, several columns, types, keep rules, nulls."""

from typing import Any

import pyarrow as pa
import pytest

from datamill.errors import DatamillError
from datamill.operators.declaration import Context
from datamill.operators.dedup.exact import ExactParams, normalised, run
from datamill.operators.registry import find

OPERATOR = find("dedup.exact")


def kept(decisions: dict[str, dict[str, Any]]) -> list[str]:
    return [name for name, row in decisions.items() if row["fate"] is None]


def test_later_copies_are_merged_into_the_first(decide: Any) -> None:
    found = decide("dedup.exact", ["a b", "c", "a b", "a  b\n"])
    assert kept(found) == ["r0", "r1"]
    assert {k: v for k, v in found["r3"].items() if k != "_id"} == {
        "fate": "merged", "reason": "exact_duplicate", "value": 1.0, "threshold": 1.0, "into": "r0", "detail": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("left", "right", "options", "equal"),
    [
        ("a  b", " a b ", {}, True),
        ("a  b", "a b", {"normalise": False}, False),
        ("a\u3000b", "a b", {}, True),
        ("caf\u00e9", "cafe\u0301", {}, True),
        ("caf\u00e9", "cafe\u0301", {"normalise": False}, False),
        ("A", "a", {}, False),
        ("A", "a", {"casefold": True}, True),
        ("Straße", "STRASSE", {"casefold": True}, True),
        ("", "  ", {}, True),
        ("", "", {"normalise": False}, True),
        ("ab", "a b", {}, False),
        ("\ufb01", "fi", {}, False),
    ],
)
def test_what_counts_as_equal(decide: Any, left: str, right: str, options: dict[str, Any], equal: bool) -> None:
    assert (kept(decide("dedup.exact", [left, right], **options)) == ["r0"]) == equal


def test_all_columns_must_agree_and_lengths_count(decide: Any, make: Any) -> None:
    data = make(["a", "ab", "a", "a"], other=pa.array(["bc", "c", "bc", "x"]))
    assert kept(decide("dedup.exact", data, columns=["text", "other"])) == ["r0", "r1", "r3"]
    assert kept(decide("dedup.exact", data, columns="text")) == ["r0", "r1"]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, 2, 1, 3]),
        pa.array([1.5, 2.0, 1.5, float("nan")]),
        pa.array([[1, 2], [3], [1, 2], []]),
        pa.array([{"role": "user"}, {"role": "tool"}, {"role": "user"}, {"role": None}]),
        pa.array(["x", "y", "x", "z"], pa.large_string()),
        pa.array(["x", "y", "x", "z"]).dictionary_encode(),
    ],
)
def test_columns_of_any_type(decide: Any, make: Any, column: pa.Array) -> None:
    assert kept(decide("dedup.exact", make(["t"] * 4, key=column), columns=["key"])) == ["r0", "r1", "r3"]


@pytest.mark.parametrize(("keep", "survivor"), [("first", "r0"), ("longest", "r1"), ("best:score", "r2")])
def test_keep_rules(decide: Any, make: Any, keep: str, survivor: str) -> None:
    data = make(["a b", "a   b", "a b"], score=pa.array([0.1, None, 0.2]))
    assert kept(decide("dedup.exact", data, keep=keep)) == [survivor]


def test_null_policies(decide: Any, make: Any) -> None:
    data = make([None, "a", None, "a"], key=pa.array(["k", "k", None, "k"]))
    assert kept(decide("dedup.exact", data, columns=["text", "key"])) == ["r0", "r1", "r2"]
    dropped = decide("dedup.exact", data, columns=["key", "text"], on_null="drop")
    assert kept(dropped) == ["r1"]
    assert [dropped[name]["reason"] for name in ("r0", "r2", "r3")] == ["null_text", "null_key", "exact_duplicate"]
    with pytest.raises(DatamillError, match=r"DM-DEDUP-007.*`text`"):
        decide("dedup.exact", data, columns=["text"], on_null="error")


@pytest.mark.parametrize("partitions", [1, 2, 7, 50])
def test_partitions_change_nothing(decide: Any, make: Any, partitions: int) -> None:
    texts = [f"t{i % 13}" for i in range(60)]
    found = decide("dedup.exact", make(texts, partitions))
    assert kept(found) == [f"r{i}" for i in range(13)]
    assert found == decide("dedup.exact", make(texts))
    assert decide("dedup.exact", make([], partitions)) == {}


def test_schema_does_not_depend_on_the_data(make: Any) -> None:
    schemas = [run([make(t, 2)], ExactParams(), Context("s")).schema for t in ([], ["a"], ["a", "a"], [None])]
    assert all(schema.equals(schemas[0]) for schema in schemas)


def test_identifier_order_breaks_ties_of_position(decide: Any, make: Any) -> None:
    table = make(["same", "same"]).collect().set_column(1, "_ord", pa.array([5, 5], pa.int64()))
    swapped = table.take(pa.array([1, 0]))
    for rows in (table, swapped):
        data = type(make([])).of(rows)
        assert kept(decide("dedup.exact", data)) == ["r0"]


def test_normalised_is_idempotent() -> None:
    for text in (" a\u2003b ", "İstanbul", "ǰ", "\u0345\u0301", "ᾳ", "ﬁ  x"):
        for casefold in (False, True):
            once = normalised(text, casefold=casefold)
            assert normalised(once, casefold=casefold) == once


def test_declaration_and_findings() -> None:
    assert OPERATOR.check(ExactParams()) == ()
    assert OPERATOR.check(ExactParams(normalise=False, casefold=True))[0][:2] == ("error", "casefold")
    needs = OPERATOR.reads(ExactParams(columns=("a", "b"), keep="best:score", on_null="error"))
    assert [need.column for need in needs] == ["a", "b", "score"]
    assert not needs[0].nullable
    assert dict(OPERATOR.writes(ExactParams(), {})) == {}
