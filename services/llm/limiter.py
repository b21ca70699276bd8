"""Requests and tokens per minute for all workers of a run, and the pauses a server asks for.

Two token buckets. A bucket starts full with a sixth of a minute's allowance and refills so slowly that no window of
60 seconds sees more than the allowance: starting burst plus refill stay within it. A 429 moves `resume_at`, before
which no worker sends, and the `Gate` of the worker that got it halves its requests in flight. The clock is monotonic
and shared by processes of one machine; time running backwards means a reboot and resets the state.
Cost: one store change per request and per wait.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from datamill.services.llm.store import Store

WINDOW_S: Final = 60.0
BURST_SHARE: Final = 6

Clock = Callable[[], float]
Sleep = Callable[[float], Awaitable[Any]]


class Limiter:
    """Admission of requests; see the module text for the guarantee."""

    def __init__(
        self,
        store: Store,
        max_rpm: int,
        max_tpm: int,
        *,
        clock: Clock = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._store = store
        self._buckets = {"requests": _Bucket(max_rpm, smallest=1), "tokens": _Bucket(max_tpm)}
        self._clock = clock
        self._sleep = sleep

    async def acquire(self, tokens: int) -> None:
        """Wait until a request of about `tokens` tokens may be sent."""
        while True:
            wait = self._try(tokens)
            if wait == 0:
                return
            await self._sleep(wait)

    def refund(self, estimated: int, used: int) -> None:
        """Correct the token bucket once the server has said what a request really used."""
        with self._store.update() as data:
            self._buckets["tokens"].credit(data.setdefault("tokens", {}), estimated - used)

    def pause(self, seconds: float) -> None:
        """No worker of the run sends for `seconds`; a longer pause already set stays."""
        with self._store.update() as data:
            data["resume_at"] = max(data.get("resume_at", -math.inf), self._clock() + seconds)

    def _try(self, tokens: int) -> float:
        """Take the allowance and return 0, or the seconds after which to try again."""
        with self._store.update() as data:
            now = self._clock()
            if data.get("now", now) > now:
                data.clear()
            data["now"] = now
            needs = {"requests": 1, "tokens": tokens}
            waits: list[float] = [data.get("resume_at", now) - now]
            waits += [b.wait(data.setdefault(n, {}), needs[n], now) for n, b in self._buckets.items()]
            if max(waits) > 0:
                return max(waits)
            for name, bucket in self._buckets.items():
                bucket.credit(data[name], -needs[name])
        return 0.0


class Gate:
    """Requests in flight in this process, as TCP Reno sizes its window.

    One at first, so that a wrong key costs one call; one more per success until the first 429, which halves the
    window; from then on one more per round of successes.
    """

    def __init__(self, concurrency: int) -> None:
        self._most = float(concurrency)
        self._window = 1.0
        self._threshold = self._most
        self._in_flight = 0
        self._changed = asyncio.Condition()

    @property
    def window(self) -> int:
        """Requests that may be in flight now."""
        return int(self._window)

    async def enter(self) -> None:
        """Wait for a place; pair with `leave`."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._in_flight < self.window)
            self._in_flight += 1

    async def leave(self, *, success: bool = False, throttled: bool = False) -> None:
        """Give the place back; `throttled` when the server answered 429."""
        async with self._changed:
            self._in_flight -= 1
            if throttled:
                self._window = self._threshold = max(1.0, self._window / 2)
            elif success:
                step = 1.0 if self._window < self._threshold else 1 / self._window
                self._window = min(self._most, self._window + step)
            self._changed.notify_all()


class _Bucket:
    """Arithmetic of one bucket; its level and time live in the shared data."""

    def __init__(self, per_minute: int, smallest: int = 0) -> None:
        burst = per_minute / BURST_SHARE
        self.capacity = float(max(smallest, math.floor(burst))) if smallest else burst
        # A window holds less than capacity + rate * 60 = allowance + smallest, so at most the allowance in wholes.
        self.rate = (per_minute - self.capacity + smallest) / WINDOW_S

    def wait(self, state: dict[str, float], need: float, now: float) -> float:
        """Seconds until `need` is there; a need above the capacity waits for a full bucket and goes into debt."""
        elapsed = now - state.get("at", now)
        state["level"] = min(self.capacity, state.get("level", self.capacity) + elapsed * self.rate)
        state["at"] = now
        missing = min(need, self.capacity) - state["level"]
        return missing / self.rate + 1e-9 if missing > 1e-9 else 0.0

    def credit(self, state: dict[str, float], amount: float) -> None:
        """Give `amount` back, or take it when negative."""
        state["level"] = min(self.capacity, state.get("level", self.capacity) + amount)
