"""Files that are either not there or whole, and named points at which a crash can be rehearsed.

The order of every commit is: write under a temporary name in the same folder, fsync the file, rename, fsync the
folder. Around each of these a *commit point* is passed. With `DATAMILL_CRASH_AT=<point>[:<n>]` in the environment
the process kills itself (SIGKILL) the n-th time it passes that point; the crash tests visit all of them.
"""

import hashlib
import json
import os
import platform
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

CRASH_VARIABLE = "DATAMILL_CRASH_AT"
TEMPORARY_MARK = ".tmp-"

_passed: dict[str, int] = {}


def commit_point(name: str) -> None:
    """Pass the commit point `name`; dies here when a rehearsal asks for it."""
    wanted = os.environ.get(CRASH_VARIABLE)
    if not wanted:
        return
    point, _, count = wanted.partition(":")
    if point == name:
        _passed[name] = _passed.get(name, 0) + 1
        if _passed[name] >= int(count or 1):
            os.kill(os.getpid(), signal.SIGKILL)


def temporary_name(path: Path) -> Path:
    """A name beside `path` that no other process uses and no reader takes for data."""
    return path.with_name(f"{path.name}{TEMPORARY_MARK}{os.getpid()}-{_host()}-{os.urandom(4).hex()}")


def _host() -> str:
    """This machine in eight digits: on storage that several share, a process number alone says nothing."""
    return hashlib.sha256(platform.node().encode()).hexdigest()[:8]


@contextmanager
def atomic_path(path: Path, point: str) -> Iterator[Path]:
    """Yield a temporary path; on success it is fsynced and renamed to `path`, on failure removed.

    Args:
        path: final name; its folder is made.
        point: base name of the commit points `<point>.written` and `<point>.renamed`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_name(path)
    try:
        yield temporary
        fsync(temporary)
        commit_point(f"{point}.written")
        temporary.replace(path)
        fsync(path.parent)
        commit_point(f"{point}.renamed")
    finally:
        temporary.unlink(missing_ok=True)


def write_bytes(path: Path, data: bytes, point: str) -> None:
    """Write `data` to `path` atomically."""
    with atomic_path(path, point) as temporary:
        temporary.write_bytes(data)


def write_json(path: Path, value: Any, point: str) -> None:
    """Write `value` as JSON to `path` atomically, keys in the order given."""
    text = json.dumps(value, ensure_ascii=False, indent=1, default=str)
    write_bytes(path, text.encode("utf-8", "replace"), point)


def write_with(path: Path, point: str, writer: Callable[[IO[bytes]], None]) -> None:
    """Let `writer` fill a binary stream that becomes `path` atomically."""
    with atomic_path(path, point) as temporary, temporary.open("wb") as stream:
        writer(stream)


def fsync(path: Path) -> None:
    """Flush a file or folder to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_leftovers(folder: Path) -> int:
    """Delete temporary files and folders that killed processes left in `folder`; returns how many.

    Files of processes that are alive, or of another machine, stay: another run may be writing them right now.
    """
    removed = 0
    for path in _temporaries(folder):
        owner, _, rest = path.name.rsplit(TEMPORARY_MARK, 1)[-1].partition("-")
        if owner.isdigit() and rest.split("-")[0] == _host() and not _alive(int(owner)):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
            removed += 1
    return removed


def _temporaries(folder: Path) -> list[Path]:
    """Temporary files and folders below `folder`; what another run renames or removes meanwhile is passed over."""
    return [
        Path(parent, name)
        for parent, folders, files in os.walk(folder)
        for name in sorted((*folders, *files))
        if TEMPORARY_MARK in name
    ]


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
