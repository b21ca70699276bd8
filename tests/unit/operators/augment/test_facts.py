"""Facts of a text: what counts as the same number, and every way to lose or invent one."""

from decimal import Decimal
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datamill.operators.augment.facts import changed_fact, final_answer, number_words_in, numbers_in, protected


def values(text: str) -> list[str]:
    return sorted(f"{value.normalize():f}{'%' if percent else ''}" for value, percent in numbers_in(text))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("no numbers", []),
        ("48 friends", ["48"]),
        ("$1,000 and 1,234,567.50", ["1000", "1234567.5"]),
        ("0.50 is 0.5", ["0.5"]),
        ("007", ["7"]),
        ("50% off, 50 left", ["50", "50%"]),
        ("50 percent or 50 per cent or 50 %", ["50%"]),
        ("half is 1/2", ["1", "2"]),
        ("<<48/2=24>>24", ["2", "24", "48"]),
        ("in 2026. Then", ["2026"]),
        ("x2 and y=3", ["2", "3"]),
        ("٤٨ and 48", ["48"]),
        ("3-5 apples, -5 degrees", ["3", "5"]),
    ],
)
def test_numbers(text: str, found: list[str]) -> None:
    assert values(text) == found


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("three", 3), ("Twenty-four", 24), ("twenty four", 24), ("two hundred", 200), ("a dozen", 12),
        ("one hundred five", 105), ("two thousand three hundred", 2300), ("one million", 1_000_000), ("sixty", 60),
    ],
)  # fmt: skip
def test_number_words(text: str, value: int) -> None:
    assert (Decimal(value), False) in number_words_in(text)


def test_words_that_only_look_like_numbers() -> None:
    assert number_words_in("often the tenor weighs someone") == frozenset()
    assert (Decimal(5), True) in number_words_in("five percent")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Natalia sold 48 clips.", "48 clips were sold by Natalia."),
        ("It cost $1,000.", "The price was 1000 dollars."),
        ("He has 3 cats.", "He owns three cats."),
        ("She eats three eggs.", "She eats 3 eggs."),
        ("They met 24 times.", "They met twenty-four times."),
        ("Sales rose 5%.", "Sales went up by 5 percent."),
        ("48 and 48", "48"),
        ("A plain text.", "A simple text."),
        ("so 2+2=4\n#### 4", "2+2 makes 4\n#### 4"),
        ("it is \\boxed{12}", "we get \\boxed{12}"),
        ("#### 1,000", "#### 1000"),
    ],
)
def test_the_same_facts_in_other_words(before: str, after: str) -> None:
    assert changed_fact(before, after) is None


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("48 clips", "84 clips", "48 is missing"),
        ("48 clips", "many clips", "48 is missing"),
        ("48 clips", "48 clips in 2 months", "2 is not in the original"),
        ("5% more", "5 more", "5% is missing"),
        ("1.5 litres", "15 litres", "1.5 is missing"),
        ("1,000", "1,001", "1000 is missing"),
        ("three cats", "4 cats", "4 is not in the original"),
        ("4 times 5\n#### 20", "4 times 5 gives 20", "final answer was '20' and is None"),
        ("is 20 of 40\n#### 20", "is 40 of 20\n#### 40", "final answer was '20' and is '40'"),
        ("12 or \\boxed{7}", "7 or \\boxed{12}", "final answer"),
        ("no marker 4", "marker\n#### 4", "final answer was None"),
    ],
)
def test_changed_facts(before: str, after: str, message: str) -> None:
    assert message in str(changed_fact(before, after))


def test_an_answer_beside_the_text_binds_when_the_text_states_it() -> None:
    assert (
        changed_fact("The capital is Paris.", "It is the city on the Seine.", "Paris")
        == "the answer 'Paris' is missing"
    )
    assert changed_fact("The capital is Paris.", "Paris is the capital.", "Paris") is None
    assert changed_fact("Which city is the capital?", "What is the capital?", "Paris") is None
    assert changed_fact("He is in Parisian mood.", "He is gay.", "Paris") is None, "no part of a word"
    assert changed_fact("It makes 1,000.", "It makes 1000.", "1000") is None


def test_protected_words_and_expressions() -> None:
    protect = ("NaCl", "/<<[^>]*>>/", "New York")
    before = "NaCl in New York: <<1+1=2>> and <<2+2=4>>"
    assert protected(before, protect) == ["NaCl", "<<1+1=2>>", "<<2+2=4>>", "New York"]
    assert changed_fact(before, before, protect=protect) is None
    assert changed_fact(before, before.replace("NaCl", "salt"), protect=protect) == "'NaCl' is missing"
    assert "<<2+2=4>>" in str(changed_fact(before, before.replace("<<2+2=4>>", "2+2=4"), protect=protect))
    assert protected("NaClO4", ("NaCl",)) == [], "a word is no part of a longer one"
    assert protected("aaa", ("/x*/",)) == [], "empty matches protect nothing"


def test_final_answers() -> None:
    assert final_answer("work\n#### 72") == "72"
    assert final_answer("#### 1\nno\n#### 1,234.") == "1234"
    assert final_answer("so \\boxed{x+1} holds") == "x+1"
    assert final_answer("no answer") is None


words = st.lists(st.sampled_from(["the", "cat", "sold", "apples", "and", "when"]), max_size=6)


@given(st.lists(st.integers(0, 10**7), max_size=6, unique=True), words, st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_reordering_keeps_facts_and_any_other_number_breaks_them(
    numbers: list[int], filler: list[str], shuffler: Random
) -> None:
    parts = [str(number) for number in numbers] + filler
    shuffled = list(parts)
    shuffler.shuffle(shuffled)
    assert changed_fact(" ".join(parts), " ".join(shuffled)) is None
    for number in numbers:
        changed = [str(number + 10**8) if part == str(number) else part for part in shuffled]
        assert changed_fact(" ".join(parts), " ".join(changed)) is not None
