"""Case 09: a column of numbers and text, and one of text and lists."""

import json
from pathlib import Path

import pytest
from support.reading import data_rows

from datamill.services.reading.source import SourceSpec
from datamill.services.reading.whole import SourceTable, read_whole

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "09-mixed-type-column"
pytestmark = pytest.mark.skipif(not CASE.is_dir(), reason="needs ../shared")


def read(name: str, **options: object) -> SourceTable:
    return read_whole(SourceSpec("in", name, CASE, **options))  # type: ignore[arg-type]


def test_by_default_nothing_is_lost_and_the_mixture_is_named() -> None:
    table = read("in.jsonl")
    assert [row["para"] for row in data_rows(table)] == ["1", "2", "3", "1a", "7"]
    (issue,) = [i for i in table.findings if i.code == "DM-READ-103" and i.field == "para"]
    assert "integer first at in.jsonl:1" in issue.message
    assert "string first at in.jsonl:4" in issue.message
    assert issue.fix is not None
    assert "cast" in issue.fix


def test_a_list_of_one_stays_a_list() -> None:
    tags = [row["tags"] for row in data_rows(read("in.jsonl"))]
    assert [None if tag is None else json.loads(tag) for tag in tags] == ["x", ["y"], "z", [], None]


def test_with_a_cast_every_value_is_as_written() -> None:
    table = read("in.jsonl", cast={"para": "string"})
    assert [row["para"] for row in data_rows(table)] == ["1", "2", "3", "1a", "7"]
    assert not [i for i in table.findings if i.code == "DM-READ-103" and i.field == "para"]
