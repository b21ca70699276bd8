"""Words of users for each capability, in English, Chinese, Portuguese and Spanish, as patterns over folded text.

An `operation` names a thing to do ("dedup"), so a negation in front forbids it. A `defect` names what should not be
in the data ("duplicates"): "no duplicates" asks for removal, while "don't remove duplicates" forbids it.
"""

import re
from dataclasses import dataclass
from typing import Literal

from datamill.agents.rules.request import MODEL, NAME, PATH, QUOTED, URL

Kind = Literal["operation", "defect"]


@dataclass(frozen=True, slots=True)
class Cue:
    """A pattern that speaks for a capability."""

    capability: str
    kind: Kind
    pattern: re.Pattern[str]


def cue(capability: str, kind: Kind, *parts: str) -> Cue:
    """A cue from alternatives; a masked name counts as a word of its own."""
    named = f"{PATH}{URL}{QUOTED}{NAME}{MODEL}"
    spelled = (part.replace(r"\w+ ", rf"[\w{named}]+ ") for part in parts)
    return Cue(capability, kind, re.compile("|".join(spelled)))
