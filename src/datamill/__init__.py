"""datamill: a sentence in, a reviewed workflow, clean data out, a model trained on the rows that matter.

Importing this package is light: public names are resolved on first use (PEP 562), and none of torch, ray,
pyspark, langgraph or pandas is loaded until something needs it.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "Plan": "datamill.workflows.plan",
    "DatamillError": "datamill.errors",
    "ask": "datamill.api",
    "load": "datamill.api",
    "train": "datamill.api",
    "aask": "datamill.api",
    "Workflow": "datamill.api",
}

__all__ = ["DatamillError", "Plan", "Workflow", "__version__", "aask", "ask", "load", "train"]


def __getattr__(name: str) -> Any:
    """Resolve a public name on first use."""
    module = _PUBLIC.get(name)
    if module is None:
        raise AttributeError(f"module 'datamill' has no attribute {name!r}")
    return getattr(import_module(module), name)
