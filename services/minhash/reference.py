"""Plain Python meaning of tokens, shingles and their hashes: the oracle of the kernel and the datasketch tokeniser.

Every function here says in the shortest way what the compiled kernel does fast; property tests hold the two
together on arbitrary Unicode.

Source: shingling after Broder (1997).
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

from datamill.services.minhash.characters import SEPARATOR_RANGES, UNSPACED_RANGES, lower_simple
from datamill.services.minhash.settings import Unit


def _members(ranges: tuple[tuple[int, int], ...]) -> str:
    """The inside of a regular-expression class."""
    return "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges)


_UNSPACED: Final = re.compile(f"[{_members(UNSPACED_RANGES)}]")
_GAP: Final = re.compile(f"[{_members(SEPARATOR_RANGES)}]+")
_WORD: Final = re.compile(f"[{_members(UNSPACED_RANGES)}]|[^{_members(SEPARATOR_RANGES)}{_members(UNSPACED_RANGES)}]+")
_MASK: Final[int] = (1 << 64) - 1
K1: Final[int] = 0x9E3779B185EBCA87
K2: Final[int] = 0xC2B2AE3D27D4EB4F
K3: Final[int] = 0x165667B19E3779F9
K4: Final[int] = 0xD6E8FEB86659FD93


def normalise(text: str) -> str:
    """NFC, then simple lower case."""
    return lower_simple(unicodedata.normalize("NFC", text))


def word_tokens(text: str) -> list[str]:
    """Words between separators; every code point of an unspaced script is a token of its own."""
    return _WORD.findall(normalise(text))


def char_tokens(text: str) -> list[str]:
    """Code points; a run of separators counts as one space, and none at either end."""
    return list(_GAP.sub(" ", normalise(text)).strip(" "))


def tokens(text: str, unit: Unit) -> list[str]:
    """Tokens under `unit`; `auto` takes characters when unspaced characters outnumber the other words."""
    if unit == "chars":
        return char_tokens(text)
    words = word_tokens(text)
    num_unspaced = sum(_UNSPACED.fullmatch(word) is not None for word in words)
    return char_tokens(text) if unit == "auto" and num_unspaced * 2 > len(words) else words


def shingles(text: str, unit: Unit, ngram: int) -> set[tuple[str, ...]]:
    """The set of `ngram` consecutive tokens; a shorter text is one shingle; a blank text has none."""
    sequence = tokens(text, unit)
    if not sequence:
        return set()
    return {tuple(sequence[i : i + ngram]) for i in range(max(1, len(sequence) - ngram + 1))}


def jaccard(left: str, right: str, unit: Unit, ngram: int) -> float:
    """Jaccard similarity of two texts' shingle sets; 0 when both are blank."""
    a, b = shingles(left, unit, ngram), shingles(right, unit, ngram)
    return len(a & b) / len(a | b) if a or b else 0.0


def token_hash(token: str) -> int:
    """64-bit hash of a token's UTF-8 bytes, read as little-endian words of eight bytes."""
    data = token.encode("utf-8", "surrogatepass")
    value = K3
    for start in range(0, len(data), 8):
        value = ((value ^ int.from_bytes(data[start : start + 8], "little")) * K1) & _MASK
        value ^= value >> 29
    return (value * K2) & _MASK


def shingle_hash(shingle: Sequence[str]) -> int:
    """64-bit hash of a shingle: a polynomial in the token hashes, mixed."""
    value = 0
    for token in shingle:
        value = (value * K1 + token_hash(token)) & _MASK
    return mix(value)


def mix(value: int) -> int:
    """Spread every bit of a 64-bit value over all others."""
    value ^= value >> 32
    value = (value * K4) & _MASK
    return value ^ (value >> 32)
