"""Chat completions for whole batches: one answer per request, in order, under limits, budget and cache.

For every request exactly one `Result` comes back, accepted or failed with its last error. Failed calls alone are
repeated: timeouts, dropped connections, 5xx and truncated answers with exponential backoff; 429 by pausing all
workers for as long as the server says, without using up retries; replies that break the schema by telling the model
what was wrong. A wrong key, an unknown model or a spent budget stops everything at once; answers already paid for
are finished, stored, and free on the next run.

Cost: one thread with an event loop per batch; memory for four times `concurrency` requests.
"""

import asyncio
import os
import time
from collections import deque
from collections.abc import Generator, Iterable, Mapping
from concurrent.futures import CancelledError, Future, wait
from typing import Any, Final

from datamill.errors import DatamillError
from datamill.services.llm.batch import Batch, event_loop
from datamill.services.llm.budget import Budget, Prices
from datamill.services.llm.cache import ReplyCache
from datamill.services.llm.config import ServiceConfig, read_config
from datamill.services.llm.conversation import Conversation, Services, judge
from datamill.services.llm.exchange import Reply, Request, Result
from datamill.services.llm.limiter import Clock, Limiter, Sleep
from datamill.services.llm.session import Session
from datamill.services.llm.store import open_store
from datamill.services.llm.usage import STORE_NAME, Usage, UsageLog

LOOK_AHEAD: Final = 4


class LLMClient:
    """A configured endpoint with its cache, limits, budget and usage table.

    Args:
        config: where to send and how much; `read_config` makes one from plain data.
        clock: monotonic seconds, for the limiter.
        sleep: awaitable pause; tests pass one that only moves the clock.
        env: where the key is looked up at the moment of sending; the process's environment when None.
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
        self._env = env  # never os.environ itself: whoever prints this object would print every secret of the process
        self.cache = ReplyCache(config.cache_dir)
        self.limiter = Limiter(
            open_store(config.state_dir, "llm_limits"), config.max_rpm, config.max_tpm, clock=clock, sleep=sleep
        )
        prices = Prices(config.usd_per_million_input, config.usd_per_million_output)
        self.budget = Budget(
            open_store(config.state_dir, "llm_budget"), prices, config.budget_usd, config.budget_tokens
        )
        self.usage = UsageLog(open_store(config.state_dir, STORE_NAME))
        self._services = Services(config, self.cache, self.limiter, self.budget, sleep)

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

    def run_requests(self, requests: Iterable[Request]) -> Generator[Result, None, None]:
        """Answer `requests` concurrently and yield one result each, in their order.

        `requests` is consumed a few ahead of what is yielded. Closing the iterator, or Ctrl-C while it waits, drops
        the calls in flight; accepted replies are in the cache by then.

        Raises:
            DatamillError: `DM-LLM-001` no model; `DM-LLM-002` no or wrong key; `DM-LLM-003` unknown model or address;
                `DM-LLM-004` a limit too long to wait for; `DM-LLM-010` (exit code 7) budget used up.
        """
        with event_loop() as loop:
            batch = Batch(Session(self.config, os.environ if self._env is None else self._env), self.config.concurrency)
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

    async def _answer(self, batch: "Batch", request: Request) -> Result:
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
            conversation = Conversation(self._services, batch, request, model, key)
            try:
                return await conversation.run()
            except DatamillError as error:
                batch.stop(error)
                raise
            finally:
                self.usage.add(request.node, conversation.usage)
