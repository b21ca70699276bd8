"""The event stream of a run: one JSON object a line in `events.jsonl`, and the same objects to listeners.

Events are the only way news leaves a run; the command line, the report and a page all read them. A listener that
raises does not disturb the run's files: its error is raised after the event is written.
"""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson

Listener = Callable[[Mapping[str, Any]], None]
Clock = Callable[[], float]


def silent(_event: Mapping[str, Any]) -> None:
    """A listener that does nothing."""


class EventStream:
    """Appends events to a file and hands them to a listener.

    Args:
        path: the file; None keeps events in the process.
        listener: called with every event.
        clock: seconds since the epoch.
    """

    def __init__(self, path: Path | None, listener: Listener = silent, clock: Clock = time.time) -> None:
        self.path = path
        self.listener = listener
        self.clock = clock

    def emit(self, kind: str, /, **facts: Any) -> None:
        """Write one event; the line is written whole with a single append."""
        event = {"time": round(self.clock(), 3), "event": kind, **facts}
        if self.path is not None:
            with self.path.open("ab") as stream:
                stream.write(orjson.dumps(event, default=str, option=orjson.OPT_NON_STR_KEYS) + b"\n")
        self.listener(event)


def read_events(path: Path) -> list[dict[str, Any]]:
    """Events of a run in order; a line cut off by a crash at the end of the file is left out."""
    if not path.is_file():
        return []
    events = []
    for line in path.read_bytes().split(b"\n"):
        try:
            events.append(orjson.loads(line))
        except orjson.JSONDecodeError:
            continue  # only the unfinished last line of a killed run, or the empty tail
    return events
