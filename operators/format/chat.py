"""`format.chat`: rows become checked conversations for supervised fine-tuning.

Either a column of messages (OpenAI `role`/`content` or ShareGPT `from`/`value`, as a list or as JSON text) is
normalised, or user, assistant and system columns are put together. Turns must alternate as LLaMA-Factory wants it
(user or tool result, then assistant or tool call); no turn may be empty. Tool calls are kept.
"""

from typing import Literal

import pyarrow as pa
from pydantic import Field

from datamill.operators.declaration import ColumnType, Context, Effect, Need, OnNull, Params, Schema, operator
from datamill.operators.outcomes import then, without_nulls
from datamill.services.engines.protocol import Outcome

Style = Literal["openai", "sharegpt"]
REASONS = (
    "bad_messages", "unknown_role", "no_user_turn", "empty_answer", "empty_turn", "bad_alternation", "ends_with_user",
)  # fmt: skip


class ChatParams(Params):
    """Parameters of `format.chat`."""

    messages: str | None = Field(None, description="column with a conversation; else `user` and `assistant` are used")
    user: str | None = Field(None, description="column with the question or instruction")
    input: str | None = Field(None, description="column with further input, appended to `user` on a new line")
    assistant: str | None = Field(None, description="column with the answer")
    system: str | None = Field(None, description="column with the system prompt; may be null")
    system_prompt: str | None = Field(None, description="system prompt for rows that have none")
    output: str = Field("messages", description="output column")
    style: Style = Field("openai", description="openai: role and content; sharegpt: from (human, gpt) and value")
    min_turns: int = Field(1, ge=1, description="user turns a conversation must have")
    keep_source: bool = Field(False, description="keep the columns the messages were made of")
    on_null: OnNull = "drop"


def sources(params: ChatParams) -> list[str]:
    """Columns the conversation is made of."""
    names = [params.messages] if params.messages else [params.user, params.input, params.assistant]
    return [name for name in [*names, params.system] if name]


def message_type(style: Style) -> pa.DataType:
    """Arrow type of a conversation."""
    role, content = ("role", "content") if style == "openai" else ("from", "value")
    return pa.list_(pa.struct([pa.field(role, pa.string()), pa.field(content, pa.string())]))


def needed(params: ChatParams) -> list[str]:
    """Columns in which a null makes the row unusable."""
    return [params.messages] if params.messages else [name for name in (params.user, params.assistant) if name]


def _reads(params: ChatParams) -> list[Need]:
    nullable = params.on_null != "error"
    names = {params.messages: "messages", params.user: "user", params.input: "input"}
    names |= {params.assistant: "assistant", params.system: "system"}
    must = needed(params)
    return [
        Need(column, nullable=nullable or column not in must, field=f"params.{names[column]}")
        for column in sources(params)
    ]


def _writes(params: ChatParams, schema: Schema) -> Schema:
    gone = set() if params.keep_source else set(sources(params))
    kept = {name: kind for name, kind in schema.items() if name not in gone}
    return {**kept, params.output: ColumnType(str(message_type(params.style)), nullable=False, semantic="chat")}


def _check(params: ChatParams) -> list[tuple[str, str, str]]:
    if params.messages and (params.user or params.assistant or params.input):
        return [("error", "params.messages", "give either `messages` or `user` and `assistant`")]
    if not params.messages and not (params.user and params.assistant):
        return [("error", "params.user", "give `messages`, or both `user` and `assistant`")]
    return []


@operator(
    "format.chat",
    "Turns question and answer columns or raw conversations into checked chat messages for SFT.",
    effect=Effect.FILTER,
    params=ChatParams,
    reads=_reads,
    writes=_writes,
    check=_check,
    reference="LLaMA-Factory data/README (sharegpt and openai formats)",
    keywords=(
        "chat", "messages", "sharegpt", "openai format", "sft", "instruction tuning", "conversation", "dialogue",
        "multi-turn", "turns", "llama-factory",
        "对话", "多轮", "轮", "微调", "格式", "sft 数据",
        "conversa", "diálogo", "ajuste fino", "formato de chat",
        "conversación", "mensajes",
    ),
    reasons=(*REASONS, "too_few_turns", "null_*"),
)  # fmt: skip
def chat(batch: pa.Table, params: ChatParams, ctx: Context) -> Outcome:
    """Build and check one conversation per row."""
    from datamill.operators.format.conversations import chat_batch

    return then(without_nulls(batch, needed(params), params.on_null), lambda rows: chat_batch(rows, params))
