"""Case 01: a byte order mark at the start of JSONL, CSV and TXT files."""

from pathlib import Path

import pytest
from support.reading import data_rows

from datamill.services.reading.source import SourceSpec
from datamill.services.reading.whole import SourceTable, read_whole

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "01-bom-jsonl"
pytestmark = pytest.mark.skipif(not CASE.is_dir(), reason="needs ../shared")


def read(name: str, **options: object) -> SourceTable:
    return read_whole(SourceSpec("in", name, CASE, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["in.jsonl", "in.csv"])
def test_three_rows_with_clean_names(name: str) -> None:
    table = read(name)
    assert table.rows.column_names[3:] == ["id", "text"]
    texts = [row["text"] for row in data_rows(table)]
    assert texts == ["river level rising", "bridge closed", "bridge open again"]
    assert not any(str(value).startswith("\ufeff") for row in data_rows(table) for value in row.values())


def test_the_mark_is_no_text_either(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes((CASE / "in.csv").read_bytes())
    (tmp_path / "a.json").write_bytes(b'\xef\xbb\xbf[{"id": 1}]')
    assert data_rows(read_whole(SourceSpec("in", "a.txt", tmp_path)))[0] == {"text": "id,text"}
    assert data_rows(read_whole(SourceSpec("in", "a.json", tmp_path))) == [{"id": 1}]
