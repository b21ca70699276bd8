"""Case 16: cSV with quotes, line breaks, leading zeros and the word NA."""

from pathlib import Path

import pytest
from support.reading import data_rows

from datamill.services.reading.source import SourceSpec
from datamill.services.reading.whole import SourceTable, read_whole

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "16-csv-quotes-newlines-commas"
pytestmark = pytest.mark.skipif(not CASE.is_dir(), reason="needs ../shared")


def read(name: str, **options: object) -> SourceTable:
    return read_whole(SourceSpec("in", name, CASE, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize("cast", [{}, {"id": "string"}])
def test_fields_are_what_is_written(cast: dict[str, str]) -> None:
    rows = data_rows(read("in.csv", cast=cast))
    assert rows == [
        {"id": "007", "text": "first line,\nsecond line"},
        {"id": "008", "text": 'She said "no"'},
        {"id": "009", "text": "NA"},
    ]
