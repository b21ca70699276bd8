"""Exact arithmetic: against Python's own evaluation of random expressions, bounds, and rounding."""

import random
from fractions import Fraction

import pytest

from datamill.operators.math.exact import NotArithmetic, agrees, decimals, evaluate, parse_number


def reference(text: str) -> Fraction:
    """The same expression by Python, with every number a Fraction."""
    import re

    return eval(re.sub(r"\d+(?:\.\d+)?", r"Fraction('\g<0>')", text), {"Fraction": Fraction})


def expression(rng: random.Random, depth: int) -> str:
    if depth == 0 or rng.random() < 0.2:
        return rng.choice([str(rng.randint(0, 99)), f"{rng.randint(0, 9)}.{rng.randint(0, 99):02d}"])
    left, right = expression(rng, depth - 1), expression(rng, depth - 1)
    return rng.choice([f"{left}{rng.choice('+-*/')}{right}", f"({left} {rng.choice('+-*')} {right})", f"-{left}"])


def test_random_expressions_equal_pythons_value() -> None:
    rng = random.Random(11)
    compared = 0
    for _ in range(600):
        text = expression(rng, 4)
        try:
            wanted = reference(text)
        except ZeroDivisionError:
            assert parse_number(text) is None, text
            continue
        assert evaluate(text) == wanted, text
        compared += 1
    assert compared > 400


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,234,567", "1234567"), (".5*10", "5"), ("$1,000.50", "1000.5"), ("20%", "1/5"), ("50%*80", "40"), ("3 x 4", "12"),
        ("8÷2", "4"), ("2^10", "1024"), ("2**-2", "1/4"), ("2(3+4)", "14"), ("560//10", "56"), ("- -3", "3"), ("−7", "-7"),
        ("-2^2", "-4"), ("2^3^2", "512"),
    ],
)  # fmt: skip
def test_spellings(text: str, value: str) -> None:
    assert evaluate(text) == Fraction(value)


@pytest.mark.parametrize(
    "text",
    [
        "", "abc", "1/0", "2+", "(1", "1)", "__import__('os')", "9^9^9", "0^-1", "1 2", "2^(1/2)", "(" * 60 + "1" + ")" * 60,
        "9" * 500, "1e5", "x", "5^(5^(5^5))",
    ],
)  # fmt: skip
def test_everything_else_is_refused_at_once(text: str) -> None:
    with pytest.raises(NotArithmetic):
        evaluate(text)


@pytest.mark.parametrize(
    ("value", "stated", "right"),
    [
        ("10/3", "3.33", True), ("10/3", "3.3", True), ("10/3", "3", True), ("20/3", "6.67", True), ("20/3", "6.66", True),
        ("10/3", "3.35", False), ("10/3", "4.5", False), ("48/2", "24", True), ("48/2", "25", False), ("15/2", "7", True),
        ("15/2", "8", True), ("15/2", "9", False), ("15/2", "7.4", False), ("1/5", ".2", True), ("1/5", "0.20", True),
    ],
)  # fmt: skip
def test_rounding_is_judged_at_the_stated_decimals(value: str, stated: str, right: bool) -> None:
    assert agrees(Fraction(value), evaluate(stated), decimals(stated)) is right
