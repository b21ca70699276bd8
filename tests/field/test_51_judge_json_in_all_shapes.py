"""Case 51: the shapes in which a judge model writes its JSON."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field

from datamill.services.llm.conversation import judge
from datamill.services.llm.exchange import Kind, Message, Rejection, Reply, Request

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "51-judge-json-in-all-shapes"
pytestmark = pytest.mark.skipif(not CASE.is_dir(), reason="the shared cases are not here")


class Verdict(BaseModel):
    score: int = Field(ge=1, le=5)
    reason: str


def rows() -> list[dict[str, Any]]:
    path = CASE / "replies.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def verdict_of(raw: str) -> Reply | Rejection:
    return judge(Request([Message("user", "judge this")], schema=Verdict), raw)


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["id"])
def test_verdict_equals_want(row: dict[str, Any]) -> None:
    verdict = verdict_of(row["reply"])
    if row["want"] == "fail":
        assert isinstance(verdict, Rejection), "a bad reply must not become a score"
        assert verdict.kind == Kind.INVALID_REPLY
        assert verdict.message
    else:
        assert isinstance(verdict, Reply)
        assert verdict.value.score == row["want"]
        assert verdict.raw == row["reply"], "the raw text is kept"


def test_all_ten_shapes_are_there_and_four_fail() -> None:
    wanted = [row["want"] for row in rows()]
    assert len(wanted) == 10
    assert wanted.count("fail") == 4


def test_backticks_inside_a_string_stay() -> None:
    row = next(row for row in rows() if row["id"] == "fence_inside")
    verdict = verdict_of(row["reply"])
    assert isinstance(verdict, Reply)
    assert verdict.value.reason == 'use ```json {"score": 1}``` here'
