"""What a word is, the same for every operator that counts words.

Scripts that put spaces between words: a word is a run of non-space characters with at least one letter or digit
(`wc -w` without bare punctuation). Scripts that do not (Han, kana, Thai, Lao, Khmer, Myanmar): every character is a
word of its own, and it ends a run beside it. So `我们的 deadline` has four words. Hangul uses spaces.

Counting is a polars expression and runs in one linear pass of the Rust `regex` automaton.
"""

from typing import Final

import polars as pl

SPACELESS: Final = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
"""Scripts without spaces between words, as the inside of a character class."""

SPACELESS_LETTER: Final = rf"[[{SPACELESS}]&&[\p{{L}}\p{{Nl}}]]"
"""A letter of these scripts, which is a word of its own."""
_RUN: Final = rf"[^\s{SPACELESS}]*[[\p{{L}}\p{{N}}]--[{SPACELESS}]][^\s{SPACELESS}]*"
WORD: Final = rf"{SPACELESS_LETTER}|{_RUN}"
"""Pattern of one word, for the Rust `regex` crate."""


def word_count(text: pl.Expr) -> pl.Expr:
    """Number of words in each text, uint32; null stays null, an empty text has 0."""
    return text.str.count_matches(WORD)
