"""All calls that one request takes: limits, budget, retries, repairs, until it is accepted or given up."""

import logging
from dataclasses import dataclass, field
from typing import Any, Final

import xxhash

from datamill.errors import DatamillError
from datamill.services.llm.batch import Batch
from datamill.services.llm.budget import Budget, prompt_bound
from datamill.services.llm.cache import Entry, ReplyCache
from datamill.services.llm.config import ServiceConfig
from datamill.services.llm.exchange import Kind, Message, Rejection, Reply, Request, Result
from datamill.services.llm.faults import Action, Fault, stop_error
from datamill.services.llm.limiter import Limiter, Sleep
from datamill.services.llm.replies import ReplyError, parse_reply
from datamill.services.llm.session import Completion, request_body
from datamill.services.llm.usage import Usage

MAX_BACKOFF_S: Final = 60.0
MAX_TRUNCATIONS: Final = 2
SETTLE_POLL_S: Final = 0.02

log = logging.getLogger("datamill.llm")


@dataclass(frozen=True)
class Services:
    """What every conversation of a client uses."""

    config: ServiceConfig
    cache: ReplyCache
    limiter: Limiter
    budget: Budget
    sleep: Sleep


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


@dataclass
class Conversation:
    """All calls that one request takes."""

    services: Services
    batch: Batch
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
        """Counters of this request for the usage table."""
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
        """Calls until the request is accepted or given up.

        Raises:
            DatamillError: when no request of the batch can succeed.
        """
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
        services, batch = self.services, self.batch
        body = request_body(services.config, self.request, self.messages, self.limit)
        body["model"] = self.model
        tokens_in = prompt_bound(self.messages, len(str(self.request.json_schema() or "")))
        estimate = tokens_in // 3 + self.limit
        throttled = success = False
        await batch.gate.enter()
        try:
            await services.limiter.acquire(estimate)
            answer = await self._send(body, tokens_in)
            success = isinstance(answer, Completion)
            if isinstance(answer, Fault) and answer.action is Action.WAIT:
                throttled = True
                self._pause(answer)
        finally:
            await batch.gate.leave(success=success, throttled=throttled)
        if isinstance(answer, Completion) and answer.tokens_in is not None and answer.tokens_out is not None:
            services.limiter.refund(estimate, answer.tokens_in + answer.tokens_out)
        return answer

    async def _send(self, body: dict[str, Any], tokens_in: int) -> Completion | Fault:
        budget = self.services.budget
        while (held := budget.reserve(tokens_in, self.limit)) is None:
            await self.services.sleep(SETTLE_POLL_S)
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
            pause = backoff_s(self.services.config.backoff_s, self.rate_limited, self.key)
        if pause > self.services.config.max_wait_s:
            raise self._stop(fault)
        log.info("%s: rate limited, all workers wait %.2f s", self.request.node, pause)
        self.services.limiter.pause(pause)

    async def _after_fault(self, fault: Fault) -> Result | None:
        """None when the call is to be repeated."""
        config = self.services.config
        if fault.action is Action.STOP:
            raise self._stop(fault)
        if fault.action is Action.WAIT:
            return self._failure(fault.kind, fault.message) if self.rate_limited >= config.max_rate_limited else None
        if fault.action is Action.GIVE_UP or self.retries >= config.max_retries:
            return self._failure(fault.kind, fault.message)
        self.retries += 1
        pause = backoff_s(config.backoff_s, self.retries, self.key)
        log.info("%s: %s, retry %d of %d", self.request.node, fault.message, self.retries, config.max_retries)
        await self.services.sleep(max(pause, min(fault.retry_after_s or 0.0, config.max_wait_s)))
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
            self.services.cache.put(self.key, Entry(answer.text, self.tokens_in, self.tokens_out))
            return Result(Reply(answer.text, verdict.value, self.tokens_in, self.tokens_out), attempts=self.calls)
        if self.repairs >= self.services.config.max_repairs:
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
        if self.truncations >= min(MAX_TRUNCATIONS, self.services.config.max_retries):
            return self._failure(Kind.TRUNCATED, f"the reply was cut off at {self.limit} tokens", answer.text)
        self.truncations += 1
        self.limit *= 2
        return None

    def _failure(self, kind: str, message: str, raw: str | None = None) -> Result:
        return Result(kind=str(kind), last_error=message, attempts=self.calls, raw=raw)

    def _stop(self, fault: Fault) -> DatamillError:
        return stop_error(fault, self.batch.session.endpoint, self.model, self.services.config.api_key_env)


def _or(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value
