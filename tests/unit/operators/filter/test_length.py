"""filter.length: units, bounds, null and empty, several columns."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pydantic import ValidationError
from support.tables import apply, books_balance, ids, reasons, table, texts

from datamill.errors import DatamillError
from datamill.operators.declaration import Context
from datamill.operators.filter.length import LengthParams
from datamill.operators.registry import find


@pytest.mark.parametrize(
    ("unit", "lengths"),
    [("chars", [0, 5, 11, 12]), ("words", [0, 1, 2, 4])],
)
def test_lengths_are_kept_beside_the_text(unit: str, lengths: list[int]) -> None:
    rows = texts("", "hello", "hello world", "我们的 deadline")
    outcome = apply("filter.length", rows, unit=unit, min=0)
    assert outcome.rows[f"text_{unit}"].to_pylist() == lengths
    assert outcome.rows.schema.field(f"text_{unit}").type == pa.int64()


def test_bounds_are_inclusive_and_reasons_carry_value_and_threshold() -> None:
    rows = texts("", "abc", "abcd", "abcdef", "abcdefg")
    outcome = apply("filter.length", rows, min=4, max=6)
    assert ids(outcome.rows) == [2, 3]
    assert reasons(outcome) == {0: "too_short", 1: "too_short", 4: "too_long"}
    measured = {fate["src"]: (fate["value"], fate["threshold"]) for fate in outcome.fates.to_pylist()}
    assert measured == {"test:1": (0.0, 4.0), "test:2": (3.0, 4.0), "test:5": (7.0, 6.0)}
    assert books_balance(rows, outcome)


def test_null_is_not_empty() -> None:
    rows = texts(None, "")
    assert reasons(apply("filter.length", rows, min=1)) == {0: "null_text", 1: "too_short"}
    assert ids(apply("filter.length", rows, min=1, on_null="keep").rows) == [0]
    with pytest.raises(DatamillError, match="DM-OPA-001"):
        apply("filter.length", rows, min=1, on_null="error")


def test_each_column_or_their_sum() -> None:
    rows = table(a=["aaa", "a", "aaaa"], b=["b", "bbb", "bbbb"])
    each = apply("filter.length", rows, columns=["a", "b"], min=3)
    assert ids(each.rows) == [2]
    assert reasons(each) == {0: "too_short", 1: "too_short"}
    assert {fate["detail"] for fate in each.fates.to_pylist()} == {"a_chars", "b_chars"}
    total = apply("filter.length", rows, columns=["a", "b"], min=5, combine="sum")
    assert ids(total.rows) == [2]
    assert total.rows["total_chars"].to_pylist() == [8]


@pytest.mark.parametrize(
    ("conversation", "turns"),
    [
        ([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], 1),
        ([{"from": "system", "value": "s"}, {"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}], 1),
        ([{"role": "user", "content": "a"}] * 3, 3),
        ({"messages": [{"role": "user", "content": "a"}]}, 1),
        ([], 0),
        ("not a conversation", 0),
        ([["q", "a"], ["q", "a"], ["q", "a"]], 2),
    ],
)
def test_turns_are_exchanges(conversation: Any, turns: int) -> None:
    rows = table(messages=[json.dumps(conversation)])
    measured = apply("filter.length", rows, columns="messages", unit="turns", min=0)
    assert measured.rows["messages_turns"].to_pylist() == [turns]


def test_turns_of_list_columns() -> None:
    messages = [[{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}] * 3, None]
    outcome = apply("filter.length", table(m=messages), columns="m", unit="turns", min=3)
    assert outcome.rows["m_turns"].to_pylist() == [3]
    assert reasons(outcome) == {1: "null_m"}


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1, "b": 2}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.enable_truncation(2)
    words.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def test_tokens_without_truncation(tokenizer: Path) -> None:
    rows = texts("a b a b a", "", None, "zzz")
    context = Context("step", project=tokenizer.parent)
    outcome = apply("filter.length", rows, context, unit="tokens", min=0, on_null="keep", tokenizer=tokenizer.name)
    assert outcome.rows["text_tokens"].to_pylist() == [5, 0, None, 1]
    params = LengthParams(unit="tokens", min=1, tokenizer="t.json")
    assert find("filter.length").files(params) == ("t.json",)


def test_a_missing_tokenizer_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatamillError, match="DM-OPA-030"):
        apply("filter.length", texts("a"), unit="tokens", min=1, tokenizer=str(tmp_path / "no.json"))


@pytest.mark.parametrize(
    "params",
    [{}, {"min": 5, "max": 4}, {"min": -1}, {"min": 1, "unit": "tokens"}, {"min": 1, "unit": "bytes"}, {"mim": 1}],
)
def test_bad_parameters(params: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        LengthParams.model_validate(params)


def test_the_schema_has_the_score_columns() -> None:
    params = LengthParams(columns=("a", "b"), min=1)
    assert set(find("filter.length").writes(params, {})) == {"a_chars", "b_chars"}
