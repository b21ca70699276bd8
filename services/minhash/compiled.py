"""The one way to compile a function here: numba, no GIL, machine code kept on disk.

Machine code is kept beside the source; where that folder cannot be written (a system-wide install), in the user's
cache folder; where that cannot be written either, in a temporary folder of this process.
"""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

from datamill.settings import cache_home

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile `function` with numba in nopython mode and keep the machine code on disk."""
    return cast("F", numba.njit(nogil=True, cache=True, error_model="numpy")(function))


def choose_cache(beside: Path, fallback: Path) -> Path | None:
    """Where machine code may be kept: None for beside the source, else `fallback` or a fresh temporary folder."""
    if os.environ.get("NUMBA_CACHE_DIR") or _writable(beside / "__pycache__"):
        return None
    return fallback if _writable(fallback) else Path(tempfile.mkdtemp(prefix="datamill-numba-"))


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


if (_folder := choose_cache(Path(__file__).parent, cache_home() / "numba")) is not None:
    numba.config.CACHE_DIR = str(_folder)
