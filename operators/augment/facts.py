"""What a rewritten text must keep: its numbers, its final answer, and whatever the user protects.

Numbers are compared by value (`1,000` is 1000, `0.50` is 0.5) and may change between digits and English words
(`3` and `three`); a percentage stays one. Neither may a number be lost nor one be invented. Signs are not compared,
because `-5 degrees` and `5 degrees below zero` say the same. Cost: linear in the texts.
Source: the fact check of rephrased corpora, Maini et al. 2024 (WRAP), section 3, made mechanical.
"""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Final

_NUMBER = re.compile(r"(?<![\d.,])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?!\d)")
_PERCENT = re.compile(r"\s*(?:%|％|per\s?cent\b)", re.IGNORECASE)
_WORD = re.compile(r"[a-z]+", re.IGNORECASE)
_FINAL = re.compile(r"####\s*(.+?)\s*$|\\boxed\{([^{}]+)\}", re.MULTILINE)
_SMALL: Final = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS: Final = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SCALES: Final = {"hundred": 100, "thousand": 1000, "million": 10**6, "dozen": 12}
_WORDS: Final = (
    {word: value for value, word in enumerate(_SMALL)}
    | {word: 10 * value for value, word in enumerate(_TENS, start=2)}
    | _SCALES
)

Number = tuple[Decimal, bool]
"""Value, and whether it is a percentage."""


def numbers_in(text: str) -> frozenset[Number]:
    """Numbers written in digits."""
    found = []
    for match in _NUMBER.finditer(text):
        value = Decimal(match.group().replace(",", ""))
        found.append((value, _PERCENT.match(text, match.end()) is not None))
    return frozenset(found)


def number_words_in(text: str) -> frozenset[Number]:
    """Numbers written in English words, each word and each run of words (`twenty-four`, `two hundred`)."""
    found: set[Number] = set()
    for run, end in _word_runs(text):
        percent = _PERCENT.match(text, end) is not None
        found |= {(Decimal(_WORDS[word]), percent) for word in run}
        found.add((Decimal(_run_value(run)), percent))
    return frozenset(found)


def final_answer(text: str) -> str | None:
    r"""The last `#### answer` or `\boxed{answer}` of a solution, without thousands separators."""
    found = [match.group(1) or match.group(2) for match in _FINAL.finditer(text)]
    return _plain(found[-1]) if found else None


def changed_fact(before: str, after: str, answer: str | None = None, protect: Sequence[str] = ()) -> str | None:
    """What the rewriting `after` of `before` lost or invented; None when the facts are the same.

    Args:
        before: the original.
        after: the rewritten text.
        answer: final answer kept beside the text; binding when the original states it.
        protect: words, or regular expressions between slashes, whose occurrences must all stay.
    """
    known, kept = numbers_in(before), numbers_in(after)
    for lost in sorted(known - kept - number_words_in(after)):
        return f"the number {_show(lost)} is missing"
    for added in sorted(kept - known - number_words_in(before)):
        return f"the number {_show(added)} is not in the original"
    if (stated := final_answer(before)) != (restated := final_answer(after)):
        return f"the final answer was {stated!r} and is {restated!r}"
    if answer is not None and _states(before, answer) and not _states(after, answer):
        return f"the answer {answer!r} is missing"
    return next((f"{text!r} is missing" for text in protected(before, protect) if text not in after), None)


def protected(text: str, protect: Sequence[str]) -> list[str]:
    """Pieces of `text` that `protect` names, in order of the patterns, without repeats."""
    pieces: dict[str, None] = {}
    for entry in protect:
        for match in protect_pattern(entry).finditer(text):
            if match.group():
                pieces.setdefault(match.group())
    return list(pieces)


def protect_pattern(entry: str) -> re.Pattern[str]:
    """The expression of a `protect` entry: `/regex/`, or a word or phrase that is no part of a longer word.

    Raises:
        re.error: when the expression between the slashes is none.
    """
    if len(entry) > 2 and entry.startswith("/") and entry.endswith("/"):
        return re.compile(entry[1:-1])
    return re.compile(rf"(?<!\w){re.escape(entry)}(?!\w)")


def _word_runs(text: str) -> Iterator[tuple[list[str], int]]:
    run: list[str] = []
    end = 0
    for match in _WORD.finditer(text):
        word = match.group().lower()
        joined = text[end : match.start()].strip(" -") == ""
        if run and (word not in _WORDS or not joined):
            yield run, end
            run = []
        if word in _WORDS:
            run.append(word)
            end = match.end()
    if run:
        yield run, end


def _run_value(run: Sequence[str]) -> int:
    total = current = 0
    for word in run:
        value = _WORDS[word]
        if value >= 1000:
            total, current = total + max(1, current) * value, 0
        elif word in _SCALES:
            current = max(1, current) * value
        else:
            current += value
    return total + current


def _states(text: str, answer: str) -> bool:
    plain = _plain(answer)
    return re.search(rf"(?<!\w){re.escape(plain)}(?!\w)", _plain(text)) is not None


def _plain(text: str) -> str:
    return re.sub(r"(?<=\d),(?=\d{3})", "", text).strip().rstrip(".")


def _show(number: Number) -> str:
    return f"{number[0].normalize():f}{'%' if number[1] else ''}"
