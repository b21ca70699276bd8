"""Plain Python meaning of tokens, shingles and their hashes: the oracle of the kernel and the datasketch tokeniser.

Every function here says in the shortest way what the compiled kernel does fast; property tests hold the two
together on arbitrary Unicode.

Source: shingling after Broder (1997).
"""

import unicodedata
from collections.abc import Sequence
from typing import Final

from datamill.services.minhash.characters import SEPARATOR_RANGES, UNSPACED_RANGES, in_ranges, lower_simple
from datamill.services.minhash.settings import Unit

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
    tokens: list[str] = []
    word = ""
    for character in normalise(text):
        separator, unspaced = _kind(character)
        if separator or unspaced:
            if word:
                tokens.append(word)
            word = ""
            if unspaced:
                tokens.append(character)
        else:
            word += character
    return [*tokens, word] if word else tokens


def char_tokens(text: str) -> list[str]:
    """Code points; a run of separators counts as one space, and none at either end."""
    spaced = "".join(" " if _kind(character)[0] else character for character in normalise(text))
    return list(" ".join(piece for piece in spaced.split(" ") if piece))


def tokens(text: str, unit: Unit) -> list[str]:
    """Tokens under `unit`; `auto` takes characters when unspaced characters outnumber the other words."""
    if unit == "chars":
        return char_tokens(text)
    words = word_tokens(text)
    num_unspaced = sum(_kind(word)[1] for word in words if len(word) == 1)
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


def _kind(character: str) -> tuple[bool, bool]:
    code = ord(character)
    return in_ranges(code, SEPARATOR_RANGES), in_ranges(code, UNSPACED_RANGES)
