"""What goes over the wire and what is read from it."""

import json
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from datamill.errors import DatamillError
from datamill.services.llm.config import Redactor, ServiceConfig
from datamill.services.llm.exchange import Message, Request
from datamill.services.llm.session import Completion, Session, read_completion, request_body

PLAIN = Redactor(None)


class Answer(BaseModel):
    text: str


def body(request: Request, **config: Any) -> dict[str, Any]:
    return request_body(ServiceConfig(model="default", **config), request, request.messages, request.max_tokens)


def test_a_plain_request() -> None:
    request = Request([Message("system", "be kind"), Message("user", "hi")], temperature=0.3, max_tokens=9, seed=4)
    assert body(request) == {
        "model": "default",
        "messages": [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hi"}],
        "temperature": 0.3,
        "max_tokens": 9,
        "seed": 4,
    }


def test_no_seed_is_sent_when_none_is_given_and_the_limit_has_its_configured_name() -> None:
    sent = body(Request([Message("user", "hi")]), token_limit="max_completion_tokens")
    assert "seed" not in sent
    assert sent["max_completion_tokens"] == 1024
    assert "max_tokens" not in sent


def test_a_request_names_its_own_model() -> None:
    assert body(Request([Message("user", "hi")], model="own"))["model"] == "own"


@pytest.mark.parametrize("mode", ["json_schema", "json_object", "prompt"])
def test_three_ways_to_ask_for_json(mode: Literal["json_schema", "json_object", "prompt"]) -> None:
    sent = body(Request([Message("user", "hi")], schema=Answer), structured=mode)
    content = sent["messages"][-1]["content"]
    if mode == "json_schema":
        assert sent["response_format"]["json_schema"] == {"name": "Answer", "schema": Answer.model_json_schema()}
        assert content == "hi"
    else:
        assert json.dumps(Answer.model_json_schema()) in content
        assert sent.get("response_format") == ({"type": "json_object"} if mode == "json_object" else None)


def test_lone_surrogates_can_be_sent() -> None:
    sent = body(Request([Message("user", "half \ud83d")]))
    assert json.dumps(sent, ensure_ascii=False).encode()


def completion(message: Any, **extra: Any) -> bytes:
    return json.dumps({"choices": [{"message": message, "finish_reason": "stop"}], **extra}).encode()


def test_a_completion_is_read() -> None:
    content = completion({"content": "hello"}, usage={"prompt_tokens": 3, "completion_tokens": 2})
    assert read_completion(content, PLAIN) == Completion("hello", "stop", None, 3, 2)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": None}, ""),
        ({}, ""),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "ab"),
        ({"content": 7}, ""),
    ],
)
def test_content_in_unusual_shapes(message: Any, text: str) -> None:
    assert read_completion(completion(message), PLAIN).text == text


@pytest.mark.parametrize(
    "usage", [None, {}, [], {"prompt_tokens": "many"}, {"prompt_tokens": -1}, {"prompt_tokens": True}]
)
def test_useless_usage_is_unknown(usage: Any) -> None:
    read = read_completion(completion({"content": "x"}, usage=usage), PLAIN)
    assert (read.tokens_in, read.tokens_out) == (None, None)


@pytest.mark.parametrize(
    "content", [b"", b"<html>", b"[]", b"null", b"{}", b'{"choices": []}', b'{"choices": [{"message": null}]}', b'"x"']
)
def test_what_is_no_completion_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_completion(content, PLAIN)


def test_a_key_that_comes_back_is_taken_out() -> None:
    read = read_completion(
        completion({"content": "your key: sk-secret", "refusal": "sk-secret no"}), Redactor("sk-secret")
    )
    assert read.text == "your key: [redacted]"
    assert read.refusal == "[redacted] no"


def test_a_remote_endpoint_needs_a_key_before_anything_is_sent() -> None:
    with pytest.raises(DatamillError, match="needs an API key") as refused:
        Session(ServiceConfig(base_url="https://llm.example/v1"), {})
    assert refused.value.code == "DM-LLM-002"
    assert "export OPENAI_API_KEY" in str(refused.value)
