"""Checks a worked solution against itself: every `<<expr=value>>`, and the final number against the working.

A value is held against its expression in exact arithmetic, tolerant to rounding at the decimals it is written with.
The final number must be the last annotated result, a number of the last line, or the value of a sum written there
(also as a percentage of it, or rounded). A solution that shows no number decides nothing.

Source: Cobbe et al. 2021 (calculator annotations). In the 7,473 rows of GSM8K train no annotation is wrong.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from datamill.operators.math.exact import NotArithmetic, agrees, decimals, evaluate, parse_number
from datamill.operators.math.extraction import ANNOTATION, NUMBER, after_hash, boxed

_FINAL: Final = re.compile(r"^####.*$|\\boxed\{.*", re.MULTILINE)
_WORDS: Final = re.compile(r"[^\W\d_]{2,}|[^\W\d_xX]|[$€£¥\\]|(?<=\d),(?=\d{3})")
_SUM: Final = re.compile(r"(?:[\d(]|\.\d)(?:[\d() ]|\.(?=\d))*(?:[-+*/x×÷](?:[\d() ]|\.(?=\d))*)+")


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong with a solution, or None in `reason` with `checked` things that were right."""

    checked: int
    reason: str | None = None
    detail: str | None = None


def check_solution(text: str) -> Finding:
    """Check all annotations of `text`, then its final number."""
    checked = 0
    for annotation in ANNOTATION.findall(text):
        right = check_annotation(annotation)
        if right is False:
            return Finding(checked, "wrong_annotation", f"<<{annotation}>>")
        checked += right is True
    final = after_hash(text) or boxed(text)
    supported = is_supported(final, _FINAL.sub("", text)) if final else None
    if supported is False:
        return Finding(checked, "wrong_final", f"{final} is not what the solution arrives at")
    return Finding(checked + (supported is True))


def check_annotation(annotation: str) -> bool | None:
    """Whether all sides of `expr=value` agree; None when it is not arithmetic."""
    first, *others = annotation.split("=")
    if not others:
        return None
    try:
        value = evaluate(first)
        return all(agrees(value, evaluate(other), decimals(other)) for other in others)
    except NotArithmetic:
        return None


def is_supported(final: str, working: str) -> bool | None:
    """Whether `final` follows from the end of `working`; None when there is nothing to hold it against."""
    value = parse_number(_clean(final))
    results = list(_results(working))
    if value is None or not results:
        return None
    return any(_is_near(value, result) for result in results)


def _results(working: str) -> Iterator[Fraction]:
    """The last annotated result, then everything numeric on the last line that has a number."""
    annotated = [parse_number(found.rpartition("=")[2]) for found in ANNOTATION.findall(working)]
    yield from (value for value in annotated[-1:] if value is not None)
    lines = [line for line in working.split("\n") if any(map(str.isdigit, line))]
    if not lines:
        return
    yield from _values(ANNOTATION.findall(lines[-1]))
    plain = ANNOTATION.sub("", lines[-1])
    yield from _values(found.replace(" ", "") for found in NUMBER.findall(plain))
    yield from _values(NUMBER.findall(plain))
    yield from _values(found.strip() for found in _SUM.findall(_WORDS.sub("", plain)))


def _values(texts: Iterator[str] | list[str]) -> Iterator[Fraction]:
    for text in texts:
        value = parse_number(text.rpartition("=")[2])
        if value is not None:
            yield value
            if text.endswith("%"):
                yield value * 100


def _is_near(final: Fraction, result: Fraction) -> bool:
    if final == result or (result.denominator != 1 and final == result * 100):
        return True
    return result.denominator != 1 and final.denominator == 1 and abs(result - final) < 1


def _clean(final: str) -> str:
    found = NUMBER.search(final.replace("\u00a0", " "))
    return found.group().rstrip("%").replace(" ", "") if found else final
