"""Case 17: empty shards among good ones."""

from pathlib import Path

import pytest
from support.reading import data_rows

from datamill.services.reading.source import SourceSpec
from datamill.services.reading.whole import SourceTable, read_whole

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "17-empty-shards"
pytestmark = pytest.mark.skipif(not CASE.is_dir(), reason="needs ../shared")


def read(name: str, **options: object) -> SourceTable:
    return read_whole(SourceSpec("in", name, CASE, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize("format_name", [None, "jsonl"])
def test_three_rows_and_three_empty_shards(format_name: str | None) -> None:
    table = read("shards", format=format_name)
    assert data_rows(table) == [{"text": "1"}, {"text": "2"}, {"text": "3"}]
    empty = [issue.file for issue in table.findings if issue.code == "DM-READ-102"]
    assert empty == ["shards/b.jsonl", "shards/c.jsonl", "shards/d.json"]
    assert table.num_bad == 0
