"""Case 57: only answers that passed the schema are stored; a second run asks for the missing ones alone."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field
from support.scripted_server import ScriptedServer, Step, by_text, reply, status

from datamill.services.llm.client import LLMClient
from datamill.services.llm.config import ServiceConfig
from datamill.services.llm.exchange import Kind, Message, Request, Result

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "57-bad-answer-stored-in-cache"
pytestmark = pytest.mark.skipif(not CASE.is_dir(), reason="the shared cases are not here")


class Score(BaseModel):
    score: int = Field(ge=1, le=5)


def texts() -> list[str]:
    return [json.loads(line)["text"] for line in (CASE / "in.jsonl").read_text().splitlines()]


def steps(run: str) -> dict[str, list[Step]]:
    script: dict[str, str] = json.loads((CASE / "script.json").read_text())[run]
    return {f"doc {number}": [as_step(answer)] for number, answer in script.items()}


def as_step(answer: str) -> Step:
    return status(int(answer.split()[1]), retry_after=0.01) if answer.startswith("HTTP") else reply(answer)


def ask_all(server: ScriptedServer, cache: Path) -> list[Result]:
    config = ServiceConfig(
        base_url=server.base_url, model="m", max_rpm=100_000, max_tpm=10**9, cache_dir=cache,
        max_retries=0, max_repairs=0, max_rate_limited=1,
    )  # fmt: skip
    requests = [Request([Message("user", text)], schema=Score) for text in texts()]
    return list(LLMClient(config).run_requests(requests))


def scores(results: list[Result]) -> list[Any]:
    return [result.reply.value.score if result.reply else result.kind for result in results]


def asked(server: ScriptedServer) -> list[str]:
    return sorted(seen.text for seen in server.seen)


def test_second_run_makes_two_calls_and_damage_costs_one(tmp_path: Path) -> None:
    with ScriptedServer(by_text(steps("run_1"))) as server:
        assert scores(ask_all(server, tmp_path)) == [4, Kind.INVALID_REPLY, 2, Kind.RATE_LIMITED]
        assert len(list(tmp_path.rglob("*.json"))) == 2, "only what passed is stored"

        server.seen.clear()
        server.script = by_text(steps("run_2"))
        assert scores(ask_all(server, tmp_path)) == [4, 1, 2, 5]
        assert asked(server) == ["doc 2", "doc 4"]

        entries = sorted(tmp_path.rglob("*.json"))
        assert len(entries) == 4
        server.script = by_text({text: [reply({"score": 3})] for text in texts()})
        for damage in (b"", b"not json", entries[0].read_bytes()[:-9], entries[1].read_bytes()):
            server.seen.clear()
            entries[0].write_bytes(damage)
            answers = scores(ask_all(server, tmp_path))
            assert len(server.seen) == 1, f"one damaged entry costs one call: {damage!r}"
            assert sum(score == 3 for score in answers) == 1
        server.seen.clear()
        entries[2].unlink()
        ask_all(server, tmp_path)
        assert len(server.seen) == 1, "a deleted entry costs one call"

        server.seen.clear()
        ask_all(server, tmp_path)
        assert server.seen == [], "nothing is asked when all is stored"
