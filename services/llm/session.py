"""One HTTP session with a chat-completions endpoint: sends a call and reads the answer, nothing more.

The `openai` client speaks the protocol (its own retries are off); bodies are read here, because servers that are
almost compatible send bodies its models do not foresee. The API key lives in the client object only.
"""

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from datamill.errors import DatamillError
from datamill.services.llm.config import Redactor, ServiceConfig, api_key, base_url, endpoint_name, is_loopback
from datamill.services.llm.exchange import Message, Request
from datamill.services.llm.faults import Fault, classify

NO_KEY = "no-key"


@dataclass(frozen=True, slots=True)
class Completion:
    """What a server answered; token counts are None when it did not say."""

    text: str
    finish: str
    refusal: str | None
    tokens_in: int | None
    tokens_out: int | None


class Session:
    """An open connection pool; bound to the event loop it is used in."""

    def __init__(self, config: ServiceConfig, env: Mapping[str, str]) -> None:
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient

        url, key = base_url(config, env), api_key(config, env)
        self.endpoint = endpoint_name(url)
        if key is None and not is_loopback(url):
            raise _no_key(config, self.endpoint)
        self.redact = Redactor(key)
        self._config = config
        self._client = AsyncOpenAI(
            api_key=key or NO_KEY,
            base_url=url,
            max_retries=0,
            timeout=config.timeout_s,
            http_client=DefaultAsyncHttpxClient(trust_env=not is_loopback(url)),
        )
        # Looked up here because it imports for a second or more, which must not count as time without an answer.
        self._create = self._client.chat.completions.with_raw_response.create

    async def send(self, body: Mapping[str, Any]) -> Completion | Fault:
        """Send one call; at most `timeout_s` seconds pass."""
        try:
            async with asyncio.timeout(self._config.timeout_s):
                answer = await self._create(**body)
            return read_completion(answer.content, self.redact)
        except Exception as error:
            fault = classify(error, self.redact, time.time())
            if fault is None:
                raise
            return fault

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()


def request_body(config: ServiceConfig, request: Request, messages: Sequence[Message], limit: int) -> dict[str, Any]:
    """Arguments of the call for `request` with the (possibly extended) `messages` and completion `limit`."""
    wire = [{"role": message.role, "content": _encodable(message.content)} for message in messages]
    body: dict[str, Any] = {
        "model": request.model or config.model,
        "messages": wire,
        "temperature": request.temperature,
        config.token_limit: limit,
    }
    if request.seed is not None:
        body["seed"] = request.seed
    schema = request.json_schema()
    if schema is not None and config.structured == "json_schema":
        assert request.schema is not None
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": request.schema.__name__.strip("_")[:64], "schema": schema},
        }
    elif schema is not None:
        wire[-1]["content"] += f"\n\nAnswer with one JSON object of this JSON Schema:\n{json.dumps(schema)}"
        if config.structured == "json_object":
            body["response_format"] = {"type": "json_object"}
    return body


def read_completion(content: bytes, redact: Redactor) -> Completion:
    """The first choice of a chat-completions body.

    Raises:
        ValueError: when the body is not one.
    """
    data = json.loads(content)
    try:
        choice = data["choices"][0]
        message = choice["message"]
        text = message.get("content")
        refusal = message.get("refusal")
    except (KeyError, IndexError, TypeError, AttributeError):
        raise ValueError("the body is no chat completion") from None
    usage = data.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    return Completion(
        redact(_plain(text)),
        str(choice.get("finish_reason") or "stop"),
        redact(str(refusal)) if refusal else None,
        _count(counts.get("prompt_tokens")),
        _count(counts.get("completion_tokens")),
    )


def _encodable(text: str) -> str:
    """Lone surrogates have no UTF-8 form; they go out as question marks."""
    return text.encode("utf-8", "replace").decode()


def _plain(content: Any) -> str:
    """Text of a message: a string, or the text parts of a list."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _no_key(config: ServiceConfig, endpoint: str) -> DatamillError:
    return DatamillError(
        "DM-LLM-002",
        f"{endpoint} needs an API key and the environment has none",
        fix=f"export {config.api_key_env}=...",
    )
