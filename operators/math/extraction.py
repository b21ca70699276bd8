r"""Where the answer stands in a text: after `####`, in `\boxed{}`, after "the answer is", or the last number."""

import re
from typing import Final

_HASH: Final = re.compile(r"####[ \t]*(.+)")
_STATED: Final = re.compile(
    r"(?:(?:final\s+)?answer(?:\s+is|\s*[:=])|^\s*A:|答案(?:是|为|：|:)|[Rr]esposta(?:\s+é|\s*:)|[Rr]espuesta(?:\s+es|\s*:))"
    r"\s*:?\s*(.+)",
    re.IGNORECASE | re.MULTILINE,
)
NUMBER: Final = re.compile(
    r"(?<![\w.])-?\$?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d{1,3}(?: \d{3})+(?![\d])|\d+)(?:\.\d+)?%?|(?<![\w.])-?\$?\.\d+%?"
)
ANNOTATION: Final = re.compile(r"<<([^<>]*)>>")


def extract_answer(text: str, how: str = "auto") -> str | None:
    """The answer inside `text`, None when the place asked for is not there.

    Args:
        text: an answer or a worked solution.
        how: `hash`, `boxed`, `last_number`, `whole`, or `auto`, which tries them in the order: hash, boxed, a stated
            answer, the whole text when it is one short line, the last number.
    """
    if how == "whole":
        return text.strip() or None
    readers = {"hash": (after_hash,), "boxed": (boxed,), "last_number": (last_number,)}
    for read in readers.get(how, (after_hash, boxed, _stated, _short_whole, last_number)):
        found = read(text)
        if found is not None:
            return found
    return None


def after_hash(text: str) -> str | None:
    """What follows the last `####` on its line."""
    found = _HASH.findall(text)
    return found[-1].strip() or None if found else None


def boxed(text: str) -> str | None:
    r"""Content of the last `\boxed{...}` with balanced braces."""
    start = max(text.rfind("\\boxed{"), text.rfind("\\fbox{"))
    if start < 0:
        return None
    begin = text.index("{", start) + 1
    depth = 1
    for position in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        if depth == 0:
            return text[begin:position].strip() or None
    return None


def last_number(text: str) -> str | None:
    """The last number written in `text`, annotations left out."""
    found = NUMBER.findall(ANNOTATION.sub("", text))
    return found[-1].replace(" ", "") if found else None


def _stated(text: str) -> str | None:
    found = _STATED.findall(text)
    return found[-1].strip().rstrip(".").strip() or None if found else None


def _short_whole(text: str) -> str | None:
    stripped = text.strip()
    return stripped if stripped and "\n" not in stripped and len(stripped) <= 120 else None
