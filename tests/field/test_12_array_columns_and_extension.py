"""Case 12: one table as array, columns, wrapped array, and JSON inside .txt."""

from pathlib import Path

import pytest
from support.reading import codes, data_rows

from datamill.services.reading.source import SourceSpec
from datamill.services.reading.whole import SourceTable, read_whole

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "12-array-columns-and-extension"
pytestmark = pytest.mark.skipif(not CASE.is_dir(), reason="needs ../shared")


def read(name: str, **options: object) -> SourceTable:
    return read_whole(SourceSpec("in", name, CASE, **options))  # type: ignore[arg-type]


ROWS = [{"q": "1+1", "a": "2"}, {"q": "2+2", "a": "4"}]


@pytest.mark.parametrize("name", ["array.json", "columns.json", "wrapped.json"])
def test_every_shape_gives_two_rows(name: str) -> None:
    assert data_rows(read(name)) == ROWS


def test_the_shape_that_was_understood_is_said() -> None:
    assert codes(read("array.json")) == []
    assert "`data`" in read("wrapped.json").findings[0].message
    assert "2 columns" in read("columns.json").findings[0].message


def test_json_in_a_text_file_is_a_warning_and_readable_when_declared() -> None:
    table = read("data.txt")
    assert codes(table) == ["DM-READ-105"]
    assert table.rows.num_rows > 1
    assert data_rows(read("data.txt", format="json")) == ROWS
