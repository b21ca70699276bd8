"""Accepted replies on disk, one file per request, keyed by content.

Only replies that passed validation are put here, so a failed call is asked again by the next run and nothing else
is. An entry carries a checksum of itself: a damaged or deleted one is a miss and costs exactly one call. Entries are
written by rename, so any number of processes may share the folder. Format: `<aa>/<key>.json`.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datamill.services.llm.store import read_json, write_atomic


@dataclass(frozen=True, slots=True)
class Entry:
    """A stored reply: its text and what it cost when it was asked for."""

    raw: str
    tokens_in: int
    tokens_out: int


class ReplyCache:
    """Folder of accepted replies; `None` as folder stores nothing."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def get(self, key: str) -> Entry | None:
        """The reply stored under `key`, None when there is none or its file is damaged."""
        if self.folder is None:
            return None
        data = read_json(self.path(key))
        try:
            entry = Entry(str(data["raw"]), int(data["tokens_in"]), int(data["tokens_out"]))
        except (KeyError, TypeError, ValueError):
            return None
        return entry if data.get("checksum") == _checksum(key, entry) else None

    def put(self, key: str, entry: Entry) -> None:
        """Store `entry`; the last of several writers wins."""
        if self.folder is None:
            return
        path = self.path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        data: dict[str, Any] = {
            "raw": entry.raw,
            "tokens_in": entry.tokens_in,
            "tokens_out": entry.tokens_out,
            "checksum": _checksum(key, entry),
        }
        write_atomic(path, json.dumps(data), durable=True)

    def path(self, key: str) -> Path:
        """The file that holds, or would hold, the reply of `key`."""
        assert self.folder is not None
        return self.folder / key[:2] / f"{key}.json"


def _checksum(key: str, entry: Entry) -> str:
    text = json.dumps([key, entry.raw, entry.tokens_in, entry.tokens_out])
    return hashlib.sha256(text.encode()).hexdigest()
