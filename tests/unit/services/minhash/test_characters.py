"""Character classes and the plain Python reference."""

import unicodedata

import pytest

from datamill.services.minhash import characters, reference


def test_table_agrees_with_the_ranges_and_with_unicode_white_space() -> None:
    info, _ = characters.character_table()
    separators = {code for low, high in characters.SEPARATOR_RANGES for code in range(low, high + 1)}
    assert {int(code) for code in (info & characters.SEPARATOR).nonzero()[0]} == separators
    spaces = {code for code in range(0x110000) if chr(code).isspace()}
    assert spaces <= separators
    assert separators - spaces == {*range(0x20)} - spaces | {0x200B, 0xFEFF}


def test_lower_case_is_one_to_one_and_simple() -> None:
    info, _ = characters.character_table()
    for character in "AZ[@aÉÀΣßẞЖДŸ":
        assert chr(int(info[ord(character)]) & characters.LOWER_MASK) == character.lower()
    assert int(info[0x130]) & characters.LOWER_MASK == 0x130  # lower case of two code points: left alone
    assert characters.lower_simple("İΑΣ Straße") == "İασ straße"


def test_combining_classes_match_unicode() -> None:
    _, combining = characters.character_table()
    for code in (0x41, 0x300, 0x323, 0x0E38, 0x0E48, 0x094D, 0x3099, 0x1D165):
        assert int(combining[code]) == unicodedata.combining(chr(code))


def test_quick_check_flags_every_text_that_is_not_nfc() -> None:
    info, _ = characters.character_table()
    for text in ("e\u0301", "\u1100\u1161", "\u212b", "\u0344", "\u0958", "\u09c7\u09be", "か\u3099"):
        assert not unicodedata.is_normalized("NFC", text)
        assert any(int(info[ord(c)]) & characters.RECOMPOSE for c in text)
    for text in ("é", "각", "ü", "สวัสดี", "你好", "हिन्दी"):
        assert not any(int(info[ord(c)]) & characters.RECOMPOSE for c in text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Ferry 11, at DAWN.", ["ferry", "11,", "at", "dawn."]),
        ("a\u00a0b\u2003c\u200bd\ufeffe", ["a", "b", "c", "d", "e"]),
        ("2+3 2-3", ["2+3", "2-3"]),
        ("我们的 deadline到了。", ["我", "们", "的", "deadline", "到", "了", "。"]),
        ("안녕 하세요", ["안녕", "하세요"]),
        ("cafe\u0301", ["café"]),
        (" \t\n", []),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert reference.word_tokens(text) == words


def test_characters_are_code_points_and_runs_of_space_are_one() -> None:
    assert reference.char_tokens("  A\u3000\n b字 ") == ["a", " ", "b", "字"]


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("plain English words", "words"),
        ("我用 PyTorch 训练 transformer 模型", "chars"),
        ("The word 字 means character in Chinese", "words"),
        ("สวัสดีชาวโลก", "chars"),
        ("ជំរាបសួរ", "chars"),
        ("ສະບາຍດີ", "chars"),
        ("안녕 하세요 여러분", "words"),
        ("これはテストです", "chars"),
    ],
)
def test_auto_decides_by_script(text: str, unit: str) -> None:
    assert reference.tokens(text, "auto") == reference.tokens(text, unit)  # type: ignore[arg-type]  # a Unit
    other = "chars" if unit == "words" else "words"
    assert reference.tokens(text, "auto") != reference.tokens(text, other) or unit == "chars"


def test_short_text_is_one_shingle_and_blank_has_none() -> None:
    assert reference.shingles("one two", "words", 5) == {("one", "two")}
    assert reference.shingles("  ", "words", 5) == set()
    assert reference.jaccard("", "", "words", 5) == 0.0
    assert reference.jaccard("a b c", "A  b c", "words", 5) == 1.0
