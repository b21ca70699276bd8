"""Which failure calls for what."""

from email.utils import formatdate
from typing import Any

import httpx2
import openai
import pytest

from datamill.services.llm.config import Redactor
from datamill.services.llm.exchange import Kind
from datamill.services.llm.faults import MAX_MESSAGE_CHARS, Action, Fault, classify, retry_after, stop_error

NOW = 1_800_000_000.0
ASKED = httpx2.Request("POST", "http://127.0.0.1/v1/chat/completions")


def status_error(code: int, error_code: str | None = None, message: str = "words", **headers: str) -> Exception:
    body: dict[str, Any] = {"message": message, "code": error_code}
    response = httpx2.Response(code, headers=headers, json={"error": body}, request=ASKED)
    return openai.APIStatusError(message, response=response, body=body)


def fault_of(error: Exception, key: str | None = None) -> Fault:
    fault = classify(error, Redactor(key), NOW)
    assert fault is not None
    return fault


@pytest.mark.parametrize(
    ("code", "error_code", "kind", "action"),
    [
        (400, None, Kind.BAD_REQUEST, Action.GIVE_UP),
        (400, "context_length_exceeded", Kind.BAD_REQUEST, Action.GIVE_UP),
        (400, "content_filter", Kind.CONTENT_FILTER, Action.GIVE_UP),
        (400, "model_not_found", Kind.BAD_REQUEST, Action.STOP),
        (401, None, Kind.BAD_REQUEST, Action.STOP),
        (403, None, Kind.BAD_REQUEST, Action.STOP),
        (404, None, Kind.BAD_REQUEST, Action.STOP),
        (408, None, Kind.SERVER_ERROR, Action.RETRY),
        (409, None, Kind.SERVER_ERROR, Action.RETRY),
        (422, None, Kind.BAD_REQUEST, Action.GIVE_UP),
        (429, None, Kind.RATE_LIMITED, Action.WAIT),
        (429, "rate_limit_exceeded", Kind.RATE_LIMITED, Action.WAIT),
        (429, "insufficient_quota", Kind.RATE_LIMITED, Action.STOP),
        (500, None, Kind.SERVER_ERROR, Action.RETRY),
        (503, None, Kind.SERVER_ERROR, Action.RETRY),
        (529, None, Kind.SERVER_ERROR, Action.RETRY),
    ],
)
def test_status_codes(code: int, error_code: str | None, kind: Kind, action: Action) -> None:
    fault = fault_of(status_error(code, error_code))
    assert (fault.kind, fault.action) == (kind, action)
    assert fault.message.startswith(f"HTTP {code}: ")
    assert not fault.billable


def test_lost_answers_may_have_been_billed() -> None:
    for error, kind in (
        (openai.APITimeoutError(ASKED), Kind.TIMEOUT),
        (TimeoutError(), Kind.TIMEOUT),
        (openai.APIConnectionError(request=ASKED), Kind.CONNECTION),
        (ValueError("no JSON"), Kind.SERVER_ERROR),
    ):
        fault = fault_of(error)
        assert (fault.kind, fault.action, fault.billable) == (kind, Action.RETRY, True)


def test_defects_are_no_faults() -> None:
    assert classify(KeyError("defect"), Redactor(None), NOW) is None


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after": " 3 "}, 3.0),
        ({"retry-after": formatdate(NOW + 90, usegmt=True)}, 90.0),
        ({"retry-after": formatdate(NOW - 90, usegmt=True)}, 0.0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-4"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": ""}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds


def test_retry_after_reaches_the_fault() -> None:
    assert fault_of(status_error(429, **{"Retry-After": "7"})).retry_after_s == 7.0
    assert fault_of(status_error(503, **{"Retry-After": "3"})).retry_after_s == 3.0


def test_messages_are_one_short_line_without_the_key() -> None:
    fault = fault_of(status_error(500, message="the key sk-secret-42\nfailed " + "x" * 999), key="sk-secret-42")
    assert "sk-secret" not in fault.message
    assert "[redacted]" in fault.message
    assert "\n" not in fault.message
    assert len(fault.message) <= MAX_MESSAGE_CHARS


def test_a_servers_words_on_a_key_are_not_repeated() -> None:
    assert "sk-par" not in fault_of(status_error(401, message="Incorrect key sk-par***42")).message


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [(401, "DM-LLM-002", "API key"), (403, "DM-LLM-002", "no right"), (404, "DM-LLM-003", "no model `m`"),
     (429, "DM-LLM-004", "longer than it is worth")],
)  # fmt: skip
def test_stop_errors_say_what_to_do(status: int, code: str, words: str) -> None:
    error = stop_error(Fault(Kind.BAD_REQUEST, Action.STOP, "why", status=status), "host/v1", "m", "MY_KEY")
    assert error.code == code
    assert words in str(error)
    assert "fix: " in str(error)
    assert "(why)" in str(error)
