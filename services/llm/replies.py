"""Structured replies out of what models really write.

The plain parse comes first, so that a good reply is never "repaired" into another one (backticks inside a string
stay). Then, in this order: the content of a code fence, and the one JSON object in surrounding prose, each also with
trailing commas removed or in Python's notation (single quotes). Two different objects in one reply are ambiguous and
fail. Validation is pydantic's, strict: `"4"`, 11 of 10 or a missing key is a failure, never a clamp.
Cost: linear in the reply, which may have a million characters.
"""

import ast
import json
import re
from collections.abc import Iterator
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

M = TypeVar("M", bound=BaseModel)

MAX_REPLY_CHARS: Final = 1_000_000
_FENCE = re.compile(r"\s*```\w*[ \t]*\r?\n(.*?)\r?\n?```\s*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_NOTHING: Final = object()


class ReplyError(ValueError):
    """The reply holds no single object of the wanted form; the message says why, for the model and for people."""


def parse_reply(raw: str, schema: type[M]) -> M:
    """The validated object in the text `raw` of a model.

    Raises:
        ReplyError: when nothing, several different things, or something outside the schema was found.
    """
    value = extract(raw)
    try:
        return schema.model_validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "reply"
        raise ReplyError(f"{place}: {first['msg']}") from None


def extract(raw: str) -> Any:
    """The one JSON value in a reply.

    Raises:
        ReplyError: when there is none, or more than one and they differ.
    """
    if len(raw) > MAX_REPLY_CHARS:
        raise ReplyError(f"the reply is longer than {MAX_REPLY_CHARS} characters")
    text = _after_thinking(raw)
    if not text.strip():
        raise ReplyError("the reply is empty")
    fence = _FENCE.fullmatch(text)
    for candidate in (text, fence.group(1) if fence else ""):
        value = _load(candidate)
        if value is not _NOTHING:
            return value
    return _single([value for part in _objects(text) if (value := _load(part)) is not _NOTHING])


def _after_thinking(raw: str) -> str:
    """The answer of a reasoning model that prints its thoughts between `<think>` tags first."""
    return raw.rpartition("</think>")[2] if raw.lstrip().startswith("<think>") else raw


def _load(text: str) -> Any:
    for form in (text, _without_trailing_commas(text)):
        try:
            return json.loads(form, parse_constant=_no_constant, object_pairs_hook=_unique_keys)
        except (ValueError, RecursionError):
            continue
    return _python_literal(text)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _without_trailing_commas(text: str) -> str:
    """Drop commas before a closing bracket; the inside of strings is left alone."""
    parts: list[str] = []
    end = 0
    for match in _STRING.finditer(text):
        parts += (_TRAILING_COMMA.sub(r"\1", text[end : match.start()]), match.group())
        end = match.end()
    return "".join([*parts, _TRAILING_COMMA.sub(r"\1", text[end:])])


def _python_literal(text: str) -> Any:
    """A dict or list in Python's notation whose values are JSON's (no sets, bytes or complex numbers)."""
    stripped = text.strip()
    if stripped[:1] not in {"{", "["} or '"' in stripped.partition(":")[0]:
        return _NOTHING
    try:
        value = ast.literal_eval(stripped)
        json.dumps(value, allow_nan=False)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return _NOTHING
    return value if isinstance(value, dict | list) else _NOTHING


def _objects(text: str) -> Iterator[str]:
    """Outermost `{...}` spans, blind to braces inside double-quoted strings of a span."""
    position = text.find("{")
    while position >= 0:
        end = _closing(text, position)
        if end < 0:
            return
        yield text[position:end]
        position = text.find("{", end)


def _closing(text: str, start: int) -> int:
    """Index after the brace that closes the one at `start`, -1 when none does."""
    depth, quoted, index = 0, False, start
    while index < len(text):
        char = text[index]
        if quoted and char == "\\":
            index += 1
        elif char == '"':
            quoted = not quoted
        elif not quoted and char in "{}":
            depth += 1 if char == "{" else -1
            if depth == 0:
                return index + 1
        index += 1
    return -1


def _single(values: list[Any]) -> Any:
    if not values:
        raise ReplyError("no JSON object was found in the reply")
    if any(value != values[0] for value in values):
        raise ReplyError(f"{len(values)} different JSON objects were found in the reply")
    return values[0]
