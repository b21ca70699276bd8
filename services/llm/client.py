"""Chat completions for whole batches: one answer per request, in order, under limits, budget and cache.

For every request exactly one `Result` comes back, accepted or failed with its last error. Failed calls alone are
repeated: timeouts, dropped connections, 5xx and truncated answers with exponential backoff; 429 by pausing all
workers for as long as the server says, without using up retries; replies that break the schema by telling the model
what was wrong. A wrong key, an unknown model or a spent budget stops everything at once; answers already paid for
are finished, stored, and free on the next run.

Cost: one thread with an event loop per batch; memory for four times `concurrency` requests.
"""

import asyncio
import logging
import os
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError, Future, wait
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import xxhash

from datamill.errors import DatamillError
from datamill.services.llm.budget import Budget, Prices, prompt_bound
from datamill.services.llm.cache import Entry, ReplyCache
from datamill.services.llm.config import ServiceConfig, read_config
from datamill.services.llm.exchange import Kind, Message, Rejection, Reply, Request, Result
from datamill.services.llm.faults import Action, Fault, stop_error
from datamill.services.llm.limiter import Clock, Gate, Limiter, Sleep
from datamill.services.llm.replies import ReplyError, parse_reply
from datamill.services.llm.session import Completion, Session, request_body
from datamill.services.llm.store import open_store
from datamill.services.llm.usage import STORE_NAME, Usage, UsageLog

LOOK_AHEAD: Final = 4
MAX_BACKOFF_S: Final = 60.0
MAX_TRUNCATIONS: Final = 2
SETTLE_POLL_S: Final = 0.02
SHUTDOWN_S: Final = 5.0

log = logging.getLogger("datamill.llm")


class LLMClient:
    """A configured endpoint with its cache, limits, budget and usage table.

    Args:
        config: where to send and how much; `read_config` makes one from plain data.
        clock: monotonic seconds, for the limiter.
        sleep: awaitable pause; tests pass one that only moves the clock.
        env: where the key is looked up at the moment of sending.
    """

    def __init__(
        self,
        config: ServiceConfig,
        *,
        clock: Clock = time.monotonic,
        sleep: Sleep = asyncio.sleep,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.config = config
        self._sleep = sleep
        self._env = os.environ if env is None else env
        self.cache = ReplyCache(config.cache_dir)
        self.limiter = Limiter(
            open_store(config.state_dir, "llm_limits"), config.max_rpm, config.max_tpm, clock=clock, sleep=sleep
        )
        prices = Prices(config.usd_per_million_input, config.usd_per_million_output)
        self.budget = Budget(
            open_store(config.state_dir, "llm_budget"), prices, config.budget_usd, config.budget_tokens
        )
        self.usage = UsageLog(open_store(config.state_dir, STORE_NAME))

    @classmethod
    def from_settings(cls, data: Mapping[str, Any] | None) -> "LLMClient":
        """A client from `Context.settings["llm"]`.

        Raises:
            DatamillError: `DM-LLM-001` when no endpoint is configured.
        """
        return cls(read_config(data))

    def ask(self, request: Request) -> Result:
        """The result of one request; see `run_requests`."""
        return next(self.run_requests([request]))

    def run_requests(self, requests: Iterable[Request]) -> Iterator[Result]:
        """Answer `requests` concurrently and yield one result each, in their order.

        `requests` is consumed a few ahead of what is yielded. Closing the iterator, or Ctrl-C while it waits, drops
        the calls in flight; accepted replies are in the cache by then.

        Raises:
            DatamillError: `DM-LLM-001` no model; `DM-LLM-002` no or wrong key; `DM-LLM-003` unknown model or address;
                `DM-LLM-004` a limit too long to wait for; `DM-LLM-010` (exit code 7) budget used up.
        """
        with _event_loop() as loop:
            batch = _Batch(self.config, self._env)
            pending: deque[Future[Result]] = deque()
            try:
                for request in requests:
                    pending.append(asyncio.run_coroutine_threadsafe(self._answer(batch, request), loop))
                    if len(pending) >= LOOK_AHEAD * self.config.concurrency:
                        yield pending.popleft().result()
                while pending:
                    yield pending.popleft().result()
            except (DatamillError, CancelledError):
                if batch.stopped is None:
                    raise
                wait(pending)  # calls in flight are paid for: let them end and be stored
                raise batch.stopped from None
            finally:
                batch.close(loop)

    async def _answer(self, batch: "_Batch", request: Request) -> Result:
        """A cached reply or a new one; equal requests in one batch are asked once."""
        model = request.model or self.config.model
        if not model:
            raise DatamillError("DM-LLM-001", "no LLM model is configured", fix="set llm.model in datamill.toml")
        key = request.key(model, f"{batch.session.endpoint}#{self.config.structured}")
        async with batch.member(), batch.lock(key):
            entry = self.cache.get(key)
            known = judge(request, entry.raw) if entry else None
            if isinstance(known, Reply):
                self.usage.add(request.node, Usage(requests=1, cached=1))
                return Result(Reply(known.raw, known.value, cached=True))
            conversation = _Conversation(self, batch, request, model, key)
            try:
                return await conversation.run()
            except DatamillError as error:
                batch.stop(error)
                raise
            finally:
                self.usage.add(request.node, conversation.usage)


def judge(request: Request, raw: str) -> Reply | Rejection:
    """Whether `raw` answers `request`: its schema first, then the caller's own check."""
    value = None
    if request.schema is not None:
        try:
            value = parse_reply(raw, request.schema)
        except ReplyError as error:
            return Rejection(Kind.INVALID_REPLY, str(error))
    elif not raw.strip():
        return Rejection(Kind.INVALID_REPLY, "the reply is empty")
    reply = Reply(raw, value)
    return (request.check(reply) if request.check else None) or reply


def backoff_s(first: float, attempt: int, key: str) -> float:
    """Pause before repeat number `attempt` (from 1): doubling, at most a minute, half of it jittered by `key`."""
    full = min(MAX_BACKOFF_S, first * 2.0 ** (attempt - 1))
    jitter = xxhash.xxh3_64_intdigest(f"{key}\0{attempt}".encode()) / 2.0**64
    return full * (0.5 + 0.5 * jitter)


class _Batch:
    """What the requests of one `run_requests` share; lives in its event loop."""

    def __init__(self, config: ServiceConfig, env: Mapping[str, str]) -> None:
        self.session = Session(config, env)
        self.gate = Gate(config.concurrency)
        self.stopped: DatamillError | None = None
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}
        self._tasks: set[asyncio.Task[Any] | None] = set()
        self._sending: set[asyncio.Task[Any] | None] = set()

    @asynccontextmanager
    async def member(self) -> AsyncIterator[None]:
        """The current task belongs to the batch and ends with it."""
        if self.stopped:
            raise self.stopped
        task = asyncio.current_task()
        self._tasks.add(task)
        try:
            yield
        finally:
            self._tasks.discard(task)

    @contextmanager
    def sending(self) -> Iterator[None]:
        """The current task has a call in flight, which is let end when the batch stops."""
        task = asyncio.current_task()
        self._sending.add(task)
        try:
            yield
        finally:
            self._sending.discard(task)

    def stop(self, error: DatamillError) -> None:
        """No further call is sent; the first error is the one reported."""
        self.stopped = self.stopped or error
        for task in self._tasks - self._sending - {asyncio.current_task()}:
            if task is not None:
                task.cancel()

    def lock(self, key: str) -> "_Held":
        return _Held(self._locks, key)

    def close(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel what is still running and close the connections."""

        async def shut() -> None:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.session.close()

        asyncio.run_coroutine_threadsafe(shut(), loop).result(SHUTDOWN_S)


class _Held:
    """A lock by name that is forgotten once nobody waits for it."""

    def __init__(self, locks: dict[str, tuple[asyncio.Lock, int]], key: str) -> None:
        self._locks, self._key = locks, key

    async def __aenter__(self) -> None:
        lock, users = self._locks.get(self._key, (asyncio.Lock(), 0))
        self._locks[self._key] = (lock, users + 1)
        await lock.acquire()

    async def __aexit__(self, *_error: object) -> None:
        lock, users = self._locks[self._key]
        lock.release()
        if users == 1:
            del self._locks[self._key]
        else:
            self._locks[self._key] = (lock, users - 1)


@dataclass
class _Conversation:
    """All calls that one request takes."""

    client: LLMClient
    batch: _Batch
    request: Request
    model: str
    key: str
    calls: int = 0
    retries: int = 0
    rate_limited: int = 0
    repairs: int = 0
    truncations: int = 0
    failed: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    pico_usd: int = 0
    messages: list[Message] = field(default_factory=list)
    limit: int = 0

    @property
    def usage(self) -> Usage:
        calls_again = max(0, self.calls - self.rate_limited - 1)
        return Usage(
            1,
            self.calls,
            0,
            self.failed,
            calls_again,
            self.rate_limited,
            self.tokens_in,
            self.tokens_out,
            self.pico_usd,
        )

    async def run(self) -> Result:
        self.messages, self.limit = list(self.request.messages), self.request.max_tokens
        while True:
            answer = await self._call()
            result = await (self._after_fault(answer) if isinstance(answer, Fault) else self._after_answer(answer))
            if result is not None:
                self.failed = 0 if result.ok else 1
                return result
            if self.batch.stopped:
                raise self.batch.stopped

    async def _call(self) -> Completion | Fault:
        """One call inside gate, limits and budget."""
        client, batch = self.client, self.batch
        body = request_body(client.config, self.request, self.messages, self.limit)
        body["model"] = self.model
        tokens_in = prompt_bound(self.messages, len(str(self.request.json_schema() or "")))
        estimate = tokens_in // 3 + self.limit
        throttled = success = False
        await batch.gate.enter()
        try:
            await client.limiter.acquire(estimate)
            answer = await self._send(body, tokens_in)
            success = isinstance(answer, Completion)
            if isinstance(answer, Fault) and answer.action is Action.WAIT:
                throttled = True
                self._pause(answer)
        finally:
            await batch.gate.leave(success=success, throttled=throttled)
        if isinstance(answer, Completion) and answer.tokens_in is not None and answer.tokens_out is not None:
            client.limiter.refund(estimate, answer.tokens_in + answer.tokens_out)
        return answer

    async def _send(self, body: dict[str, Any], tokens_in: int) -> Completion | Fault:
        budget = self.client.budget
        while (held := budget.reserve(tokens_in, self.limit)) is None:
            await self.client._sleep(SETTLE_POLL_S)
        used = (tokens_in, self.limit)  # what a lost answer is charged
        self.calls += 1
        try:
            with self.batch.sending():
                answer = await self.batch.session.send(body)
            if isinstance(answer, Completion):
                used = (_or(answer.tokens_in, tokens_in), _or(answer.tokens_out, self.limit))
            elif not answer.billable:
                used = (0, 0)
            return answer
        finally:
            self.tokens_in += used[0]
            self.tokens_out += used[1]
            self.pico_usd += budget.settle(held, *used)

    def _pause(self, fault: Fault) -> None:
        """Stop all workers for as long as the server asks, or for a growing while when it does not say."""
        self.rate_limited += 1
        pause = fault.retry_after_s
        if pause is None:
            pause = backoff_s(self.client.config.backoff_s, self.rate_limited, self.key)
        if pause > self.client.config.max_wait_s:
            raise self._stop(fault)
        log.info("%s: rate limited, all workers wait %.2f s", self.request.node, pause)
        self.client.limiter.pause(pause)

    async def _after_fault(self, fault: Fault) -> Result | None:
        """None when the call is to be repeated."""
        config = self.client.config
        if fault.action is Action.STOP:
            raise self._stop(fault)
        if fault.action is Action.WAIT:
            return self._failure(fault.kind, fault.message) if self.rate_limited >= config.max_rate_limited else None
        if fault.action is Action.GIVE_UP or self.retries >= config.max_retries:
            return self._failure(fault.kind, fault.message)
        self.retries += 1
        pause = backoff_s(config.backoff_s, self.retries, self.key)
        log.info("%s: %s, retry %d of %d", self.request.node, fault.message, self.retries, config.max_retries)
        await self.client._sleep(max(pause, min(fault.retry_after_s or 0.0, config.max_wait_s)))
        return None

    async def _after_answer(self, answer: Completion) -> Result | None:
        """None when the model is to be asked again."""
        if answer.refusal:
            return self._failure(Kind.REFUSED, answer.refusal, answer.text)
        if answer.finish == "content_filter":
            return self._failure(Kind.CONTENT_FILTER, "the endpoint's content filter stopped the reply", answer.text)
        if answer.finish == "length":
            return self._truncated(answer)
        verdict = judge(self.request, answer.text)
        if isinstance(verdict, Reply):
            self.client.cache.put(self.key, Entry(answer.text, self.tokens_in, self.tokens_out))
            return Result(Reply(answer.text, verdict.value, self.tokens_in, self.tokens_out), attempts=self.calls)
        if self.repairs >= self.client.config.max_repairs:
            return self._failure(verdict.kind, verdict.message, answer.text)
        self.repairs += 1
        self.messages = [
            *self.request.messages,
            Message("assistant", answer.text or "(empty)"),
            Message("user", f"That reply cannot be used: {verdict.message}. Give the complete corrected reply only."),
        ]
        return None

    def _truncated(self, answer: Completion) -> Result | None:
        """Ask again with twice the room, a bounded number of times."""
        if self.truncations >= min(MAX_TRUNCATIONS, self.client.config.max_retries):
            return self._failure(Kind.TRUNCATED, f"the reply was cut off at {self.limit} tokens", answer.text)
        self.truncations += 1
        self.limit *= 2
        return None

    def _failure(self, kind: str, message: str, raw: str | None = None) -> Result:
        return Result(kind=str(kind), last_error=message, attempts=self.calls, raw=raw)

    def _stop(self, fault: Fault) -> DatamillError:
        return stop_error(fault, self.batch.session.endpoint, self.model, self.client.config.api_key_env)


def _or(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value


@contextmanager
def _event_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop in a thread of its own, so that the caller can be interrupted while it waits."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="datamill-llm", daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
