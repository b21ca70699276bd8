r"""Final answers in canonical form, compared exactly: numbers, choices, times, words, tuples, intervals and sets.

Three outcomes: True, False, and None when exact reading cannot decide (then `symbolic` may). Thousands separators,
trailing zeros, currency signs, units on one side, `\text{}`, `x =` and the order of a solution set do not matter;
a percent sign does: 45 % is 0.45, and against a bare 45 nothing is decided. Cost: some 20 µs a pair.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from datamill.operators.math.exact import NotArithmetic, evaluate

Kind = Literal["number", "choice", "time", "word", "ordered", "set", "formula"]

_LATEX_NOISE: Final = re.compile(r"\\(?:left|right|[,;:! ]|displaystyle|quad)|\\\\")
_TEXT: Final = re.compile(r"\\(?:text|mathrm|textbf|mathbf|mbox|operatorname)\s*\{([^{}]*)\}")
_BOXED: Final = re.compile(r"^\\boxed\{(.*)\}$", re.DOTALL)
_FRACTION: Final = re.compile(
    r"(?P<whole>(?<![\w.])\d+)?\s*\\[dt]?frac\s*(?:\{(?P<a>[^{}]+)\}|(?P<c>\d))\s*(?:\{(?P<b>[^{}]+)\}|(?P<d>\d))"
)
_PREFIX: Final = re.compile(r"^\s*[a-zA-Z]\w?\s*(?:=|\\in\b|∈)\s*")
_PERCENT: Final = re.compile(r"\s*(?:\\?%|per\s?cent\b|percent\b)")
_UNIT: Final = re.compile(
    r"^(?P<value>.*[\d)}])(?:\s+|(?<=\d)(?=°|\\circ))(?P<unit>[^\W\d_][\w²³/^.\s]*|°[CF]?|\^?\\circ)$"
)
_CHOICE: Final = re.compile(r"^\(?([A-Ja-j])[).:]?$")
_TIME: Final = re.compile(r"^(\d{1,2}):([0-5]\d)(?:\s*([ap])\.?m\.?)?$", re.IGNORECASE)
_WORD: Final = re.compile(r"^[^\W\d_]{2,}(?:[ -][^\W\d_]+)*$")
_LIST: Final = re.compile(r",\s+|\s+and\s+|\s+or\s+|\s*;\s*|,(?!\d{3}(?!\d))|\s*[和或、]\s*|\s+(?:e|y|ou|o)\s+")
_FUNCTIONS: Final = re.compile(r"\\|\^|sqrt|pi\b|sin|cos|tan|log|ln")


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer read exactly.

    Attributes:
        kind: how it was read; `formula` is everything that needs algebra.
        text: normalised text.
        number: value of a number.
        percent: written with a percent sign.
        unit: unit after a number, lower case.
        brackets: of `ordered` answers, e.g. `(]`.
        items: elements of `ordered` and `set`.
    """

    kind: Kind
    text: str
    number: Fraction | None = None
    percent: bool = False
    unit: str = ""
    brackets: str = ""
    items: tuple["Answer", ...] = ()


def parse_answer(text: str) -> Answer:
    """Read one answer; whatever is not understood becomes a `formula`."""
    plain = normalise(text)
    if found := _CHOICE.match(plain):
        return Answer("choice", found.group(1).upper())
    if found := _TIME.match(plain):
        hour = int(found.group(1)) + (12 if (found.group(3) or "").lower() == "p" and int(found.group(1)) < 12 else 0)
        return Answer("time", f"{hour:02d}:{found.group(2)}")
    return _number(plain) or _group(plain) or _word_or_formula(plain)


def compare(left: Answer, right: Answer) -> bool | None:
    """Whether two answers are equal; None when exact reading cannot tell."""
    if left.kind == right.kind == "number":
        return _compare_numbers(left, right)
    if left.kind != right.kind:
        return False if {left.kind, right.kind} <= {"number", "set"} and "set" in {left.kind, right.kind} else None
    if left.kind == "ordered":
        same_shape = left.brackets == right.brackets and len(left.items) == len(right.items)
        return same_shape and _all([compare(a, b) for a, b in zip(left.items, right.items, strict=True)])
    if left.kind == "set":
        return _compare_sets(left.items, right.items)
    return True if left.text == right.text else _unequal_texts(left, right)


def _unequal_texts(left: Answer, right: Answer) -> bool | None:
    """Two choices, two times or two single words differ for certain; phrases and formulas may mean the same."""
    single_words = left.kind == "word" and " " not in left.text + right.text
    return False if left.kind in {"choice", "time"} or single_words else None


def normalise(text: str) -> str:
    r"""Text without dollar signs, spacing commands, `\text{}`, `\boxed{}`, `x =` and a final full stop."""
    plain = _LATEX_NOISE.sub(" ", text.strip().replace("−", "-").replace("\u00a0", " "))
    plain = re.sub(r"\\?\$", "", plain).strip().removesuffix(".").strip()
    if found := _BOXED.match(plain):
        plain = found.group(1)
    plain = _TEXT.sub(r" \1 ", plain)
    plain = re.sub(r"\s+", " ", plain).strip()
    return _PREFIX.sub("", plain)


def to_plain(text: str) -> str:
    """LaTeX fractions, products and braces rewritten so that `exact.evaluate` reads them."""
    previous = None
    while previous != text:
        previous = text
        text = _FRACTION.sub(_flat_fraction, text)
    text = re.sub(r"\\(?:times|cdot)", "*", text).replace("\\div", "/")
    return re.sub(r"\^\{([^{}]*)\}", r"^(\1)", text)


def _flat_fraction(match: re.Match[str]) -> str:
    top, bottom = match.group("a") or match.group("c"), match.group("b") or match.group("d")
    whole = f"{match.group('whole')}+" if match.group("whole") else ""
    return f"({whole}({top})/({bottom}))"


def _value(text: str) -> Fraction | None:
    mixed = re.fullmatch(r"(-?)(\d+) (\d+)/(\d+)", text)
    if mixed:
        text = f"{mixed.group(1)}({mixed.group(2)}+{mixed.group(3)}/{mixed.group(4)})"
    if re.fullmatch(r"-?\d{1,3}( \d{3})+", text):
        text = text.replace(" ", "")
    try:
        return evaluate(to_plain(text))
    except NotArithmetic:
        return None


def _number(plain: str) -> Answer | None:
    bare = _PERCENT.sub("", plain).strip()
    percent = bare != plain
    unit = ""
    value = _value(bare)
    if value is None and (found := _UNIT.match(bare)):
        unit = re.sub(r"\s+", " ", found.group("unit").lower()).strip(" .")
        value = None if _LIST.search(f" {unit} ") else _value(found.group("value").strip())
    if value is None:
        return None
    return Answer("number", bare, value / 100 if percent else value, percent, unit)


def _group(plain: str) -> Answer | None:
    braces = re.fullmatch(r"\\?\{(.*?)\\?\}", plain)
    ordered = re.fullmatch(r"([(\[])(.*)([)\]])", plain)
    inner = braces.group(1) if braces else ordered.group(2) if ordered else plain
    if not _is_balanced(inner):
        return None
    parts = [part.strip() for part in (_split_ordered(inner) if ordered else _LIST.split(inner)) if part.strip()]
    if len(parts) < 2 and not braces:
        return None
    if not ordered and not all(any(map(str.isdigit, part)) for part in parts):
        return None
    items = tuple(parse_answer(part) for part in parts)
    if ordered:
        return Answer("ordered", plain, brackets=ordered.group(1) + ordered.group(3), items=items)
    return Answer("set", plain, items=items)


def _split_ordered(inner: str) -> list[str]:
    return inner.split(",")


def _is_balanced(text: str) -> bool:
    depth = 0
    for character in text:
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(character, 0)
        if depth < 0:
            return False
    return depth == 0


def _word_or_formula(plain: str) -> Answer:
    if _WORD.match(plain) and not _FUNCTIONS.search(plain):
        return Answer("word", plain.casefold())
    return Answer("formula", plain.replace(" ", ""))


def _compare_numbers(left: Answer, right: Answer) -> bool | None:
    if left.unit and right.unit and left.unit.rstrip("s") != right.unit.rstrip("s"):
        return None
    if left.number == right.number:
        return True
    assert left.number is not None
    assert right.number is not None
    if left.percent != right.percent and left.number in {right.number * 100, right.number / 100}:
        return None
    return None if _may_be_rounding(left, right) or _may_be_rounding(right, left) else False


def _may_be_rounding(exact: Answer, stated: Answer) -> bool:
    """A recurring decimal against at least three of its digits: neither right nor clearly wrong."""
    found = re.fullmatch(r"-?\d*\.(\d{2,})", stated.text)
    if not found or exact.number is None or stated.number is None:
        return False
    scale = 10 ** len(found.group(1))
    return (exact.number * 10**12).denominator != 1 and abs(exact.number - stated.number) * scale < 1


def _compare_sets(left: Sequence[Answer], right: Sequence[Answer]) -> bool | None:
    if len(left) != len(right):
        return False
    rest, unsure = list(right), False
    for item in left:
        verdicts = [compare(item, other) for other in rest]
        if True in verdicts:
            rest.pop(verdicts.index(True))
        elif None in verdicts:
            unsure = True
        else:
            return False
    return None if unsure else True


def _all(verdicts: Sequence[bool | None]) -> bool | None:
    if False in verdicts:
        return False
    return None if None in verdicts else True
