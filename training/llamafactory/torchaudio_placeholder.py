"""Lets LLaMA-Factory be imported where torchaudio is not installed.

LLaMA-Factory 0.9.5 imports torchaudio when it starts, for audio samples alone. Where the package is absent a module
takes its place whose every use says so; where it is installed nothing happens. Cost: one look into `sys.path`.
"""

import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import Any, Final

MESSAGE: Final = "torchaudio is not installed: audio samples need it"


class _Placeholder(ModuleType):
    """Stands in for torchaudio; any attribute a program asks of it raises."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what the import system and inspect ask of every module
            raise AttributeError(name)
        raise ImportError(MESSAGE)


def install() -> bool:
    """Register the placeholder when torchaudio is absent; must run before LLaMA-Factory is imported.

    Returns:
        Whether a placeholder is in place.
    """
    present = sys.modules.get("torchaudio")
    if present is not None:
        return isinstance(present, _Placeholder)
    if importlib.util.find_spec("torchaudio") is not None:
        return False
    module = _Placeholder("torchaudio", MESSAGE)
    module.__spec__ = importlib.machinery.ModuleSpec("torchaudio", None)
    sys.modules["torchaudio"] = module
    return True
