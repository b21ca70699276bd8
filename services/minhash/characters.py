"""What a character is to the tokeniser: separator, part of a word, or a word of its own.

One table drives the compiled kernel and the plain Python reference, so both read a text in the same way:

* *separators*: C0 controls and space, and the other code points with the Unicode property White_Space, plus
  ZERO WIDTH SPACE and the byte order mark;
* *unspaced*: letters, marks and punctuation of scripts written without spaces between words (Han, kana, bopomofo,
  Thai, Lao, Khmer); each code point is a token of its own, as UAX #29 has it for ideographs;
* everything else belongs to a word. Punctuation stays attached: `2+3` and `2-3` must differ.

Each character is lower-cased where that is one code point to one code point (U+0130 and final sigma keep their
simple form), after the text has been brought to NFC.

Cost: the tables take 5.5 MB and under a tenth of a second to build, once per process, and only when a text that is
not ASCII turns up.

Source: Unicode Standard Annexes #15 (quick check for NFC) and #29 (word boundaries).
"""

import unicodedata
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

LOWER_MASK: Final[int] = 0x1FFFFF
SEPARATOR: Final[int] = 1 << 21
UNSPACED: Final[int] = 1 << 22
RECOMPOSE: Final[int] = 1 << 23
"""The code point may combine with what stands before it, or is not NFC by itself."""

_NUM_CODE_POINTS: Final[int] = 0x110000
_ASSIGNED: Final = (range(0x80, 0xD800), range(0xE000, 0x323B0), range(0xE0000, 0xE0200))
SEPARATOR_RANGES: Final = (
    (0x00, 0x20), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200B), (0x2028, 0x2029),
    (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF),
)  # fmt: skip
UNSPACED_RANGES: Final = (
    (0x0E01, 0x0E3A), (0x0E40, 0x0E4F), (0x0E5A, 0x0E5B),  # Thai
    (0x0E80, 0x0ECF), (0x0EDC, 0x0EDF),  # Lao
    (0x1780, 0x17DF), (0x19E0, 0x19FF),  # Khmer
    (0x2E80, 0x2FDF), (0x3001, 0x303F), (0x3040, 0x312F), (0x31A0, 0x31FF),  # radicals, CJK marks, kana, bopomofo
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF),  # Han
    (0xFF01, 0xFF0F), (0xFF1A, 0xFF20), (0xFF3B, 0xFF40), (0xFF5B, 0xFF9F),  # full-width marks, half-width kana
    (0x1AFF0, 0x1AFFF), (0x1B000, 0x1B16F), (0x20000, 0x323AF),  # kana supplements, Han extensions
)  # fmt: skip
_HANGUL_TAILS: Final = ((0x1161, 0x1175), (0x11A8, 0x11C2))


@cache
def character_table() -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
    """Class and lower case, and canonical combining class, of every code point.

    Returns:
        `(0x110000,) uint32` whose low 21 bits are the lower-cased code point and whose higher bits are `SEPARATOR`,
        `UNSPACED` and `RECOMPOSE`; and `(0x110000,) uint8` combining classes.
    """
    info = np.arange(_NUM_CODE_POINTS, dtype=np.uint32)
    combining = np.zeros(_NUM_CODE_POINTS, np.uint8)
    info[65:91] += 32
    for block in _ASSIGNED:
        for code in block:
            character = chr(code)
            lower = character.lower()
            if lower != character and len(lower) == 1:
                info[code] = ord(lower)
            if unicodedata.decomposition(character):
                _mark_recomposing(info, code, character)
            if rank := unicodedata.combining(character):
                combining[code] = rank
    for bit, ranges in ((SEPARATOR, SEPARATOR_RANGES), (UNSPACED, UNSPACED_RANGES), (RECOMPOSE, _HANGUL_TAILS)):
        for low, high in ranges:
            info[low : high + 1] |= np.uint32(bit)
    return info, combining


def _mark_recomposing(info: NDArray[np.uint32], code: int, character: str) -> None:
    """Note from one canonical decomposition which code points the NFC quick check cannot wave through."""
    if not unicodedata.is_normalized("NFC", character):
        info[code] |= np.uint32(RECOMPOSE)
        return
    parts = unicodedata.decomposition(character).split()
    if not parts[0].startswith("<") and len(parts) == 2:
        info[int(parts[1], 16)] |= np.uint32(RECOMPOSE)


def lower_simple(text: str) -> str:
    """Lower-case code point by code point, leaving those whose lower case is longer than one."""
    if text.isascii():
        return text.lower()
    return "".join(low if len(low := character.lower()) == 1 else character for character in text)
