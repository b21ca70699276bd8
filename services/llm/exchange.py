"""What goes to a model and what comes back: requests, replies, results.

A `Request` says everything an answer depends on, so its content is the cache key. A `Result` is either an accepted
reply or a failure with its kind, the last error and the number of attempts; there is no third state, so a failed
call cannot turn into a `None` that somebody trains on.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Literal

from pydantic import BaseModel

Role = Literal["system", "user", "assistant"]
KEY_VERSION: Final = "datamill-llm-1"


class Kind(StrEnum):
    """Why a request has no accepted reply. Kinds of a caller's own `check` may come beside these."""

    TIMEOUT = "llm_timeout"
    CONNECTION = "llm_connection"
    RATE_LIMITED = "llm_rate_limited"
    SERVER_ERROR = "llm_server_error"
    TRUNCATED = "llm_truncated"
    INVALID_REPLY = "llm_invalid_reply"
    REFUSED = "llm_refused"
    CONTENT_FILTER = "llm_content_filter"
    BAD_REQUEST = "llm_bad_request"


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Rejection:
    """A caller's verdict that a well-formed reply is not acceptable.

    Attributes:
        kind: slug that becomes the kind of the failure, e.g. `facts_changed`.
        message: what is wrong, told to the model when it is asked again.
    """

    kind: str
    message: str


Check = Callable[["Reply"], Rejection | None]


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer.

    Attributes:
        raw: the text exactly as the model wrote it.
        value: the validated object when the request had a schema, else None.
        tokens_in: prompt tokens of all attempts, as counted by the server.
        tokens_out: completion tokens of all attempts.
        cached: whether it came from the cache.
    """

    raw: str
    value: Any = None
    tokens_in: int = 0
    tokens_out: int = 0
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """One question to a chat model.

    Attributes:
        messages: the chat, oldest first.
        model: model name; the service's default when None.
        temperature: sampling temperature in [0, 2].
        max_tokens: most completion tokens; also what a budget reserves.
        seed: passed to servers that sample reproducibly; part of the cache key either way.
        schema: pydantic model the reply must match; None for free text.
        node: who asks (step or planner node), for the usage table; not part of the key.
        check: further acceptance test of a reply; not part of the key, applied to cached replies as well.
    """

    messages: Sequence[Message]
    model: str | None = None
    temperature: float = 0.0
    max_tokens: int = 1024
    seed: int | None = None
    schema: type[BaseModel] | None = None
    node: str = "llm"
    check: Check | None = field(default=None, compare=False)

    def json_schema(self) -> dict[str, Any] | None:
        """The schema as JSON Schema, None for free text."""
        return None if self.schema is None else self.schema.model_json_schema()

    def key(self, model: str, endpoint: str) -> str:
        """Content key: 64 hex digits over everything the answer depends on."""
        parts = {
            "version": KEY_VERSION,
            "endpoint": endpoint,
            "model": model,
            "messages": [[message.role, message.content] for message in self.messages],
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "seed": self.seed,
            "schema": self.json_schema(),
        }
        text = json.dumps(parts, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a request: `reply` or a failure.

    Attributes:
        reply: the accepted reply, None when the request failed.
        kind: why it failed (a `Kind` or the kind of a `Rejection`), None when it did not.
        last_error: message of the last attempt, free of secrets.
        attempts: requests sent, waits for a rate limit included; 0 for a cached reply.
        raw: text of the last reply that was not accepted, if there was one.
    """

    reply: Reply | None = None
    kind: str | None = None
    last_error: str | None = None
    attempts: int = 0
    raw: str | None = None

    @property
    def ok(self) -> bool:
        """Whether there is an accepted reply."""
        return self.reply is not None
