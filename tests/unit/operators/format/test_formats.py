"""format.chat, format.alpaca, format.pt: shapes in, checked rows out, a reason for every other row."""

from typing import Any

import orjson
import pyarrow as pa
import pytest

from datamill.operators.declaration import ColumnType, Context, registered
from datamill.operators.format.alpaca import AlpacaParams, alpaca
from datamill.operators.format.chat import ChatParams, chat, message_type
from datamill.operators.format.conversations import check, read_messages
from datamill.operators.format.pt import PtParams, pt
from datamill.services.engines.protocol import Outcome

CTX = Context(step="format")
CALL = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": '{"x": 1}'}}]}


def batch(**columns: Any) -> pa.Table:
    size = len(next(iter(columns.values())))
    system = {
        "_id": [f"{i:032x}" for i in range(size)],
        "_ord": list(range(size)),
        "_src": [f"f:{i}" for i in range(size)],
    }
    return pa.table({**system, **columns})


def run_chat(table: pa.Table, **params: Any) -> Outcome:
    outcome: Outcome = chat(table, ChatParams(**params), CTX)
    return outcome


def run_alpaca(table: pa.Table, **params: Any) -> Outcome:
    outcome: Outcome = alpaca(table, AlpacaParams(**params), CTX)
    return outcome


def turns(*roles_and_texts: str) -> list[dict[str, str]]:
    pairs = zip(roles_and_texts[::2], roles_and_texts[1::2], strict=True)
    return [{"role": role, "content": text} for role, text in pairs]


def test_columns_become_messages() -> None:
    table = batch(q=["hi", "sum"], x=["", "1+1"], a=["hello", "2"], s=["be kind", None], source=["u", "v"])
    outcome = run_chat(table, user="q", input="x", assistant="a", system="s")
    assert outcome.rows["messages"].to_pylist() == [
        turns("system", "be kind", "user", "hi", "assistant", "hello"),
        turns("user", "sum\n1+1", "assistant", "2"),
    ]
    assert outcome.rows.column_names == ["_id", "_ord", "_src", "source", "messages"]
    assert run_chat(table, user="q", assistant="a", keep_source=True).rows.column_names[3:5] == ["q", "x"]


def test_sharegpt_style_and_default_system_prompt() -> None:
    outcome = run_chat(batch(q=["hi"], a=["yo"]), user="q", assistant="a", style="sharegpt", system_prompt="S")
    assert outcome.rows["messages"].to_pylist() == [
        [{"from": "system", "value": "S"}, {"from": "human", "value": "hi"}, {"from": "gpt", "value": "yo"}]
    ]


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        (turns("user", "a", "assistant", "b"), None),
        (turns("system", "s", "user", "a", "assistant", "b", "user", "c", "assistant", "d"), None),
        (turns("user", "a", "function_call", "{}", "observation", "r", "assistant", "b"), None),
        (turns("user", "a", "assistant", "  "), "empty_answer"),
        (turns("user", " ", "assistant", "b"), "no_user_turn"),
        (turns("assistant", "b"), "no_user_turn"),
        (turns("user", "a", "assistant", "b", "user", "", "assistant", "d"), "empty_turn"),
        (turns("user", "a", "user", "b", "assistant", "c"), "bad_alternation"),
        (turns("assistant", "hello", "user", "a", "assistant", "b"), "bad_alternation"),
        (turns("user", "a", "assistant", "b", "user", "c"), "ends_with_user"),
        (turns("wizard", "a", "assistant", "b"), "unknown_role"),
        ("not json", "bad_messages"),
        ([], "bad_messages"),
        ([1, 2], "bad_messages"),
        (7, "bad_messages"),
    ],
)
def test_every_problem_of_a_conversation_has_its_reason(messages: Any, problem: str | None) -> None:
    assert check(read_messages(messages)).problem == problem


def test_all_spellings_read_as_the_same_conversation() -> None:
    openai = turns("user", "a", "assistant", "b")
    sharegpt = [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]
    parts = [{"role": "user", "content": [{"type": "text", "text": "a"}]}, {"role": "model", "content": "b"}]
    spellings = [openai, sharegpt, parts, orjson.dumps(openai).decode(), {"messages": openai}]
    assert {read_messages(spelling).turns for spelling in spellings} == {(("user", "a"), ("assistant", "b"))}


def test_tool_calls_are_kept() -> None:
    raw = orjson.dumps([turns("user", "go")[0], CALL, {"role": "tool", "content": "7"}, turns("assistant", "7!")[0]])
    outcome = run_chat(batch(m=[raw.decode()]), messages="m")
    roles = [message["role"] for message in outcome.rows["messages"].to_pylist()[0]]
    assert roles == ["user", "function_call", "observation", "assistant"]
    assert orjson.loads(outcome.rows["messages"].to_pylist()[0][1]["content"]) == [{"name": "f", "arguments": {"x": 1}}]


def test_turns_nulls_and_books() -> None:
    table = batch(m=[turns("user", "a", "assistant", "b"), None, turns("user", "a", "assistant", "")])
    outcome = run_chat(table, messages="m", min_turns=1)
    assert sorted(outcome.fates["reason"].to_pylist()) == ["empty_answer", "null_m"]
    assert outcome.rows.num_rows + outcome.fates.num_rows == 3
    assert run_chat(table, messages="m", min_turns=2).fates["reason"].to_pylist().count("too_few_turns") == 1


def test_chat_declares_what_it_does() -> None:
    operator = registered()["format.chat"]
    schema = {"q": ColumnType("string"), "a": ColumnType("string"), "source": ColumnType("string")}
    params = ChatParams(user="q", assistant="a")
    written = operator.writes(params, schema)
    assert list(written) == ["source", "messages"]
    made = run_chat(batch(q=["x"], a=["y"]).slice(0, 0), user="q", assistant="a").rows.schema.field("messages").type
    assert written["messages"].dtype == str(made) == str(message_type("openai"))
    assert [need.column for need in operator.reads(params)] == ["q", "a"]
    assert [field for _, field, _ in operator.check(ChatParams())] == ["params.user"]
    assert [field for _, field, _ in operator.check(ChatParams(messages="m", user="q"))] == ["params.messages"]


def test_alpaca_from_columns() -> None:
    table = batch(q=["a", "", "b"], ctx=["x", None, None], a=["1", "2", " "], h=['[["p","q"]]', "[]", "bad"])
    outcome = run_alpaca(table, instruction="q", input="ctx", output="a", history="h")
    assert outcome.rows.select(["instruction", "input", "output", "history"]).to_pylist() == [
        {"instruction": "a", "input": "x", "output": "1", "history": [["p", "q"]]}
    ]
    assert outcome.fates["reason"].to_pylist() == ["no_user_turn", "bad_messages"]
    assert "q" not in outcome.rows.column_names


def test_alpaca_keeps_columns_that_are_already_named_right() -> None:
    outcome = run_alpaca(batch(instruction=["a"], output=["b"], domain=["d"]))
    assert outcome.rows.drop_columns(["_id", "_ord", "_src"]).to_pylist() == [
        {"domain": "d", "instruction": "a", "input": "", "output": "b"}
    ]


def test_alpaca_from_a_conversation_with_history_system_and_tools() -> None:
    raw = [*turns("system", "S", "user", "1", "assistant", "2", "user", "go"), CALL, {"role": "tool", "content": "7"}]
    table = batch(m=[orjson.dumps([*raw, *turns("assistant", "seven")]).decode()])
    row = run_alpaca(table, messages="m").rows.to_pylist()[0]
    assert (row["instruction"], row["system"], row["history"]) == ("go", "S", [["1", "2"]])
    call = '<tool_call>[{"name":"f","arguments":{"x":1}}]</tool_call>'
    assert row["output"] == f"{call}\n<tool_response>7</tool_response>\nseven"


def test_pt_joins_columns_and_drops_what_has_no_text() -> None:
    table = batch(title=["T", "", None], text=["body", " ", "x"], n=[1, 2, 3])
    outcome: Outcome = pt(table, PtParams(columns=("title", "text")), CTX)
    assert outcome.rows["text"].to_pylist() == ["T\n\nbody"]
    assert outcome.fates["reason"].to_pylist() == ["null_title", "empty_text"]
    assert outcome.rows.column_names == ["_id", "_ord", "_src", "n", "text"]
    kept: Outcome = pt(table, PtParams(columns=("title", "text"), on_null="keep"), CTX)
    assert kept.rows["text"].to_pylist() == ["T\n\nbody", "x"]
