"""Limits against closed forms: no 60 second window holds more than the allowance, and the allowance is used."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datamill.services.llm.limiter import BURST_SHARE, Gate, Limiter
from datamill.services.llm.store import MemoryStore, open_store


class Time:
    """A clock that only sleeping moves."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds


def limiter(time: Time, rpm: int = 60, tpm: int = 10**9, store: Any = None) -> Limiter:
    return Limiter(store or MemoryStore(), rpm, tpm, clock=time.clock, sleep=time.sleep)


def admit(rpm: int, tpm: int, tokens: Sequence[int]) -> list[float]:
    time = Time()
    limit = limiter(time, rpm, tpm)

    async def run() -> list[float]:
        times = []
        for need in tokens:
            await limit.acquire(need)
            times.append(time.now)
        return times

    return asyncio.run(run())


def busiest_minute(times: Sequence[float], amounts: Sequence[float]) -> float:
    return max(
        sum(amount for at, amount in zip(times, amounts, strict=True) if start <= at < start + 60 - 1e-6)
        for start in times
    )


@given(st.integers(1, 400), st.integers(1, 120))
@settings(max_examples=60, deadline=None)
def test_no_minute_has_more_requests_than_allowed(rpm: int, count: int) -> None:
    times = admit(rpm, 10**9, [1] * count)
    assert busiest_minute(times, [1] * count) <= rpm


@given(st.integers(600, 60_000), st.lists(st.integers(1, 100), min_size=1, max_size=100))
@settings(max_examples=60, deadline=None)
def test_no_minute_has_more_tokens_than_allowed(tpm: int, tokens: list[int]) -> None:
    times = admit(10**6, tpm, tokens)
    assert busiest_minute(times, tokens) <= tpm + 1e-3


def test_the_allowance_is_used_in_the_long_run() -> None:
    times = admit(60, 10**9, [1] * 600)
    burst = 60 // BURST_SHARE
    expected = (600 - burst) / ((60 - burst + 1) / 60)
    assert times[-1] - times[0] == pytest.approx(expected, rel=1e-6)


def test_a_burst_goes_at_once_and_no_more() -> None:
    times = admit(60, 10**9, [1] * 11)
    assert times[9] == times[0]
    assert times[10] > times[0]


def test_one_a_minute() -> None:
    assert [at - 1000 for at in admit(1, 10**9, [1, 1, 1])] == pytest.approx([0, 60, 120], abs=1e-6)


def test_a_request_above_the_token_allowance_is_sent_and_paid_off() -> None:
    times = admit(10**6, 600, [1000, 1])
    assert times[0] == 1000.0
    assert times[1] - times[0] == pytest.approx((1000 - 100 + 1) / (500 / 60), rel=1e-6)


def test_refund_makes_room_again() -> None:
    async def waited(refund: int) -> float:
        time = Time()
        limit = limiter(time, 10**6, 600)
        await limit.acquire(100)
        limit.refund(100, 100 - refund)
        await limit.acquire(50)
        return time.now - 1000

    assert asyncio.run(waited(0)) == pytest.approx(50 / (500 / 60), rel=1e-6)
    assert asyncio.run(waited(60)) == 0.0


def test_pause_holds_everyone_and_the_longest_counts() -> None:
    time, store = Time(), MemoryStore()
    first, second = limiter(time, store=store), limiter(time, store=store)

    async def run() -> float:
        first.pause(30)
        first.pause(5)
        await second.acquire(1)
        return time.now

    assert asyncio.run(run()) == pytest.approx(1030, abs=1e-6)


def test_two_workers_share_one_allowance(tmp_path: Path) -> None:
    time = Time()
    workers = [limiter(time, 12, 10**9, open_store(tmp_path, "limits")) for _ in range(2)]

    async def run() -> list[float]:
        times = []
        for number in range(24):
            await workers[number % 2].acquire(1)
            times.append(time.now)
        return times

    assert busiest_minute(asyncio.run(run()), [1] * 24) <= 12


def test_a_clock_that_jumped_back_starts_afresh() -> None:
    time, store = Time(10_000.0), MemoryStore()

    async def run() -> float:
        limiter(time, store=store).pause(500)
        await limiter(time, store=store).acquire(1)
        time.now = 5.0
        await limiter(time, store=store).acquire(1)
        return time.now

    assert asyncio.run(run()) == 5.0


def test_gate_starts_with_one_grows_by_success_and_halves() -> None:
    async def run() -> list[int]:
        gate, seen = Gate(8), []
        for _ in range(7):
            seen.append(gate.window)
            await gate.enter()
            await gate.leave(success=True)
        seen.append(gate.window)
        await gate.enter()
        await gate.leave(throttled=True)
        seen.append(gate.window)
        for _ in range(4):
            await gate.enter()
            await gate.leave(success=True)
        seen.append(gate.window)
        return seen

    assert asyncio.run(run()) == [1, 2, 3, 4, 5, 6, 7, 8, 4, 4]


def test_gate_never_lets_more_in_than_its_window() -> None:
    async def run() -> int:
        gate, inside, most = Gate(3), 0, 0

        async def visit() -> None:
            nonlocal inside, most
            await gate.enter()
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1
            await gate.leave(success=True)

        await asyncio.gather(*(visit() for _ in range(30)))
        return most

    assert asyncio.run(run()) == 3


def test_gate_never_closes() -> None:
    async def run() -> int:
        gate = Gate(4)
        for _ in range(20):
            await gate.enter()
            await gate.leave(throttled=True)
        return gate.window

    assert asyncio.run(run()) == 1
