"""Case 03: gzip under a plain name, and the reverse."""

from pathlib import Path

import pytest
from support.reading import codes, data_rows

from datamill.services.reading.source import SourceSpec
from datamill.services.reading.whole import SourceTable, read_whole

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "03-gzip-with-plain-name"
pytestmark = pytest.mark.skipif(not CASE.is_dir(), reason="needs ../shared")


def read(name: str, **options: object) -> SourceTable:
    return read_whole(SourceSpec("in", name, CASE, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["really_gzip.jsonl", "really_plain.jsonl.gz"])
@pytest.mark.parametrize("format_name", [None, "jsonl"])
def test_content_decides_and_the_name_is_reported(name: str, format_name: str | None) -> None:
    table = read(name, format=format_name)
    assert data_rows(table) == [{"text": "a"}, {"text": "b"}]
    assert codes(table) == ["DM-READ-101"]
    assert table.findings[0].severity == "warning"
    assert table.findings[0].file == name
