"""Case 11: rows with different sets of keys."""

from pathlib import Path

import pytest
from support.reading import data_rows

from datamill.services.reading.source import SourceSpec
from datamill.services.reading.whole import SourceTable, read_whole

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "11-ragged-keys"
pytestmark = pytest.mark.skipif(not CASE.is_dir(), reason="needs ../shared")


def read(name: str, **options: object) -> SourceTable:
    return read_whole(SourceSpec("in", name, CASE, **options))  # type: ignore[arg-type]


def test_union_of_keys_with_nulls_in_order() -> None:
    table = read("in.jsonl")
    assert table.rows.column_names[3:] == ["id", "text", "source", "score"]
    rows = data_rows(table)
    assert [row["id"] for row in rows] == [1, 2, 3, 4]
    assert {name: sum(row[name] is None for row in rows) for name in rows[0]} == {
        "id": 0, "text": 1, "source": 2, "score": 3,
    }  # fmt: skip


def test_the_missing_text_is_reported() -> None:
    (issue,) = [i for i in read("in.jsonl").findings if i.code == "DM-READ-104" and i.field == "text"]
    assert issue.message == "column `text` has no value in 1 of 4 rows"
