"""Progress of a run as JSON lines: one object a line with `event`, `time` and the fields of that event.

Events: `start`, `plan`, `log`, `checkpoint`, `note`, `done`, `failed`. Readers must tolerate fields they do not know.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

EVENTS_FILE: Final = "events.jsonl"
EventCallback = Callable[[Mapping[str, Any]], None]


class EventWriter:
    """Appends events; a writer that is not active (ranks above 0) writes nothing."""

    def __init__(self, folder: Path, *, active: bool = True) -> None:
        self._path = folder / EVENTS_FILE
        self._active = active

    def emit(self, event: str, **fields: Any) -> None:
        """Append one event."""
        if not self._active:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps({"event": event, "time": time.time(), **fields}, default=str)
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(line + "\n")


class EventReader:
    """Follows an event file from a given offset; a line still being written is left for the next call."""

    def __init__(self, folder: Path, offset: int = 0) -> None:
        self._path = folder / EVENTS_FILE
        self._offset = offset

    def new(self) -> Iterator[dict[str, Any]]:
        """Events appended since the last call."""
        if not self._path.is_file():
            return
        with self._path.open("rb") as stream:
            stream.seek(self._offset)
            for line in stream:
                if not line.endswith(b"\n"):
                    return
                self._offset += len(line)
                yield json.loads(line)
