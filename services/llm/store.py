"""A small dictionary that several workers change without losing each other's writes.

Limits and budgets hold for a whole run, and a run has worker processes: their state lives in one JSON file that is
read, changed and replaced under an exclusive `flock`. `MemoryStore` is the same contract inside one process.
Cost: one lock, one read and one rename per change, about 0.1 ms; the caller makes a few changes per LLM request.
"""

import fcntl
import json
import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol

Data = dict[str, Any]


class Store(Protocol):
    """Shared JSON data with atomic changes."""

    def update(self) -> AbstractContextManager[Data]:
        """Context manager: yields the data; what was changed in it is kept when the block ends normally."""
        ...


class MemoryStore:
    """Shared by the threads of one process."""

    def __init__(self) -> None:
        self._data: Data = {}
        self._lock = threading.Lock()

    @contextmanager
    def update(self) -> Iterator[Data]:
        """Yield the data under the lock; a block that raises changes nothing."""
        with self._lock:
            draft: Data = json.loads(json.dumps(self._data))
            yield draft
            self._data = draft


class FileStore:
    """Shared by all processes that name the same file. A file that cannot be read as JSON starts empty again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def update(self) -> Iterator[Data]:
        """Yield the data under an exclusive lock; a block that raises changes nothing."""
        with self.path.with_suffix(".lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            data = read_json(self.path)
            yield data
            write_atomic(self.path, json.dumps(data, sort_keys=True))


def read_json(path: Path) -> Data:
    """The JSON object in `path`; empty when there is none or it is damaged."""
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def write_atomic(path: Path, text: str, *, durable: bool = False) -> None:
    """Replace `path` by `text` so that readers see the old or the new content, never a part.

    `durable` also outlives a power cut; without it the content outlives the process only.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    with draft.open("w", encoding="utf-8") as file:
        file.write(text)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    draft.replace(path)


def open_store(folder: Path | None, name: str) -> Store:
    """A file store `folder/name.json`, or a store of this process when no folder is given."""
    return MemoryStore() if folder is None else FileStore(folder / f"{name}.json")
