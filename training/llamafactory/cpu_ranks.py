"""Resuming on several CPU ranks: torch learns to load a checkpoint onto `cpu:0`.

Accelerate calls the device of a CPU rank `cpu:<rank>`, transformers hands that to `torch.load` as `map_location` when
several ranks resume, and torch 2.13 restores storages to `cpu` only: it raises "don't know how to restore data
location". There is one CPU memory, so the storage is right where it is.
"""

import re
from typing import Any, Final

_CPU_RANK: Final = re.compile(r"cpu:\d+")
_PRIORITY: Final = 15  # after torch's own entry for `cpu`, which is asked first


def install() -> None:
    """Add the location to torch's registry, once per process."""
    import torch

    registry = torch.serialization._package_registry
    if not any(entry[2] is _restore for entry in registry):
        torch.serialization.register_package(_PRIORITY, _tag, _restore)


def _tag(_storage: Any) -> None:
    """No storage is ever saved under this name."""


def _restore(storage: Any, location: str) -> Any:
    return storage if _CPU_RANK.fullmatch(location) else None
