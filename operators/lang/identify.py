"""Language of a text: by script where the script decides, by a statistical model where it does not.

The model is py3langid's naive Bayes over byte n-grams; its log-posterior is divided by the square root of the text's
length before the softmax, which keeps the scores of short texts honest (its own `norm_probs`). Candidates are the
languages of `scripts.SHARED`. Cost: about 1 MB/s a core on the statistical path (first `MAX_CHARS` characters of a
text), far less time on the other. Source: Lui & Baldwin, "langid.py" (2012); Barbaresi, py3langid.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from datamill.operators.lang.scripts import HAN, KANA, KANA_SHARE, OWN_SCRIPT, SHARED, WEIGHT, only_script

UNKNOWN = "unknown"
MAX_CHARS = 1000
"""Characters of the readable part of a text that the model looks at."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known about one text.

    Attributes:
        lang: ISO 639-1 code of the main language, or `unknown`.
        score: confidence in the labels in 0..1, the mean over the languages weighted by their shares; None if unknown.
        mix: codes of all languages by share, joined by `+`, when there are several.
    """

    lang: str
    score: float | None = None
    mix: str | None = None


@lru_cache(maxsize=32)
def _identifier(languages: tuple[str, ...]) -> Any:
    identifier = copy.copy(_full_identifier())
    identifier.set_languages(languages)
    return identifier


@lru_cache(maxsize=1)
def _full_identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


@lru_cache(maxsize=32)
def candidates(script: str, languages: tuple[str, ...] | None) -> tuple[str, ...]:
    """Languages that are told apart in `script`, restricted to `languages` unless that would leave none."""
    chosen = tuple(code for code in SHARED[script] if languages is None or code in languages)
    return chosen or SHARED[script]


def identify(
    text: str,
    readable: str,
    letters: Mapping[str, int],
    *,
    min_chars: int,
    min_share: float,
    languages: tuple[str, ...] | None,
) -> Verdict:
    """The language or languages of `text`.

    Args:
        text: the text.
        readable: what the model looks at, see `scripts.readable`.
        letters: letters per script, as `scripts.letter_counts` gives them.
        min_chars: fewer characters than this say nothing where several languages share the script; inside mixed
            text, a part with fewer letters than this counts as foreign words, not as a language.
        min_share: share of the text's content from which a further script makes the text mixed.
        languages: candidates; None for all.
    """
    parts = _parts(letters)
    total = sum(weight for _, weight in parts)
    if not parts or (parts[0][0] in SHARED and len(text.strip()) < min_chars):
        return Verdict(UNKNOWN)
    present = [parts[0]]
    for script, weight in parts[1:]:
        enough = script not in SHARED or letters[script] >= min_chars
        if weight / total >= min_share and enough:
            present.append((script, weight))
    mixed = len(present) > 1
    found = [(*_language(readable, script, languages, mixed=mixed), weight) for script, weight in present]
    known = sum(weight for _, _, weight in found)
    score = sum(confidence * weight for _, confidence, weight in found) / known
    codes = list(dict.fromkeys(code for code, _, _ in found))
    return Verdict(codes[0], round(score, 4), "+".join(codes) if len(codes) > 1 else None)


def _parts(letters: Mapping[str, int]) -> Sequence[tuple[str, float]]:
    """Scripts with their content, largest first; Han and kana are one part, called by what they mean."""
    weights = {script: letters[script] * WEIGHT.get(script, 1.0) for script in (*OWN_SCRIPT, *SHARED)}
    han, kana = letters[HAN], letters[KANA]
    east = KANA if kana and kana >= KANA_SHARE * (han + kana) else HAN
    weights[east] = han * WEIGHT[HAN] + kana * WEIGHT[KANA]
    return sorted(((s, w) for s, w in weights.items() if w > 0), key=lambda part: (-part[1], part[0]))


def _language(text: str, script: str, languages: tuple[str, ...] | None, *, mixed: bool) -> tuple[str, float]:
    if script in SHARED:
        part = only_script(text, script) if mixed else text
        code, confidence = _identifier(candidates(script, languages)).classify(part)
        return str(code), float(confidence)
    return {HAN: "zh", KANA: "ja"}.get(script) or OWN_SCRIPT[script], 1.0
