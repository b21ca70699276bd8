"""Case 27: a poem as lines, paragraphs and whole."""

from pathlib import Path

import pytest
from support.reading import data_rows

from datamill.services.reading.source import SourceSpec
from datamill.services.reading.whole import SourceTable, read_whole

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "27-newlines-in-plain-text"
pytestmark = pytest.mark.skipif(not CASE.is_dir(), reason="needs ../shared")


def read(name: str, **options: object) -> SourceTable:
    return read_whole(SourceSpec("in", name, CASE, **options))  # type: ignore[arg-type]


def texts(unit: str) -> list[str]:
    return [row["text"] for row in data_rows(read("poem.txt", unit=unit))]


def test_whole_file_keeps_its_breaks() -> None:
    (text,) = texts("whole")
    assert text + "\n" == (CASE / "poem.txt").read_text()
    assert text.count("\n") == 6  # the one at the end is trimmed


def test_paragraphs_of_three_lines() -> None:
    assert [text.count("\n") for text in texts("paragraph")] == [2, 2]


def test_lines_without_the_blank_one() -> None:
    assert len(texts("line")) == 6
    assert all(texts("line"))
