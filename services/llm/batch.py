"""What the requests of one batch share: an event loop in a thread, a session, the gate, and how all of it ends.

The loop has a thread of its own, so that the caller can be interrupted while it waits. A batch ends in one of three
ways: everything is answered; an error that concerns all requests stops it (calls in flight are let end, because
they are paid for, and nothing new is sent); or the caller goes away and every call is dropped.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

from datamill.errors import DatamillError
from datamill.services.llm.limiter import Gate
from datamill.services.llm.session import Session

SHUTDOWN_S: Final = 5.0


@contextmanager
def event_loop() -> Iterator[asyncio.AbstractEventLoop]:
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


class Batch:
    """What the requests of one `run_requests` share; lives in its event loop."""

    def __init__(self, session: Session, concurrency: int) -> None:
        self.session = session
        self.gate = Gate(concurrency)
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

    def lock(self, key: str) -> "HeldLock":
        """Async context manager: one holder per `key` at a time."""
        return HeldLock(self._locks, key)

    def close(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel what is still running and close the connections."""

        async def shut() -> None:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.session.close()

        asyncio.run_coroutine_threadsafe(shut(), loop).result(SHUTDOWN_S)


class HeldLock:
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
