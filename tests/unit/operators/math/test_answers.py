"""Comparison of final answers: a table of equal, different and undecided pairs; symmetry; order does not matter."""

import itertools

import pytest

from datamill.operators.math.answers import compare, parse_answer

EQUAL = [
    ("5/8", "0.625"), ("1,234.50", "$1234.5"), ("45\\%", "45 per cent"), ("45%", "0.45"), ("x = 3", "3"), ("1\\frac12", "1.5"),
    ("2 1/2", "2.5"), ("\\frac{-3}{4}", "-0.75"), ("96", "96 square metres"), ("\\text{(D)}", "d."), ("{1, 2}", "\\{2,1\\}"),
    ("-2, 9", "9 and -2"), ("x=1 or x=2", "2, 1"), ("[0, 1/2)", "[0,0.5)"), ("9:30", "09:30"), ("9:30 pm", "21:30"),
    ("Odd", "odd"), ("\\boxed{33}", "33"), ("10^{-3}", "0.001"), ("2\\times 10^3", "2000"), ("31 400", "31400"), ("3、5", "5和3"),
]  # fmt: skip
DIFFERENT = [
    ("15", "15.0001"), ("417", "-417"), ("4,6,8", "2,4,6"), ("(0,3)", "(0,3.5)"), ("[0,1)", "[0,1]"), ("1/3^{70}", "1/3^{71}"),
    ("09:30", "10:30"), ("odd", "even"), ("A", "B"), ("1e-30 metres"[0:1], "2"), ("5", "5, 7"), ("1,2,2", "1,1,2"),
    ("10^{-9}", "10^{-8}"), ("45%", "46%"),
]  # fmt: skip
UNDECIDED = [
    ("1/3", "0.333"), ("45", "45%"), ("90 minutes", "1.5 hours"), ("\\sqrt{2}", "1.41"), ("5", "five"), ("a right angle", "right"),
    ("2 - \\frac{1}{\\pi}", "2 + \\frac{1}{\\pi}"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("left", "right", "verdict"),
    [(*pair, verdict) for pairs, verdict in ((EQUAL, True), (DIFFERENT, False), (UNDECIDED, None)) for pair in pairs],
)
def test_pairs_in_both_directions(left: str, right: str, verdict: bool | None) -> None:
    assert compare(parse_answer(left), parse_answer(right)) is verdict
    assert compare(parse_answer(right), parse_answer(left)) is verdict


def test_every_answer_equals_itself() -> None:
    for text in {text for pair in EQUAL + DIFFERENT + UNDECIDED for text in pair}:
        assert compare(parse_answer(text), parse_answer(text)) is True, text


def test_every_order_of_a_solution_set_is_the_same_set() -> None:
    sets = [", ".join(order) for order in itertools.permutations(["1/2", "-3", "4"])]
    assert all(compare(parse_answer(a), parse_answer(b)) for a, b in itertools.combinations(sets, 2))
