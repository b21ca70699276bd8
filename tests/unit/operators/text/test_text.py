"""text.fix_unicode, text.normalize and the meaning of a word."""

import unicodedata

import polars as pl
import pytest
from support.tables import apply, books_balance, ids, texts

from datamill.operators.text.fix_unicode import FixUnicodeParams, fix
from datamill.operators.text.words import word_count


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("plain text, 100% fine.\n", "plain text, 100% fine.\n"),
        ("Ã© uma questÃ£o", "é uma questão"),
        ("schÃ¶n", "schön"),
        ("cafe\u0301", "café"),
        ("a\r\nb\rc\u2028d", "a\nb\nc\nd"),
        ("so\u0085", "so…"),
        ("a\x00b\x07c\td", "abc\td"),
        ("\ufeffstart", "start"),
        ("\ud83d alone", "\ufffd alone"),
        ("fish &amp; chips", "fish & chips"),
        ("<p>fish &amp; chips</p>", "<p>fish &amp; chips</p>"),
        ("“curly” ’tis", "“curly” ’tis"),
        ("中文，全角", "中文，全角"),
        ("👩‍👩‍👧 family", "👩‍👩‍👧 family"),
    ],
)
def test_fix(before: str, after: str) -> None:
    assert fix(before, FixUnicodeParams()) == after
    assert fix(after, FixUnicodeParams()) == after


def test_fixed_text_is_nfc() -> None:
    assert unicodedata.is_normalized("NFC", fix("e\u0301 ﬁ Å", FixUnicodeParams()))


def test_fix_unicode_repairs_only_what_needs_it_and_notes_it() -> None:
    rows = texts("fine", "Ã©", None, "a\r\nb")
    outcome = apply("text.fix_unicode", rows)
    assert outcome.rows["text"].to_pylist() == ["fine", "é", None, "a\nb"]
    notes = outcome.fates.to_pylist()
    assert [(n["fate"], n["reason"], n["src"], n["detail"]) for n in notes] == [
        ("noted", "text_repaired", "test:2", "text"),
        ("noted", "text_repaired", "test:4", "text"),
    ]
    assert outcome.rows.schema == rows.schema


def test_switches() -> None:
    assert fix("a\u0085b", FixUnicodeParams(ftfy=False)) == "a\nb"
    assert fix("Ã©\r\n\x07", FixUnicodeParams(ftfy=False, newlines=False, strip_controls=False)) == "Ã©\r\n\x07"


def test_fix_unicode_on_null_drop() -> None:
    rows = texts("a", None)
    outcome = apply("text.fix_unicode", rows, on_null="drop")
    assert ids(outcome.rows) == [0]
    assert books_balance(rows, outcome)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("  a \t b  ", "a b"),
        ("a\u3000b\u00a0c", "a b c"),
        ("a  \n  b", "a\nb"),
        ("a\n\n\n\nb", "a\n\nb"),
        ("ＡＢＣ１２３＋＝", "ABC123+="),
        ("你好，世界。", "你好，世界。"),
        ("", ""),
    ],
)
def test_normalize(before: str, after: str) -> None:
    once = apply("text.normalize", texts(before)).rows
    assert once["text"].to_pylist() == [after]
    assert apply("text.normalize", once).rows["text"].to_pylist() == [after]


def test_normalize_options() -> None:
    assert apply("text.normalize", texts("你好，世界。"), cjk_punctuation=True).rows["text"][0].as_py() == "你好,世界."
    assert apply("text.normalize", texts("ABC Ä"), lowercase=True).rows["text"][0].as_py() == "abc ä"
    assert apply("text.normalize", texts("a\n\n\nb"), max_blank_lines=0).rows["text"][0].as_py() == "a\nb"
    assert apply("text.normalize", texts(" ＡB "), whitespace=False, width=False).rows["text"][0].as_py() == " ＡB "


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 0),
        ("hello world", 2),
        ("don't stop-it", 2),
        ("a = b + 1", 3),
        ("- * •", 0),
        ("我们的 deadline", 4),
        ("我们的deadline是Friday。", 6),
        ("3.5kg, 7", 2),
        ("สวัสดี", 4),
        ("안녕 세계", 2),
        ("日本語とカナ", 6),
    ],
)
def test_words(text: str, words: int) -> None:
    frame = pl.DataFrame({"t": [text]})
    assert frame.select(word_count(pl.col("t"))).item() == words
