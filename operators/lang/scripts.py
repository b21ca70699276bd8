"""Writing systems: which ones a text uses, how much, and which languages they can mean.

Many scripts are used by one language of today's corpora, so counting letters decides at once and with certainty;
only scripts shared by several languages (Latin, Cyrillic, Arabic, Devanagari, Bengali) need a statistical model.
Counting is one vectorised pass per script. Source: Unicode Standard Annex 24 (script property).
"""

from typing import Final

import polars as pl

OWN_SCRIPT: Final = {
    "Hangul": "ko", "Thai": "th", "Greek": "el", "Hebrew": "he", "Georgian": "ka", "Armenian": "hy", "Khmer": "km",
    "Lao": "lo", "Myanmar": "my", "Tamil": "ta", "Telugu": "te", "Kannada": "kn", "Malayalam": "ml",
    "Gujarati": "gu", "Gurmukhi": "pa", "Sinhala": "si", "Oriya": "or", "Ethiopic": "am", "Tibetan": "bo",
}  # fmt: skip
"""Scripts that stand for one language (ISO 639-1)."""

SHARED: Final = {
    "Latin": (
        "af", "az", "ca", "cs", "cy", "da", "de", "en", "eo", "es", "et", "eu", "fi", "fr", "ga", "gl", "hr", "hu",
        "id", "is", "it", "la", "lt", "lv", "ms", "mt", "nl", "no", "pl", "pt", "ro", "sk", "sl", "sq", "sv", "sw",
        "tl", "tr", "uz", "vi",
    ),
    "Cyrillic": ("be", "bg", "kk", "ky", "mk", "mn", "ru", "sr", "tg", "tt", "uk"),
    "Arabic": ("ar", "fa", "ps", "ug", "ur"),
    "Devanagari": ("hi", "mr", "ne", "sa"),
    "Bengali": ("as", "bn"),
}  # fmt: skip
"""Scripts shared by languages, with the candidates that are told apart. Regional varieties (Nigerian Pidgin,
Ligurian, Extremaduran, ...) are left out: on short texts they take probability from the language they resemble."""

HAN, KANA = "Han", "Kana"
WEIGHT: Final = {HAN: 3.0, KANA: 2.0, "Hangul": 2.0}
"""Content of a letter in Latin letters: a Han character is about half a word. All others weigh 1."""
KANA_SHARE: Final = 0.05
"""Han characters beside at least this share of kana are Japanese."""

SCRIPTS: Final = (HAN, KANA, *OWN_SCRIPT, *SHARED)
_CLASSES: Final = {name: rf"\p{{{name}}}" for name in SCRIPTS} | {KANA: r"\p{Hiragana}\p{Katakana}"}


def letter_counts(text: pl.Series) -> pl.DataFrame:
    """Letters of every script in every text, uint32, one column per script; `letters` counts those of any script.

    Most texts are Latin throughout, so the other scripts are only counted where Latin does not explain all letters.
    """
    frame = pl.DataFrame({"text": text})
    counts = frame.select(
        letters=pl.col("text").str.count_matches(r"\p{L}"),
        Latin=pl.col("text").str.count_matches(r"[\p{Latin}&&\p{L}]"),
    )
    rest = (counts["letters"] != counts["Latin"]).fill_null(value=False)
    others = [name for name in SCRIPTS if name != "Latin"]
    subset = frame.filter(rest).select(
        pl.col("text").str.count_matches(rf"[[{_CLASSES[name]}]&&\p{{L}}]").alias(name) for name in others
    )
    where = rest.arg_true()
    zero = pl.zeros(len(text), pl.UInt32, eager=True)
    return counts.with_columns(zero.clone().scatter(where, subset[name]).alias(name) for name in others)


def readable(text: pl.Series, max_chars: int) -> pl.Series:
    """The first `max_chars` characters of what is language in each text.

    Numbers, formulas and markup say nothing about the language but dilute the model's evidence; sentence punctuation
    stays, because marks such as `¿` do say something.
    """
    cut = r"[\p{N}\p{S}/*#%@_&\\(){}\[\]\s]+"
    frame = pl.DataFrame({"text": text})
    return frame.select(pl.col("text").str.replace_all(cut, " ").str.head(max_chars)).to_series()


def only_script(text: str, script: str) -> str:
    """The runs of one shared script in `text` with everything else turned into single spaces."""
    return str(pl.select(pl.lit(text).str.replace_all(rf"[^{_CLASSES[script]}\p{{M}}'’-]+", " ")).item())
