"""Case 13: jSON lines that are no objects."""

from pathlib import Path

import pytest
from support.reading import data_rows, refused

from datamill.services.reading.source import SourceSpec
from datamill.services.reading.whole import SourceTable, read_whole

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "13-json-lines-that-are-not-objects"
pytestmark = pytest.mark.skipif(not CASE.is_dir(), reason="needs ../shared")


def read(name: str, **options: object) -> SourceTable:
    return read_whole(SourceSpec("in", name, CASE, **options))  # type: ignore[arg-type]


def test_objects_stay_and_the_rest_is_reported_with_line_numbers() -> None:
    table = read("in.jsonl", max_bad=1.0)
    assert data_rows(table) == [{"text": "first"}, {"text": "second"}]
    assert [(reason, src) for reason, src, _ in refused(table)] == [
        ("not_an_object", f"in.jsonl:{line}") for line in (2, 3, 4, 5)
    ]


def test_with_the_default_limit_the_run_stops() -> None:
    from datamill.errors import DatamillError

    with pytest.raises(DatamillError, match="4 of 6") as caught:
        read("in.jsonl")
    assert caught.value.exit_code == 1
