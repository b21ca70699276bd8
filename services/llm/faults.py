"""What went wrong with a call, and what to do about it: try again, wait, give the request up, or stop the run.

Everything the `openai` client raises is turned into a `Fault` here, with a message free of secrets. A wrong key, a
missing right or an unknown model would fail every request alike, so they stop the run at once.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Any, Final

from datamill.errors import DatamillError, ExitCode
from datamill.services.llm.config import Redactor
from datamill.services.llm.exchange import Kind

RETRY_STATUS: Final = frozenset({408, 409, 425})
MAX_MESSAGE_CHARS: Final = 300


class Action(Enum):
    """What a fault calls for."""

    RETRY = "retry"
    WAIT = "wait"
    GIVE_UP = "give up"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Fault:
    """A failed call.

    Attributes:
        kind: why.
        action: what to do.
        message: one line for people.
        retry_after_s: pause the server asked for, None when it named none.
        billable: whether the server may have done the work although no answer arrived.
        status: HTTP status, None when there was no answer.
    """

    kind: Kind
    action: Action
    message: str
    retry_after_s: float | None = None
    billable: bool = False
    status: int | None = None


def classify(error: Exception, redact: Redactor, now: float) -> Fault | None:
    """The fault behind an exception of the client; None for what is no fault of a call.

    Args:
        error: what the client raised.
        redact: removes secrets from the message.
        now: seconds since 1970, for a Retry-After given as a date.
    """
    import openai

    if isinstance(error, openai.APITimeoutError | asyncio.TimeoutError):
        return Fault(Kind.TIMEOUT, Action.RETRY, "no answer in time", billable=True)
    if isinstance(error, openai.APIStatusError):
        # Servers quote a rejected key in part, so their words on it are not repeated.
        words = "key rejected" if error.status_code == 401 else _server_message(error)
        message = _line(f"HTTP {error.status_code}: {words}", redact)
        return _by_status(error, message, now)
    if isinstance(error, openai.APIConnectionError):
        cause = error.__cause__
        return Fault(
            Kind.CONNECTION, Action.RETRY, _line(f"connection failed: {cause or error}", redact), billable=True
        )
    if isinstance(error, openai.APIError | ValueError):
        return Fault(Kind.SERVER_ERROR, Action.RETRY, _line(f"unreadable answer: {error}", redact), billable=True)
    return None


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds of a Retry-After header: `retry-after-ms`, a number of seconds, or an HTTP date (RFC 9110, 10.2.3)."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None or value is None:
        return seconds
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - now)


def stop_error(fault: Fault, endpoint: str, model: str, key_variable: str) -> DatamillError:
    """The error that ends a run which no retry can help."""
    if fault.status == 401:
        code, fix = "DM-LLM-002", f"export {key_variable}=<a valid key for {endpoint}>"
        message = f"{endpoint} does not accept the API key"
    elif fault.status == 403:
        code, fix = "DM-LLM-002", f"use a key in {key_variable} that may call `{model}`"
        message = f"the API key has no right to use model `{model}` at {endpoint}"
    elif fault.status == 429:
        code, fix = "DM-LLM-004", "answers so far are kept: run the same command again once the limit is lifted"
        message = f"{endpoint} refuses requests for longer than it is worth waiting"
    else:
        code, fix = "DM-LLM-003", "check llm.model and llm.base_url: datamill config show"
        message = f"{endpoint} knows no model `{model}`, or no chat completions at this address"
    return DatamillError(
        code, f"{message} ({fault.message})", exit_code=ExitCode.STEP_FAILED, fix=fix, context={"status": fault.status}
    )


def _by_status(error: Any, message: str, now: float) -> Fault:
    status: int = error.status_code
    code = str(getattr(error, "code", None) or "")
    if status in {401, 403, 404} or code == "model_not_found":
        return Fault(Kind.BAD_REQUEST, Action.STOP, message, status=404 if code == "model_not_found" else status)
    if status == 429 and code == "insufficient_quota":
        return Fault(Kind.RATE_LIMITED, Action.STOP, message, status=status)
    if status == 429:
        return Fault(Kind.RATE_LIMITED, Action.WAIT, message, retry_after(error.response.headers, now), status=status)
    if status >= 500 or status in RETRY_STATUS:
        pause = retry_after(error.response.headers, now)
        return Fault(Kind.SERVER_ERROR, Action.RETRY, message, pause, status=status)
    filtered = code in {"content_filter", "content_policy_violation"}
    return Fault(Kind.CONTENT_FILTER if filtered else Kind.BAD_REQUEST, Action.GIVE_UP, message, status=status)


def _server_message(error: Any) -> str:
    body = error.body
    if isinstance(body, dict):
        inner = body.get("error", body)
        found = inner.get("message") if isinstance(inner, dict) else inner
        if found:
            return str(found)
    return "no message" if body is None else str(body)


def _line(text: str, redact: Redactor) -> str:
    flat = " ".join(redact(text).split())
    return flat if len(flat) <= MAX_MESSAGE_CHARS else f"{flat[: MAX_MESSAGE_CHARS - 1]}…"


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text else None
    except ValueError:
        return None
    return value if value is not None and 0 <= value < float("inf") else None
