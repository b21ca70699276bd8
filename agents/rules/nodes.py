"""A step before it has an id: capability, parameters, where the request speaks of it, and why."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from datamill.agents.rules.intents import Wanted
from datamill.agents.rules.reading import Reading


@dataclass
class Node:
    """One wished step.

    Attributes:
        capability: catalogue id.
        params: parameters said or implied; names are the operator's own.
        position: where the request speaks of it, for the order of words.
        why: the words of the request.
        unmet: what part of the wish no installed operator fulfils; such a node becomes a missing capability.
        offered: what to do instead, when the table's default does not fit.
        follows: capability of a step that must come first, whatever the phases say.
    """

    capability: str
    params: dict[str, Any] = field(default_factory=dict)
    position: int = 0
    why: str = ""
    unmet: str = ""
    offered: str = ""
    follows: tuple[str, ...] = ()


Builder = Callable[[Reading, Wanted], list[Node]]


def node(reading: Reading, wanted: Wanted, params: dict[str, Any] | None = None, capability: str = "") -> Node:
    """A node for an operator word, quoting its clause; parameters that are None are left out."""
    said = {name: value for name, value in (params or {}).items() if value is not None}
    return Node(capability or wanted.capability, said, wanted.start, reading.request.quote(wanted.start, wanted.end))
