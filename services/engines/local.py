"""The embedded engine: worker processes over committed shards, streaming, with bounded memory.

It promises the same rows as the in-memory reference (`tables.TableDataset`) for any number of workers and shards.
Only file names travel between processes; at any time a worker holds one shard (or one shuffle partition).
Cost: one read and one write of every shard per primitive; with one worker, or one shard, everything runs in the
calling process and no worker is started. Workers end when this process does, however it ends.
"""

import multiprocessing
import os
import pickle
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import lru_cache
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from datamill.errors import DatamillError
from datamill.services.engines.protocol import Dataset, Shard
from datamill.services.engines.shards import ShardDataset

NOT_IN_WORKERS = ("agents", "api", "cli", "training")
Item = TypeVar("Item")
Result = TypeVar("Result")


class LocalEngine:
    """Runs functions over shards on the cores of this machine.

    Args:
        workers: worker processes; the number of usable cores when None.
        scratch: folder for intermediate files of global operators; a temporary folder when None.
    """

    def __init__(self, workers: int | None = None, scratch: Path | None = None) -> None:
        self.links: dict[str, str] = {}
        self.workers = workers or len(os.sched_getaffinity(0))
        self._pool: ProcessPoolExecutor | None = None
        self._scratch = scratch
        self._own_scratch: Path | None = None

    @property
    def scratch(self) -> Path:
        """Folder for intermediate files; removed on `close` when the engine made it."""
        if self._scratch is None:
            self._own_scratch = self._scratch = Path(tempfile.mkdtemp(prefix="datamill-"))
        self._scratch.mkdir(parents=True, exist_ok=True)
        return self._scratch

    def map_units(
        self, task: Callable[[Item], Result], items: Sequence[Item], *, parallel: bool = True, bound: str = "cpu"
    ) -> Iterator[tuple[int, Result]]:
        """Apply `task` to every item and yield `(index, result)` as results arrive, in any order.

        Args:
            task: picklable function.
            items: picklable arguments, usually shards.
            parallel: False keeps the work in this process (LLM steps share one limiter).
            bound: what limits the task; every task gets one process here.

        Raises:
            DatamillError: what the task raised; `DM-ENGINE-001` when a worker process died.
        """
        if not parallel or self.workers == 1 or len(items) < 2:
            yield from ((index, task(item)) for index, item in enumerate(items))
            return
        yield from self._map_in_pool(task, items)

    def _map_in_pool(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        waiting: dict[Future[Result], int] = {}
        remaining = iter(enumerate(items))
        try:
            while True:
                # at most two tasks a worker in flight: an interrupt has little to wait for
                while len(waiting) < 2 * self.workers and (nxt := next(remaining, None)) is not None:
                    waiting[self._submit(task, nxt[1])] = nxt[0]
                if not waiting:
                    return
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    yield waiting.pop(future), future.result()
        except BrokenProcessPool as error:
            self._pool = None
            message = "a worker process died (out of memory, or killed); finished units are kept"
            raise DatamillError(
                "DM-ENGINE-001", message, fix="run the same command again, with -j 1 if it recurs"
            ) from error
        finally:
            for future in waiting:
                future.cancel()

    def _submit(self, task: Callable[[Item], Result], item: Item) -> Future[Result]:
        if self._pool is None:
            context = _start_method()
            self._pool = ProcessPoolExecutor(
                self.workers, mp_context=context, initializer=_start_worker, initargs=(dict(os.environ),)
            )
        with _main_module_hidden():  # any submission may start one more worker
            return self._pool.submit(task, item)

    def dataset(self, shards: Sequence[Shard], schema: pa.Schema) -> Dataset:
        """Handle on committed shards."""
        return ShardDataset(tuple(shards), schema, self)

    def broadcast(self, value: Any, name: str) -> Path:
        """Make `value` readable by every worker; returns the file that `broadcast_value` takes."""
        path = self.scratch / f"broadcast-{name}.pickle"
        path.write_bytes(pickle.dumps(value))
        return path

    def close(self) -> None:
        """Stop workers and remove intermediate files."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None
        if self._own_scratch is not None:
            shutil.rmtree(self._own_scratch, ignore_errors=True)
            self._own_scratch = self._scratch = None

    def __enter__(self) -> "LocalEngine":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@lru_cache(maxsize=4)
def broadcast_value(path: Path) -> Any:
    """The value behind a broadcast file, read once per process."""
    return pickle.loads(path.read_bytes())  # noqa: S301  written by this run, in its own folder


def _start_method() -> BaseContext:
    """How workers start: on Linux forked from a server that imported what they need, once for all of them.

    The server imports and runs nothing else: the native threads that imports leave behind are idle, and no lock is
    held when it forks. It ends with this process. Measured for two workers: 0.7 CPU seconds where two fresh
    interpreters took 3.3.
    """
    if sys.platform != "linux":  # system libraries elsewhere do not bear a fork
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_preloaded())
    return context


def _preloaded() -> list[str]:
    """What of datamill, and of the compiler of its kernels, this process has imported already and workers will need."""
    package = __name__.partition(".")[0]
    own = [name.split(".") for name in sys.modules if name.startswith(f"{package}.")]
    needed = [".".join(parts) for parts in own if parts[1] not in NOT_IN_WORKERS]
    return [*needed, *(["numba"] if "numba" in sys.modules else [])]


def _start_worker(environment: dict[str, str]) -> None:
    """Workers leave Ctrl-C to the driver, which lets the shard in hand finish, and end when it is gone.

    `environment` is the driver's: the server that workers are forked from may be older than a change of it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.clear()
    os.environ.update(environment)
    threading.Thread(target=_end_with_driver, daemon=True).start()


def _end_with_driver() -> None:
    """Leave at once when the driver dies: what is half written has no name yet."""
    driver = multiprocessing.parent_process()
    if driver is not None:
        driver.join()
        os._exit(1)


@contextmanager
def _main_module_hidden() -> Iterator[None]:
    """Keep spawned workers from importing the caller's script, which would need a `__main__` guard."""
    main = sys.modules["__main__"]
    saved = {name: getattr(main, name) for name in ("__file__", "__spec__") if hasattr(main, name)}
    try:
        if "__file__" in saved:
            del main.__file__
        main.__spec__ = None
        yield
    finally:
        for name, value in saved.items():
            setattr(main, name, value)
