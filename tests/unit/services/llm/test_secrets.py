"""The key is nowhere but in the Authorization header."""

import logging
import pickle
from pathlib import Path

import pytest
from support.scripted_server import ScriptedServer, Seen, Step, garbage, hang, reply, status

from datamill.errors import DatamillError
from datamill.services.llm.client import LLMClient
from datamill.services.llm.config import ServiceConfig, worker_settings
from datamill.services.llm.exchange import Message, Request
from datamill.services.llm.session import Session
from datamill.settings import LLMSettings, Settings

KEY = "sk-planted-0123456789abcdef"
PIECES = (KEY, "planted-0123", "456789abcdef")


def echoing(seen: Seen) -> Step:
    """Every kind of answer, each quoting the header it was sent."""
    header = seen.headers["authorization"]
    steps = {
        "ok": reply(f"you sent {header}"),
        "refused": reply(None, refusal=f"not for {header}"),
        "400": status(400, f"bad header {header}"),
        "429": status(429, f"slow down {header}", retry_after=0.001),
        "500": status(500, f"failed on {header}"),
        "timeout": hang(5),
        "garbage": garbage(),
    }
    return steps.get(seen.text, status(401, f"Incorrect API key provided: {KEY[:10]}***{KEY[-4:]} / {header}"))


def assert_clean(what: str, text: str) -> None:
    for piece in PIECES:
        assert piece not in text, f"the key is in {what}"


def test_the_key_reaches_nothing_but_the_header(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    for name in ("openai", "httpx2", "httpcore2", "datamill"):
        logging.getLogger(name).setLevel(logging.DEBUG)
    with ScriptedServer(echoing) as server:
        settings = Settings(llm=LLMSettings(base_url=server.base_url, model="m"))
        data = worker_settings(
            settings, cache_dir=tmp_path / "cache", state_dir=tmp_path / "state",
            max_retries=1, max_rate_limited=2, backoff_s=0.001, timeout_s=1.0, max_rpm=10**6, max_tpm=10**9,
        )  # fmt: skip
        llm = LLMClient.from_settings(data)
        names = ("ok", "refused", "400", "429", "500", "timeout", "garbage")
        results = list(llm.run_requests(Request([Message("user", name)]) for name in names))
        with pytest.raises(DatamillError) as stop:
            llm.ask(Request([Message("user", "401")]))
        sent = {seen.headers["authorization"] for seen in server.seen}

    assert sent == {f"Bearer {KEY}"}, "control: the key was in use"
    assert [result.ok for result in results] == [True] + [False] * 6
    assert "[redacted]" in repr(results), "control: it did come back"
    assert caplog.records, "control: something was logged"
    assert_clean("results", repr(results))
    assert_clean("the error", str(stop.value) + repr(stop.value))
    chain = stop.value.__cause__ or stop.value.__context__
    assert_clean("the chain of the error", repr(chain) + repr(getattr(chain, "__dict__", "")))
    assert_clean("the pickled error", pickle.dumps(stop.value).decode("latin-1"))
    assert_clean("settings", repr(data) + repr(llm.config) + repr(vars(llm)) + repr(llm))
    for record in caplog.records:
        assert_clean(f"a log record of {record.name}", record.getMessage() + repr(record.args) + str(record.exc_text))
    out, err = capfd.readouterr()
    assert_clean("the terminal", out + err)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) >= 4, "control: cache and state were written"
    for path in files:
        assert_clean(str(path), path.read_bytes().decode("latin-1") + str(path))


def test_a_session_does_not_show_it() -> None:
    session = Session(ServiceConfig(base_url="https://llm.example/v1"), {"OPENAI_API_KEY": KEY})
    assert_clean("a session", repr(session) + repr(session.redact) + session.endpoint)


def test_a_proxy_is_not_used_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with ScriptedServer(lambda _seen: reply("direct")) as server:
        result = LLMClient(ServiceConfig(base_url=server.base_url, model="m", max_retries=0)).ask(
            Request([Message("user", "hello")])
        )
    assert result.reply is not None
    assert result.reply.raw == "direct"
