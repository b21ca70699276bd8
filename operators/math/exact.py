"""Exact rational arithmetic on expressions as people write them: a small parser of our own, never `eval`.

Understands + - * / x × ÷ ^ brackets, percent, `$` and other currency signs, thousands separators, leading dots and
juxtaposed brackets. Cost: linear in the text; exponents and lengths are bounded, so that no input can hang it.
"""

import re
from fractions import Fraction
from typing import Final

MAX_LENGTH: Final = 400
MAX_DEPTH: Final = 40
MAX_EXPONENT: Final = 256
MAX_DIGITS: Final = 200

_TOKEN: Final = re.compile(r"\s*(?:(\d+(?:,\d{3})+(?:\.\d+)?(?!\d)|\d+\.?\d*|\.\d+)|(\*\*|//|[-+*/^()%×÷·−–xX:]))")
_CURRENCY: Final = re.compile(r"\\?[$€£¥₹]|\bR\$")
_SAME: Final = {"×": "*", "·": "*", "x": "*", "X": "*", "÷": "/", ":": "/", "−": "-", "–": "-", "**": "^", "//": "/"}


class NotArithmetic(ValueError):  # noqa: N818  a finding about the text, not a failure
    """The text is not an arithmetic expression this module understands."""


def evaluate(text: str) -> Fraction:
    """Value of an arithmetic expression.

    Raises:
        NotArithmetic: for anything else, for a division by zero and for numbers beyond the bounds.
    """
    if len(text) > MAX_LENGTH:
        raise NotArithmetic("too long")
    reader = _Reader(_tokens(_CURRENCY.sub("", text)))
    value = reader.sum()
    if reader.peek() is not None:
        raise NotArithmetic(f"unexpected {reader.peek()!r}")
    return value


def parse_number(text: str) -> Fraction | None:
    """Value of a plain number or expression, None when it is not one."""
    try:
        return evaluate(text)
    except NotArithmetic:
        return None


def decimals(text: str) -> int:
    """Digits after the decimal point of a written number."""
    match = re.search(r"\.(\d+)", text)
    return len(match.group(1)) if match else 0


def agrees(value: Fraction, stated: Fraction, places: int) -> bool:
    """Whether `stated`, written with `places` decimals, is `value` or a rounding (any direction) of it.

    A value that needs no more than `places` decimals must be stated exactly: rounding is no excuse then.
    """
    scale = 10**places
    if (value * scale).denominator == 1:
        return bool(value == stated)
    return bool(abs(value - stated) * scale < 1)


def _tokens(text: str) -> list[str]:
    found, position = [], 0
    text = text.strip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if not match:
            raise NotArithmetic(f"unexpected {text[position]!r}")
        found.append(match.group(1) or _SAME.get(match.group(2), match.group(2)))
        position = match.end()
    return found


class _Reader:
    """Recursive descent over tokens; one method per level of precedence."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.position = 0
        self.depth = 0

    def peek(self) -> str | None:
        return self.tokens[self.position] if self.position < len(self.tokens) else None

    def take(self) -> str:
        symbol = self.peek()
        if symbol is None:
            raise NotArithmetic("ends too early")
        self.position += 1
        return symbol

    def sum(self) -> Fraction:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise NotArithmetic("nested too deep")
        value = self.product()
        while self.peek() in {"+", "-"}:
            value = value + self.product() if self.take() == "+" else value - self.product()
        self.depth -= 1
        return value

    def product(self) -> Fraction:
        value = self.signed()
        while (symbol := self.peek()) in {"*", "/", "("}:
            if symbol != "(":
                self.take()
            right = self.signed()
            if symbol == "/" and right == 0:
                raise NotArithmetic("division by zero")
            value = value / right if symbol == "/" else value * right
        return value

    def signed(self) -> Fraction:
        sign = 1
        while self.peek() in {"+", "-"}:
            sign = -sign if self.take() == "-" else sign
        return sign * self.power()

    def power(self) -> Fraction:
        value = self.percent()
        if self.peek() != "^":
            return value
        self.take()
        exponent = self.signed()
        digits = len(str(value.numerator)) + len(str(value.denominator))
        size = abs(exponent)
        if (
            exponent.denominator != 1
            or size > MAX_EXPONENT
            or digits * size > MAX_DIGITS * 4
            or (value == 0 > exponent)
        ):
            raise NotArithmetic("exponent out of bounds")
        return value ** int(exponent)

    def percent(self) -> Fraction:
        value = self.atom()
        while self.peek() == "%":
            self.take()
            value /= 100
        return value

    def atom(self) -> Fraction:
        symbol = self.take()
        if symbol == "(":
            value = self.sum()
            if self.take() != ")":
                raise NotArithmetic("bracket not closed")
            return value
        if not (symbol[0].isdigit() or symbol[0] == "."):
            raise NotArithmetic(f"unexpected {symbol!r}")
        if len(symbol) > MAX_DIGITS:
            raise NotArithmetic("number too long")
        return Fraction(symbol.replace(",", ""))
