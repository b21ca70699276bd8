"""Case 05: windows line ends, blank lines, no newline at the end."""

from pathlib import Path

import pytest
from support.reading import data_rows

from datamill.services.reading.source import SourceSpec
from datamill.services.reading.whole import SourceTable, read_whole

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "05-crlf-blank-lines-no-final-newline"
pytestmark = pytest.mark.skipif(not CASE.is_dir(), reason="needs ../shared")


def read(name: str, **options: object) -> SourceTable:
    return read_whole(SourceSpec("in", name, CASE, **options))  # type: ignore[arg-type]


def test_four_rows() -> None:
    table = read("in.jsonl")
    assert [row["id"] for row in data_rows(table)] == [1, 2, 3, 4]
    assert data_rows(table)[2]["text"] == "line\r\nbreak"
    assert table.num_blank == 2
    assert table.num_bad == 0
    assert table.rows["_src"].to_pylist() == ["in.jsonl:1", "in.jsonl:4", "in.jsonl:5", "in.jsonl:6"]
