"""Case 54: a service that answers 429 with Retry-After; nothing is lost, nothing is hammered."""

import json
from pathlib import Path

import pytest
from support.scripted_server import ScriptedServer, Seen, Step, reply, status

from datamill.errors import DatamillError, ExitCode
from datamill.services.llm.client import LLMClient
from datamill.services.llm.config import ServiceConfig
from datamill.services.llm.exchange import Message, Request, Result

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "54-rate-limit-and-retry-after"
pytestmark = pytest.mark.skipif(not CASE.is_dir(), reason="the shared cases are not here")

IN_FLIGHT_GRACE_S = 0.25
"""Calls on the wire when a 429 arrives cannot be called back; a busy machine delivers them late."""


def texts() -> list[str]:
    return [json.loads(line)["text"] for line in (CASE / "in.jsonl").read_text().splitlines()]


def limited(retry_after_s: float) -> ScriptedServer:
    script = json.loads((CASE / "server_script.json").read_text())
    refused = script["per_10_calls"]["429"]

    def step(seen: Seen) -> Step:
        if seen.number % 10 < refused:
            return status(429, "slow down", retry_after=retry_after_s)
        return reply(f"answer to {seen.text}")

    return ScriptedServer(step)


def ask_all(server: ScriptedServer) -> list[Result]:
    config = ServiceConfig(base_url=server.base_url, model="m", max_rpm=100_000, max_tpm=10**9, max_retries=0)
    return list(LLMClient(config).run_requests(Request([Message("user", text)]) for text in texts()))


def calls_while_waiting(server: ScriptedServer, wait_s: float) -> list[tuple[float, float]]:
    """Arrivals inside the waiting time of an earlier 429."""
    refusals = [at for at, code in server.answered if code == 429]
    return [
        (seen.at, refused)
        for seen in server.seen
        for refused in refusals
        if refused + IN_FLIGHT_GRACE_S < seen.at < refused + wait_s - 0.005
    ]


def assert_forty_in_forty_out(server: ScriptedServer, results: list[Result]) -> None:
    answers = [result.reply.raw if result.reply else None for result in results]
    assert answers == [f"answer to {text}" for text in texts()], "one answer per row, in order"
    good = [code for _, code in server.answered if code == 200]
    assert len(good) == 40, "no row is paid for twice"


def test_forty_rows_in_forty_out_although_no_retry_is_allowed() -> None:
    with limited(0.4) as server:
        results = ask_all(server)
    assert_forty_in_forty_out(server, results)
    assert sum(code == 429 for _, code in server.answered) >= 12
    assert calls_while_waiting(server, 0.4) == []


@pytest.mark.slow
def test_with_the_two_seconds_of_the_script() -> None:
    with limited(json.loads((CASE / "server_script.json").read_text())["retry_after_s"]) as server:
        results = ask_all(server)
    assert_forty_in_forty_out(server, results)
    assert calls_while_waiting(server, 2.0) == []


def test_control_the_check_sees_a_call_that_came_too_early() -> None:
    with limited(0.4) as server:
        server.answered.append((10.0, 429))
        server.seen.append(Seen(10.3, 0, "/", {}, {}))
        assert calls_while_waiting(server, 0.4) == [(10.3, 10.0)]


def test_401_stops_at_once_with_a_message_on_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong-1234567890")
    with ScriptedServer(lambda _seen: status(401, "Incorrect API key provided: sk-wrong-1234567890")) as server:
        with pytest.raises(DatamillError) as stop:
            ask_all(server)
        assert len(server.seen) == 1, "no retries and no other rows"
    assert stop.value.code == "DM-LLM-002"
    assert stop.value.exit_code == ExitCode.STEP_FAILED
    assert "API key" in str(stop.value)
    assert "export OPENAI_API_KEY" in str(stop.value)
    assert "sk-wrong" not in str(stop.value)
