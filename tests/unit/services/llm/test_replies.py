"""Structured replies: what is read, what is repaired, what fails."""

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from datamill.services.llm.replies import MAX_REPLY_CHARS, ReplyError, extract, parse_reply


class Verdict(BaseModel):
    score: int = Field(ge=1, le=5)
    reason: str


class Nested(BaseModel):
    items: list[Verdict]
    note: str | None = None


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('  \n{"a": 1}\n ', {"a": 1}),
        ("[1, 2]", [1, 2]),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('```\n{"a": 1}\n```\n', {"a": 1}),
        ("```json\r\n[1, 2]\r\n```", [1, 2]),
        ('Here you go:\n```json\n{"a": 1}\n```\nDone.', {"a": 1}),
        ('I think {"a": {"b": 2}} fits.', {"a": {"b": 2}}),
        ('{"a": [1, 2,], }', {"a": [1, 2]}),
        ("{'a': 'it is', 'b': True, 'c': None}", {"a": "it is", "b": True, "c": None}),
        ("Answer: {'a': 1}", {"a": 1}),
        ('<think>maybe {"a": 9}?</think>{"a": 1}', {"a": 1}),
        ('{"a": 1} I repeat: {"a": 1}', {"a": 1}),
        ('set {x} then {"a": 1}', {"a": 1}),
        ('{"a": "brace } and { in text"} ok', {"a": "brace } and { in text"}),
        ('{"a": "quote \\" and }"} ok', {"a": 'quote " and }'}),
    ],
)
def test_one_value_is_found(raw: str, value: Any) -> None:
    assert extract(raw) == value


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ("", "empty"),
        (" \n\t", "empty"),
        ("<think>only thoughts</think>", "empty"),
        ("no json at all", "no JSON object"),
        ('{"a": 1', "no JSON object"),
        ('{"a": 1} or {"a": 2}', "2 different"),
        ('{"a": NaN}', "no JSON object"),
        ('{"a": 1, "a": 2}', "no JSON object"),
        ("{'a': {1, 2}}", "no JSON object"),
        ("{'a': __import__('os')}", "no JSON object"),
        ("{" * 5000, "no JSON object"),
        ("[" * 100_000, "no JSON object"),
        ("x" * (MAX_REPLY_CHARS + 1), "longer than"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_anything_else_fails_and_says_why(raw: str, message: str) -> None:
    with pytest.raises(ReplyError, match=message):
        extract(raw)


def test_good_json_is_never_repaired() -> None:
    text = "a, } b ,] ```json {'x': 1,} ```"
    raw = json.dumps({"score": 3, "reason": text})
    assert parse_reply(raw, Verdict).reason == text


def test_commas_inside_strings_survive_the_comma_repair() -> None:
    assert parse_reply('{"score": 3, "reason": "keep ,} this",}', Verdict).reason == "keep ,} this"


@pytest.mark.parametrize("score", ["0", "6", "11", "-1", '"4"', "4.5", "null", "true", "[4]", '"high"'])
def test_values_outside_the_schema_fail_and_are_not_clamped(score: str) -> None:
    with pytest.raises(ReplyError, match="score"):
        parse_reply(f'{{"score": {score}, "reason": "x"}}', Verdict)


def test_a_missing_key_names_itself() -> None:
    with pytest.raises(ReplyError, match="reason: Field required"):
        parse_reply('{"score": 2}', Verdict)


def test_a_nested_place_is_named() -> None:
    with pytest.raises(ReplyError, match=r"items\.1\.score"):
        parse_reply('{"items": [{"score": 1, "reason": ""}, {"score": 9, "reason": ""}]}', Nested)


def test_a_scalar_or_list_is_not_the_object_asked_for() -> None:
    for raw in ("4", '"text"', "[1]", "null"):
        with pytest.raises(ReplyError):
            parse_reply(raw, Verdict)


def test_the_error_does_not_repeat_the_reply() -> None:
    with pytest.raises(ReplyError) as error:
        parse_reply('{"score": "private words", "reason": "x"}', Verdict)
    assert "private words" not in str(error.value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), json_values, max_size=5))
@settings(max_examples=150, deadline=None)
def test_any_object_comes_back_from_any_wrapping(value: dict[str, Any]) -> None:
    text = json.dumps(value)
    for raw in (text, json.dumps(value, ensure_ascii=False), f"```json\n{text}\n```", f"Well:\n{text}\nThat is all."):
        assert extract(raw) == value


@given(st.text(alphabet="{}[]\"',:\\ `a1\n", max_size=80))
@settings(max_examples=300, deadline=None)
def test_no_text_breaks_the_parser(raw: str) -> None:
    try:
        value = extract(raw)
    except ReplyError:
        return
    json.dumps(value)


def test_a_hostile_long_reply_costs_linear_time() -> None:
    started = time.perf_counter()
    for raw in ("{" * 200_000, '{"' * 100_000, "{}x" * 60_000, ',"' * 100_000):
        try:
            extract(raw)
        except ReplyError:
            continue
    assert time.perf_counter() - started < 5.0
