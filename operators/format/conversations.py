"""Conversations as (role, text) turns: read from any of the usual spellings, checked, and written as messages.

Roles are `system`, `user`, `assistant`, `function_call`, `observation`, the ones LLaMA-Factory trains on. A turn of
the user (or a tool's result) is followed by one of the assistant (or a tool call), and the last is the assistant's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson
import pyarrow as pa

from datamill.operators.format.chat import ChatParams, Style, message_type, sources
from datamill.operators.outcomes import keep_where, with_column
from datamill.services.engines.protocol import Outcome

Turn = tuple[str, str]

ROLES: Final = {
    "system": "system", "developer": "system",
    "user": "user", "human": "user", "prompter": "user", "customer": "user",
    "assistant": "assistant", "gpt": "assistant", "bot": "assistant", "model": "assistant", "chatgpt": "assistant",
    "bing": "assistant", "agent": "assistant",
    "function_call": "function_call", "tool_call": "function_call",
    "observation": "observation", "tool": "observation", "function": "observation", "tool_response": "observation",
    "function_response": "observation", "ipython": "observation",
}  # fmt: skip
SHAREGPT_ROLES: Final = {"user": "human", "assistant": "gpt"}
_ASKING: Final = frozenset({"user", "observation"})
_ANSWERING: Final = frozenset({"assistant", "function_call"})


@dataclass(frozen=True, slots=True)
class Conversation:
    """A system prompt and turns, or the reason why there is no usable conversation."""

    system: str | None
    turns: tuple[Turn, ...]
    problem: str | None = None
    detail: str | None = None


def chat_batch(batch: pa.Table, params: ChatParams) -> Outcome:
    """Build, check and write one conversation per row."""
    columns = {name: batch[name].to_pylist() for name in sources(params)}
    found = [_conversation(columns, index, params) for index in range(batch.num_rows)]
    messages = [_messages(conversation, params.style) for conversation in found]
    kept = batch if params.keep_source else batch.drop_columns(list(columns))
    written = with_column(kept, params.output, messages, message_type(params.style))
    return keep_where(
        written,
        [conversation.problem is None for conversation in found],
        reason=[conversation.problem for conversation in found],
        detail=[conversation.detail for conversation in found],
    )


def read_messages(value: Any) -> Conversation:
    """A conversation from a list of messages, or from its JSON text."""
    if isinstance(value, str):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError as error:
            return Conversation(None, (), "bad_messages", str(error))
    if isinstance(value, Mapping):
        value = value.get("messages", value.get("conversations"))
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        return Conversation(None, (), "bad_messages", "not a list of messages")
    turns: list[Turn] = []
    for message in value:
        if not isinstance(message, Mapping):
            return Conversation(None, (), "bad_messages", "a message is not an object")
        written = message.get("role") or message.get("from")
        role = ROLES.get(str(written).strip().lower())
        if role is None:
            return Conversation(None, (), "unknown_role", str(written))
        turns.extend(_turns(role, message))
    systems = [text for role, text in turns if role == "system"]
    rest = tuple(turn for turn in turns if turn[0] != "system")
    return Conversation("\n".join(filter(str.strip, systems)) or None, rest)


def check(conversation: Conversation) -> Conversation:
    """The conversation, with the first problem it has."""
    problem = conversation.problem or _problem(conversation.turns)
    return Conversation(conversation.system, conversation.turns, problem, conversation.detail)


def _problem(turns: Sequence[Turn]) -> str | None:
    if not any(role == "user" and text.strip() for role, text in turns):
        return "no_user_turn"
    if any(role in _ANSWERING and not text.strip() for role, text in turns):
        return "empty_answer"
    if any(not text.strip() for _, text in turns):
        return "empty_turn"
    if any(role not in (_ANSWERING if index % 2 else _ASKING) for index, (role, _) in enumerate(turns)):
        return "bad_alternation"
    return "ends_with_user" if len(turns) % 2 else None


def _turns(role: str, message: Mapping[str, Any]) -> list[Turn]:
    content = message.get("content", message.get("value"))
    calls = message.get("tool_calls")
    if calls:
        functions = [call.get("function", call) for call in calls if isinstance(call, Mapping)]
        named = [{"name": call.get("name"), "arguments": _arguments(call.get("arguments"))} for call in functions]
        return [("function_call", orjson.dumps(named).decode())]
    return [(role, _text(content))]


def _arguments(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return value


def _text(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        return "".join(str(part.get("text", "")) if isinstance(part, Mapping) else str(part) for part in content)
    return orjson.dumps(content).decode()


def _conversation(columns: Mapping[str, list[Any]], index: int, params: ChatParams) -> Conversation:
    def cell(name: str | None) -> str:
        value = columns[name][index] if name else None
        return "" if value is None else str(value)

    if params.messages:
        read = read_messages(columns[params.messages][index])
    else:
        question = "\n".join(filter(str.strip, (cell(params.user), cell(params.input))))
        read = Conversation(None, (("user", question), ("assistant", cell(params.assistant))))
    system = read.system or cell(params.system) or params.system_prompt or None
    checked = check(Conversation(system, read.turns, read.problem, read.detail))
    num_user = sum(role == "user" for role, _ in checked.turns)
    if checked.problem is None and num_user < params.min_turns:
        return Conversation(system, checked.turns, "too_few_turns", f"{num_user} user turns")
    return checked


def _messages(conversation: Conversation, style: Style) -> list[dict[str, str]]:
    turns = [("system", conversation.system), *conversation.turns] if conversation.system else conversation.turns
    if style == "openai":
        return [{"role": role, "content": text or ""} for role, text in turns]
    return [{"from": SHAREGPT_ROLES.get(role, role), "value": text or ""} for role, text in turns]
