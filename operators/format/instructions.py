"""Carries out `format.alpaca` on a batch."""

from collections.abc import Mapping
from typing import Any

import orjson
import pyarrow as pa

from datamill.operators.format.alpaca import AlpacaParams, outputs, sources
from datamill.operators.format.conversations import Conversation, check, read_messages
from datamill.operators.outcomes import keep_where, with_column
from datamill.services.engines.protocol import Outcome

Row = dict[str, Any]

TAGS = {"function_call": "tool_call", "observation": "tool_response"}


def alpaca_batch(batch: pa.Table, params: AlpacaParams) -> Outcome:
    """Build and check one instruction row per row."""
    columns = {name: batch[name].to_pylist() for name in sources(params)}
    made = [_make(columns, index, params) for index in range(batch.num_rows)]
    written = batch if params.keep_source else batch.drop_columns(list(columns))
    for name, kind in outputs(params).items():
        written = with_column(written, name, [row[name] for row, _, _ in made], kind)
    return keep_where(
        written,
        [problem is None for _, problem, _ in made],
        reason=[problem for _, problem, _ in made],
        detail=[detail for _, _, detail in made],
    )


def from_conversation(conversation: Conversation) -> Row:
    """The last exchange as instruction and output, the earlier ones as history."""
    pairs: list[list[str]] = []
    asked: list[str] = []
    answered: list[str] = []
    for role, text in conversation.turns:
        if role == "user" and answered:
            pairs.append(["\n".join(asked), "\n".join(answered)])
            asked, answered = [], []
        written = f"<{TAGS[role]}>{text}</{TAGS[role]}>" if role in TAGS else text
        (asked if role == "user" else answered).append(written)
    return {
        "instruction": "\n".join(asked),
        "input": "",
        "output": "\n".join(answered),
        "system": conversation.system or "",
        "history": pairs,
    }


def _make(columns: Mapping[str, list[Any]], index: int, params: AlpacaParams) -> tuple[Row, str | None, str | None]:
    def cell(name: str | None) -> Any:
        value = columns[name][index] if name else None
        return "" if value is None else value

    if params.messages:
        conversation = check(read_messages(cell(params.messages)))
        row = from_conversation(conversation)
        row["system"] = row["system"] or str(cell(params.system))
        return row, conversation.problem, conversation.detail
    row = {name: str(cell(getattr(params, name))) for name in ("instruction", "input", "output", "system")}
    row["history"], problem = _history(cell(params.history))
    turns = (("user", row["instruction"] + row["input"]), ("assistant", row["output"]))
    return row, problem or check(Conversation(None, turns)).problem, None


def _history(value: Any) -> tuple[list[list[str]], str | None]:
    if isinstance(value, str):
        try:
            value = orjson.loads(value) if value.strip() else []
        except orjson.JSONDecodeError:
            return [], "bad_messages"
    pairs = [[str(text) for text in pair] for pair in value if isinstance(pair, list)]
    good = isinstance(value, list) and len(pairs) == len(value) and all(len(pair) == 2 for pair in pairs)
    return (pairs, None) if good else ([], "bad_messages")
