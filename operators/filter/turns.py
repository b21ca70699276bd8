"""Exchanges of a conversation: how many times the user speaks.

Understands lists of messages and JSON texts of such lists, in OpenAI's (`role`/`content`) and ShareGPT's
(`from`/`value`) spelling. `user`, `human` and `prompter` are the user. A list without role names counts pairs.
"""

import json
from typing import Any

import polars as pl
import pyarrow as pa

_USERS = frozenset({"user", "human", "prompter"})
_ROLES = ("role", "from", "speaker")


def turn_counts(column: pa.ChunkedArray) -> pl.Series:
    """Exchanges in every conversation, int64; null and JSON that is no list of messages give null and 0."""
    return pl.Series([_turns(value) for value in column.to_pylist()], dtype=pl.Int64)


def _turns(value: Any) -> int | None:
    if value is None:
        return None
    messages = _decoded(value)
    roles = [_role(message) for message in messages]
    if any(role is not None for role in roles):
        return sum(role in _USERS for role in roles)
    return (len(messages) + 1) // 2


def _decoded(value: Any) -> list[Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return []
    if isinstance(value, dict):
        value = next((item for item in value.values() if isinstance(item, list)), [])
    return value if isinstance(value, list) else []


def _role(message: Any) -> str | None:
    if not isinstance(message, dict):
        return None
    return next((str(message[key]).lower() for key in _ROLES if message.get(key) is not None), None)
