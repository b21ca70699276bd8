"""The client against a scripted server: order, retries, repairs, limits, budget, interruption."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field
from support.scripted_server import (
    ScriptedServer,
    Seen,
    Step,
    by_text,
    drop,
    garbage,
    hang,
    in_order,
    reply,
    status,
    truncate,
)

from datamill.errors import DatamillError
from datamill.services.llm.client import LOOK_AHEAD, LLMClient
from datamill.services.llm.config import ServiceConfig
from datamill.services.llm.conversation import backoff_s
from datamill.services.llm.exchange import Kind, Message, Rejection, Reply, Request, Result
from datamill.services.llm.usage import Usage, read_usage


class Score(BaseModel):
    score: int = Field(ge=1, le=5)


def client(server: ScriptedServer, **config: Any) -> LLMClient:
    settings = {"model": "m", "max_rpm": 10**6, "max_tpm": 10**9, "timeout_s": 5.0, "backoff_s": 0.001} | config
    return LLMClient(ServiceConfig(base_url=server.base_url, **settings))


def question(text: str = "q", **fields: Any) -> Request:
    return Request([Message("user", text)], **fields)


def echo(seen: Seen) -> Step:
    return reply(f"answer to {seen.text}")


def test_answers_keep_the_order_although_they_arrive_mixed_up() -> None:
    def script(seen: Seen) -> Step:
        return reply(seen.text, delay_s=0.03 if int(seen.text[1:]) % 3 == 0 else 0.0)

    with ScriptedServer(script) as server:
        results = list(client(server).run_requests(question(f"q{n}") for n in range(60)))
        assert 2 <= server.max_in_flight <= 8
    assert [result.reply.raw for result in results if result.reply] == [f"q{n}" for n in range(60)]


def test_no_requests_no_calls() -> None:
    with ScriptedServer(echo) as server:
        assert list(client(server).run_requests([])) == []
        assert server.seen == []


def test_requests_are_taken_a_bounded_number_ahead() -> None:
    taken = 0

    def source() -> Iterator[Request]:
        nonlocal taken
        for number in range(1000):
            taken += 1
            yield question(f"q{number}")

    with ScriptedServer(echo) as server:
        answers = client(server, concurrency=2).run_requests(source())
        next(answers)
        answers.close()
    assert taken <= 2 * LOOK_AHEAD + 1


@pytest.mark.parametrize(
    "step",
    [drop(), truncate(), garbage(), hang(5), status(500), status(503, retry_after=0.01), status(408)],
    ids=["drop", "truncate", "garbage", "timeout", "500", "503", "408"],
)
def test_passing_failures_are_tried_again(step: Step) -> None:
    with ScriptedServer(in_order([step, step], then=reply("fine"))) as server:
        result = client(server, timeout_s=0.3 if step.delay_s else 10.0).ask(question())
        assert len(server.seen) == 3
    assert result.reply is not None
    assert (result.reply.raw, result.attempts) == ("fine", 3)


@pytest.mark.parametrize(
    ("step", "kind", "words"),
    [
        (drop(), Kind.CONNECTION, "connection failed"),
        (garbage(), Kind.SERVER_ERROR, "unreadable answer"),
        (hang(5), Kind.TIMEOUT, "no answer in time"),
        (status(500, "out of memory"), Kind.SERVER_ERROR, "HTTP 500: out of memory"),
    ],
    ids=["drop", "garbage", "timeout", "500"],
)
def test_lasting_failures_end_after_the_retries_with_the_last_error(step: Step, kind: Kind, words: str) -> None:
    with ScriptedServer(in_order([step])) as server:
        llm = client(server, timeout_s=0.1 if step.delay_s else 10.0, max_retries=2)
        result = llm.ask(question())
        assert len(server.seen) == 3
    assert not result.ok
    assert (result.kind, result.attempts) == (kind, 3)
    assert words in str(result.last_error)
    assert llm.usage.by_node()["llm"].retries == 2
    assert llm.usage.by_node()["llm"].failed == 1


def test_only_the_failed_are_asked_again() -> None:
    with ScriptedServer(by_text({"q3": [status(500), reply("late")]}, then=reply("ok"))) as server:
        results = list(client(server).run_requests(question(f"q{n}") for n in range(6)))
        texts = [seen.text for seen in server.seen]
    assert [result.reply.raw for result in results if result.reply] == ["ok", "ok", "ok", "late", "ok", "ok"]
    assert sorted(texts) == ["q0", "q1", "q2", "q3", "q3", "q4", "q5"]


def test_a_refused_connection_is_a_failure_of_the_call() -> None:
    with ScriptedServer(echo) as server:
        pass
    result = client(server, max_retries=1).ask(question())
    assert (result.kind, result.attempts) == (Kind.CONNECTION, 2)


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (reply(None, refusal="I will not"), Kind.REFUSED),
        (reply("half", finish="content_filter"), Kind.CONTENT_FILTER),
        (status(400, "filtered", error_code="content_filter"), Kind.CONTENT_FILTER),
        (status(400, "too long", error_code="context_length_exceeded"), Kind.BAD_REQUEST),
    ],
    ids=["refusal", "finish", "400 filter", "400"],
)
def test_what_no_retry_can_change_is_asked_once(step: Step, kind: Kind) -> None:
    with ScriptedServer(in_order([step])) as server:
        result = client(server).ask(question())
        assert len(server.seen) == 1
    assert (result.kind, result.attempts) == (kind, 1)
    assert result.last_error


def test_a_truncated_reply_gets_more_room_a_bounded_number_of_times() -> None:
    with ScriptedServer(in_order([reply('{"score"', finish="length"), reply({"score": 2})])) as server:
        result = client(server).ask(question(schema=Score, max_tokens=10))
        assert [seen.body["max_tokens"] for seen in server.seen] == [10, 20]
    assert result.reply is not None
    with ScriptedServer(in_order([reply("and so", finish="length")])) as server:
        result = client(server).ask(question(max_tokens=10))
        assert [seen.body["max_tokens"] for seen in server.seen] == [10, 20, 40]
    assert (result.kind, result.raw) == (Kind.TRUNCATED, "and so")


def test_the_model_is_told_what_was_wrong_with_its_reply() -> None:
    with ScriptedServer(in_order([reply({"score": 9}), reply({"score": 4})])) as server:
        result = client(server).ask(question("rate", schema=Score))
        second = server.seen[1].body["messages"]
    assert result.reply is not None
    assert result.reply.value == Score(score=4)
    assert [message["role"] for message in second] == ["user", "assistant", "user"]
    assert second[1]["content"] == '{"score": 9}'
    assert "score: Input should be less than or equal to 5" in second[2]["content"]


def test_replies_that_stay_invalid_fail_and_keep_the_raw_text() -> None:
    with ScriptedServer(in_order([reply("no json")])) as server:
        result = client(server, max_repairs=2).ask(question(schema=Score))
        assert len(server.seen) == 3
    assert (result.reply, result.kind, result.raw) == (None, Kind.INVALID_REPLY, "no json")
    assert "no JSON object" in str(result.last_error)


def test_an_empty_reply_is_no_answer() -> None:
    with ScriptedServer(in_order([reply(" \n")])) as server:
        assert client(server, max_repairs=0).ask(question()).kind == Kind.INVALID_REPLY


def test_a_callers_check_decides_and_names_the_failure() -> None:
    def check(answer: Reply) -> Rejection | None:
        return None if answer.raw == "good" else Rejection("too_bad", f"{answer.raw!r} is not good")

    with ScriptedServer(in_order([reply("bad"), reply("good")])) as server:
        accepted = client(server).ask(question(check=check))
        assert "'bad' is not good" in server.seen[1].text
    assert accepted.ok
    with ScriptedServer(in_order([reply("bad")])) as server:
        refused = client(server, max_repairs=1).ask(question(check=check))
    assert (refused.kind, refused.last_error) == ("too_bad", "'bad' is not good")


def test_rate_limits_do_not_use_up_retries() -> None:
    with ScriptedServer(in_order([status(429, retry_after=0.01)] * 6, then=reply("at last"))) as server:
        llm = client(server, max_retries=0)
        result = llm.ask(question())
    assert result.ok
    assert llm.usage.by_node()["llm"] == Usage(1, 7, 0, 0, 0, 6, 10, 5, 0)


def test_without_retry_after_the_pauses_grow() -> None:
    with ScriptedServer(in_order([status(429)] * 5, then=reply("at last"))) as server:
        assert client(server, backoff_s=0.02).ask(question()).ok
        gaps = [later.at - sooner.at for sooner, later in zip(server.seen, server.seen[1:], strict=False)]
    for number, gap in enumerate(gaps):
        assert gap >= 0.02 * 2**number / 2


def test_endless_rate_limits_fail_in_the_end() -> None:
    with ScriptedServer(in_order([status(429, retry_after=0.001)])) as server:
        result = client(server, max_rate_limited=4).ask(question())
        assert len(server.seen) == 4
    assert result.kind == Kind.RATE_LIMITED


def test_a_wait_that_is_too_long_stops_the_run() -> None:
    with ScriptedServer(in_order([status(429, "daily limit", retry_after=86_400)])) as server:
        with pytest.raises(DatamillError) as stop:
            client(server).ask(question())
        assert len(server.seen) == 1
    assert stop.value.code == "DM-LLM-004"


def test_a_pause_reaches_the_other_worker_of_the_run(tmp_path: Path) -> None:
    with ScriptedServer(in_order([status(429, retry_after=0.4)], then=reply("ok"))) as server:
        first = client(server, state_dir=tmp_path, max_rate_limited=1)
        assert first.ask(question()).kind == Kind.RATE_LIMITED
        assert client(server, state_dir=tmp_path).ask(question("other")).ok
        assert server.seen[1].at - server.answered[0][0] >= 0.39


@pytest.mark.parametrize(("code", "expected"), [(401, "DM-LLM-002"), (403, "DM-LLM-002"), (404, "DM-LLM-003")])
def test_what_concerns_every_request_stops_at_once(code: int, expected: str) -> None:
    with ScriptedServer(in_order([status(code)])) as server:
        with pytest.raises(DatamillError) as stop:
            list(client(server).run_requests(question(f"q{n}") for n in range(50)))
        assert len(server.seen) == 1
    assert stop.value.code == expected


def test_a_stop_in_the_middle_keeps_what_came_before_and_lets_calls_in_flight_end(tmp_path: Path) -> None:
    def script(seen: Seen) -> Step:
        if seen.text == "q20":
            return status(401)
        return reply(seen.text, delay_s=0.1 if int(seen.text[1:]) > 20 else 0.0)

    with ScriptedServer(script) as server:
        got: list[Result] = []
        answers = client(server, cache_dir=tmp_path).run_requests(question(f"q{n}") for n in range(200))
        with pytest.raises(DatamillError):
            got.extend(answers)
        paid = len(server.seen) - 1
    assert len(got) == 20
    assert paid < 60
    assert len(list(tmp_path.rglob("*.json"))) == paid, "every answer that was paid for is kept"


def test_no_model_is_an_error_before_anything_is_sent() -> None:
    with ScriptedServer(echo) as server:
        with pytest.raises(DatamillError, match="no LLM model") as refused:
            client(server, model=None).ask(question())
        assert server.seen == []
    assert refused.value.code == "DM-LLM-001"


def test_a_defect_in_a_check_is_not_swallowed() -> None:
    def check(_reply: Reply) -> Rejection | None:
        raise ZeroDivisionError

    with ScriptedServer(echo) as server, pytest.raises(ZeroDivisionError):
        list(client(server).run_requests(question(f"q{n}", check=check) for n in range(20)))


def test_equal_requests_of_a_batch_are_asked_once(tmp_path: Path) -> None:
    with ScriptedServer(echo) as server:
        results = list(client(server, cache_dir=tmp_path).run_requests([question("same")] * 30))
        assert len(server.seen) == 1
    assert len(results) == 30
    assert sum(result.reply.cached for result in results if result.reply) == 29


def test_the_cache_key_covers_what_the_answer_depends_on(tmp_path: Path) -> None:
    variants = [
        question("a"), question("b"), question("a", temperature=0.5), question("a", seed=1), question("a", seed=2),
        question("a", max_tokens=7), question("a", model="other"), question('{"score": 1}', schema=Score),
        Request([Message("system", "a")]), Request([Message("user", "a"), Message("user", "")]),
    ]  # fmt: skip
    with ScriptedServer(lambda _seen: reply({"score": 1})) as server:
        llm = client(server, cache_dir=tmp_path)
        for request in (*variants, *variants):
            assert llm.ask(request).ok
        assert len(server.seen) == len(variants)
        assert llm.ask(question("a", node="elsewhere")).reply is not None
        assert len(server.seen) == len(variants), "who asks does not matter"
    assert llm.usage.by_node()["elsewhere"] == Usage(requests=1, cached=1)


def test_a_stored_reply_must_pass_the_check_of_today(tmp_path: Path) -> None:
    with ScriptedServer(in_order([reply("old"), reply("new")])) as server:
        llm = client(server, cache_dir=tmp_path)
        assert llm.ask(question()).ok
        strict = question(check=lambda r: None if r.raw == "new" else Rejection("stale", "old"))
        fresh = llm.ask(strict)
        assert len(server.seen) == 2
    assert fresh.reply is not None
    assert not fresh.reply.cached


BILLED = 40 + 60
"""Tokens of a call of the next tests; the request reserves an upper bound of 50 + 60."""


def billing(_seen: Seen) -> Step:
    return reply("x", usage=(40, 60), delay_s=0.005)


@pytest.mark.parametrize("concurrency", [1, 8])
def test_the_budget_is_never_passed(concurrency: int, tmp_path: Path) -> None:
    """The server counts what it bills; at one dollar a million tokens the budget is 5,000 tokens."""
    with ScriptedServer(billing) as server:
        llm = client(
            server, concurrency=concurrency, budget_usd=0.005, usd_per_million_input=1.0, usd_per_million_output=1.0,
            cache_dir=tmp_path,
        )  # fmt: skip
        with pytest.raises(DatamillError) as stop:
            list(llm.run_requests(question(f"q{n}", max_tokens=60) for n in range(200)))
        billed = BILLED * len(server.seen)
    assert stop.value.code == "DM-LLM-010"
    assert stop.value.exit_code == 7
    assert billed <= 5000
    assert billed >= 5000 - 120, "and it is used before the run stops"
    assert llm.budget.spent()["tokens"] == billed
    assert len(list(tmp_path.rglob("*.json"))) == len(server.seen), "all paid answers are kept"


def test_lost_answers_are_charged_their_reservation() -> None:
    with ScriptedServer(in_order([hang(5)])) as server:
        llm = client(server, timeout_s=0.1, max_retries=0, budget_tokens=10_000)
        llm.ask(question("1234567890", max_tokens=100))
    assert llm.budget.spent()["tokens"] >= 110
    with ScriptedServer(in_order([status(500)])) as server:
        llm = client(server, max_retries=0, budget_tokens=10_000)
        llm.ask(question())
    assert llm.budget.spent()["tokens"] == 0


def test_without_usage_in_the_reply_the_reservation_counts() -> None:
    with ScriptedServer(in_order([reply("x", usage=None)])) as server:
        llm = client(server)
        result = llm.ask(question("abc", max_tokens=50))
    assert result.reply is not None
    assert result.reply.tokens_out == 50
    assert result.reply.tokens_in >= 3


BUDGET_WORKER = """
import sys
from pathlib import Path
from datamill.errors import DatamillError
from datamill.services.llm.client import LLMClient
from datamill.services.llm.config import ServiceConfig
from datamill.services.llm.exchange import Message, Request
config = ServiceConfig(base_url=sys.argv[1], model="m", max_rpm=10**6, max_tpm=10**9, budget_tokens=4000,
                       state_dir=Path(sys.argv[2]))
requests = (Request([Message("user", f"{sys.argv[3]} {n}")], max_tokens=60) for n in range(100))
try:
    list(LLMClient(config).run_requests(requests))
except DatamillError as error:
    sys.exit(int(error.exit_code))
"""


def test_two_processes_share_one_budget(tmp_path: Path) -> None:
    with ScriptedServer(billing) as server:
        command = [sys.executable, "-c", BUDGET_WORKER, server.base_url, str(tmp_path)]
        workers = [subprocess.Popen([*command, name]) for name in "ab"]
        assert [worker.wait(60) for worker in workers] == [7, 7]
        assert 3780 <= BILLED * len(server.seen) <= 4000
        assert read_usage(tmp_path)["llm"].calls == len(server.seen), "usage of both is added up"


INTERRUPTED = """
import sys
from pathlib import Path
from datamill.services.llm.client import LLMClient
from datamill.services.llm.config import ServiceConfig
from datamill.services.llm.exchange import Message, Request
config = ServiceConfig(base_url=sys.argv[1], model="m", max_rpm=10**6, max_tpm=10**9, timeout_s=60,
                       cache_dir=Path(sys.argv[2]))
for result in LLMClient(config).run_requests(Request([Message("user", f"q{n}")]) for n in range(100)):
    print(result.reply.raw, flush=True)
"""


def test_ctrl_c_ends_at_once_and_keeps_what_was_answered(tmp_path: Path) -> None:
    with ScriptedServer(lambda seen: hang(30) if int(seen.text[1:]) >= 10 else reply(seen.text)) as server:
        command = [sys.executable, "-c", INTERRUPTED, server.base_url, str(tmp_path)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert child.stdout is not None
        assert [child.stdout.readline().strip() for _ in range(10)] == [f"q{n}" for n in range(10)]
        started = time.monotonic()
        os.kill(child.pid, signal.SIGINT)
        _, errors = child.communicate(timeout=20)
        assert time.monotonic() - started < 5
    assert "KeyboardInterrupt" in errors
    assert child.returncode in {-signal.SIGINT, 130, 1}
    assert len(list(tmp_path.rglob("*.json"))) == 10


def test_backoff_doubles_is_jittered_by_key_and_bounded() -> None:
    for attempt in range(1, 12):
        full = min(60.0, 0.5 * 2 ** (attempt - 1))
        pauses = [backoff_s(0.5, attempt, f"key {n}") for n in range(200)]
        assert all(full / 2 <= pause <= full for pause in pauses)
        assert max(pauses) - min(pauses) > full / 3, "jittered"
    assert backoff_s(0.5, 3, "k") == backoff_s(0.5, 3, "k"), "and reproducible"
