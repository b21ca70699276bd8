"""filter.gopher_quality against a plain reading of the paper's rules."""

import random
import unicodedata

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.tables import apply, books_balance, ids, reasons, table, texts

from datamill.operators.filter.gopher_quality import (
    COMPILED_FROM_BYTES,
    MEASURES,
    STOP_WORDS,
    GopherQualityParams,
    compiled_counts,
    measures,
    polars_counts,
)

GOOD = " ".join(["The river runs to the sea and the people that live with it have work."] * 5)
SPACES = set(" \t\n\r\x0b\x0c\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000") | {chr(c) for c in range(0x2000, 0x200B)}
SPACELESS = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")


def category(char: str) -> str:
    return unicodedata.category(char)


def spaceless(char: str) -> bool:
    return category(char)[0] == "L" and unicodedata.name(char, "").startswith(SPACELESS)


def split_words(text: str) -> list[str]:
    """Words one character at a time."""
    words, run = [], ""
    for char in [*text, " "]:
        if char in SPACES or spaceless(char):
            if run:
                words.append(run)
            run = ""
            if spaceless(char):
                words.append(char)
        else:
            run += char
    return words


def naive(text: str) -> dict[str, float]:
    """The rules' measures, read off the paper."""
    words = split_words(text)
    signed = [w for w in words if any(category(c)[0] in "LN" for c in w)]
    lines = text.removesuffix("\n").split("\n") if text else []
    stripped = [line.strip("".join(SPACES)) for line in lines]
    count = len(words) or 1
    tokens = {token.lower() for token in "".join(" " if c in SPACES else c for c in text).split(" ")}
    bare = {"".join(c for c in t if category(c)[0] not in "PS") for t in tokens if _punctuated_ends(t)}
    return {
        "words": float(len(signed)),
        "mean_word_length": sum(map(len, signed)) / len(signed) if signed else 0.0,
        "hash_ratio": text.count("#") / count,
        "ellipsis_ratio": (text.count("...") + text.count("…")) / count,
        "bullet_lines": sum(line.startswith(("•", "-")) for line in stripped) / max(len(lines), 1),
        "ellipsis_lines": sum(line.endswith(("...", "…")) for line in stripped) / max(len(lines), 1),
        "alphabetic_words": sum(any(category(c)[0] == "L" for c in w) for w in words) / count,
        "stop_words": float(len(bare & set(STOP_WORDS))),
    }


def _punctuated_ends(token: str) -> bool:
    """Whether punctuation is only around the word, not within it."""
    letters = [i for i, c in enumerate(token) if category(c)[0] not in "PS"]
    return bool(letters) and letters == list(range(letters[0], letters[-1] + 1))


alphabet = st.sampled_from([*"abthe  \n-•#.…,5", "the", " and ", " of ", "...", "我", "们", "é", " -", "\n-", "'"])


@given(st.lists(alphabet, max_size=60).map("".join))
@settings(max_examples=400, deadline=None)
def test_measures_equal_the_naive_reading(text: str) -> None:
    found = measures(pl.Series([text]), STOP_WORDS).select(MEASURES).row(0, named=True)
    assert found == pytest.approx(naive(text))


@given(st.lists(st.one_of(st.none(), st.text(max_size=30), st.lists(alphabet, max_size=30).map("".join)), max_size=8))
@settings(max_examples=300, deadline=None)
def test_the_compiled_pass_counts_as_polars_does(values: list[str | None]) -> None:
    text = pl.Series(values, dtype=pl.String)
    assert compiled_counts(text).rows(named=True) == polars_counts(text).rows(named=True)


def test_the_compiled_pass_knows_every_code_point_and_slices() -> None:
    text = pl.Series([f"a{chr(point)}b {chr(point)}" for point in range(0x20, 0x30000) if not 0xD800 <= point < 0xE000])
    assert compiled_counts(text).equals(polars_counts(text))
    assert compiled_counts(text.slice(7, 5)).equals(polars_counts(text).slice(7, 5))


def test_large_batches_get_the_same_decisions() -> None:
    documents = [GOOD, "short", GOOD + " #" * 20, None] * (COMPILED_FROM_BYTES // len(GOOD) // 2)
    outcome = apply("filter.gopher_quality", texts(*documents))
    small = apply("filter.gopher_quality", texts(*documents[:4]))
    assert outcome.rows.slice(0, 1)["gopher_quality"].to_pylist() == small.rows["gopher_quality"].to_pylist()
    assert {index % 4: reason for index, reason in reasons(outcome).items()} == reasons(small)
    assert outcome.rows.num_rows * 4 == len(documents)


def test_measures_on_long_random_documents() -> None:
    generator = random.Random(3)
    vocabulary = ["the", "and", "river", "sea,", "2024", "--", "…", "#tag", "- item", "\n", "\n- ", "and.", "that's"]
    documents = [" ".join(generator.choices(vocabulary, k=400)) for _ in range(20)]
    found = measures(pl.Series(documents), STOP_WORDS).select(MEASURES)
    for document, row in zip(documents, found.iter_rows(named=True), strict=True):
        assert row == pytest.approx(naive(document))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (GOOD, None),
        ("Too short to stay.", "too_few_words"),
        ("a b " * 40, "words_too_short"),
        ("extraordinarily incomprehensible " * 40, "words_too_long"),
        (GOOD + " #" * 20, "too_many_hashes"),
        (GOOD + " ... " * 20, "too_many_ellipses"),
        (GOOD.replace(". ", ".\n").replace("The river", "- The river"), "too_many_bullet_lines"),
        ("\n".join(GOOD.split(" ")).replace("sea", "sea...").replace("work.", "work…").replace("live", "live...")
         .replace("people", "people...").replace("runs", "runs..."), "too_many_ellipses"),
        (GOOD + " 12 34 56" * 10, "too_few_alphabetic_words"),
        ("river people water stone house " * 12, "too_few_stop_words"),
        ("", "too_few_words"),
    ],
)  # fmt: skip
def test_each_rule(text: str, reason: str | None) -> None:
    outcome = apply("filter.gopher_quality", texts(text))
    assert reasons(outcome) == ({} if reason is None else {0: reason})


def test_ellipsis_lines() -> None:
    line = "The river runs to the sea and the people that live with it have"
    text = "\n".join([line + "..."] * 2 + [line] * 4)
    assert reasons(apply("filter.gopher_quality", texts(text))) == {0: "too_many_ellipsis_lines"}
    assert reasons(apply("filter.gopher_quality", texts(text), max_ellipsis_lines=0.34)) == {}


def test_a_fate_names_rule_value_and_threshold() -> None:
    (fate,) = apply("filter.gopher_quality", texts("one two three")).fates.to_pylist()
    assert (fate["reason"], fate["value"], fate["threshold"]) == ("too_few_words", 3.0, 50.0)


def test_bounds_are_inclusive() -> None:
    fifty = " ".join(["the and word that flow"] * 10)
    assert reasons(apply("filter.gopher_quality", texts(fifty))) == {}
    assert reasons(apply("filter.gopher_quality", texts(fifty), min_words=51)) == {0: "too_few_words"}


def test_scripts_without_spaces_skip_word_length_and_stop_words() -> None:
    chinese = "世界上最长的河流之一从高原流向大海，沿途经过许多城市和村庄，养育了两岸的人民。" * 3
    assert reasons(apply("filter.gopher_quality", texts(chinese))) == {}
    assert reasons(apply("filter.gopher_quality", texts(chinese[:30]))) == {0: "too_few_words"}


def test_null_switches_a_rule_off_and_other_stop_words_can_be_given() -> None:
    text = "o rio corre para o mar e as pessoas que vivem perto dele trabalham muito " * 5
    assert reasons(apply("filter.gopher_quality", texts(text))) == {0: "too_few_stop_words"}
    assert reasons(apply("filter.gopher_quality", texts(text), min_stop_words=None)) == {}
    assert reasons(apply("filter.gopher_quality", texts(text), stop_words=["que", "para", "e"])) == {}


def test_measures_are_kept_beside_the_text_with_one_type() -> None:
    rows = texts(GOOD, None, "")
    outcome = apply("filter.gopher_quality", rows, on_null="keep", min_words=0, min_stop_words=0,
                    min_mean_word_length=0, min_alphabetic_words=0)  # fmt: skip
    assert ids(outcome.rows) == [0, 1, 2]
    assert outcome.rows["gopher_quality"][0].as_py()["words"] == 75.0
    empty = apply("filter.gopher_quality", rows.slice(0, 0))
    assert empty.rows.schema == outcome.rows.schema
    assert books_balance(rows, apply("filter.gopher_quality", rows))


def test_the_column_can_be_named() -> None:
    rows = table({"body": pa.string()}, body=[GOOD])
    assert ids(apply("filter.gopher_quality", rows, column="body").rows) == [0]
    assert GopherQualityParams().column == "text"
