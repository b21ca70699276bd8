"""Word, line and symbol counts of documents in one compiled pass over their UTF-8 bytes.

What a code point is (space, letter, ...) is the caller's: it hands over a table of classes. Cost: about 170 MB/s a
core; the first use in a fresh installation compiles for a few seconds, later processes load the machine code.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from datamill.services.minhash.compiled import compiled

OTHER, SPACE, LETTER, NUMBER, SPACELESS_LETTER, SPACELESS_OTHER = range(6)
"""Classes of code points: signs; white space; letters and numbers of scripts with spaces between words; letters of
scripts without; anything else of those scripts (it ends a word and is none)."""
NUM_CODE_POINTS: Final = 0x110000
COUNTS: Final = (
    "tokens", "words", "alphabetic", "word_chars", "spaceless_letters", "hashes", "ellipses", "lines", "bullets",
    "dotted",
)  # fmt: skip
"""Columns of the result: runs of non-space characters and spaceless letters; those with a letter or number; those with
a letter; characters in `words`; letters of spaceless scripts; `#`; `...` and `…`; lines; lines that begin with `•` or
`-`; lines that end with an ellipsis."""


def document_counts(text: pa.Array | pa.ChunkedArray, classes: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Counts of every document, `(num_rows, len(COUNTS))` int64; those of a null are 0.

    Args:
        text: strings.
        classes: class of every code point, `(NUM_CODE_POINTS,)` uint8.
    """
    whole = text.combine_chunks() if isinstance(text, pa.ChunkedArray) else text
    strings = whole.cast(pa.large_string())
    _, ends, data = strings.buffers()
    if len(strings) == 0:
        return np.zeros((0, len(COUNTS)), dtype=np.int64)
    offsets = np.frombuffer(ends, dtype=np.int64)[strings.offset : strings.offset + len(strings) + 1]
    values = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, dtype=np.uint8)
    out = np.zeros((len(strings), len(COUNTS)), dtype=np.int64)
    _count_all(values, offsets, classes, out)
    return out


@compiled
def _count_all(values: Any, offsets: Any, classes: Any, out: Any) -> None:
    for row in range(out.shape[0]):
        _count_words(values, offsets[row], offsets[row + 1], classes, out[row])
        _count_lines(values, offsets[row], offsets[row + 1], classes, out[row])


@compiled
def _decode(values: Any, at: Any) -> Any:
    """Code point that begins at `at` and its length in bytes; the text is valid UTF-8."""
    first = np.int64(values[at])
    if first < 0x80:
        return first, 1
    if first < 0xE0:
        return ((first & 0x1F) << 6) | (values[at + 1] & 0x3F), 2
    middle = ((first & 0x0F) << 12) | (np.int64(values[at + 1] & 0x3F) << 6) | (values[at + 2] & 0x3F)
    if first < 0xF0:
        return middle, 3
    high = ((first & 0x07) << 18) | (np.int64(values[at + 1] & 0x3F) << 12)
    return high | (np.int64(values[at + 2] & 0x3F) << 6) | (values[at + 3] & 0x3F), 4


@compiled
def _count_words(values: Any, start: Any, end: Any, classes: Any, out: Any) -> None:
    tokens, words, alphabetic, word_chars, spaceless = 0, 0, 0, 0, 0
    run, signed, lettered = 0, False, False
    at = start
    while at <= end:
        kind, size = 1, 1  # the end closes a run as a space does
        if at < end:
            point, size = _decode(values, at)
            kind = classes[point]
        at += size
        if kind == 0 or kind == 2 or kind == 3:  # noqa: PLR1714  a set is slow in compiled code
            run += 1
            signed = signed or kind != 0
            lettered = lettered or kind == 2
            continue
        if run:
            tokens += 1
            if signed:
                words += 1
                word_chars += run
            if lettered:
                alphabetic += 1
            run, signed, lettered = 0, False, False
        if kind == 4:
            spaceless += 1
    out[0], out[1], out[2] = tokens + spaceless, words + spaceless, alphabetic + spaceless
    out[3], out[4] = word_chars + spaceless, spaceless


@compiled
def _count_lines(values: Any, start: Any, end: Any, classes: Any, out: Any) -> None:
    hashes, ellipses, bullets, dotted = 0, 0, 0, 0
    lines = 1 if end > start and values[end - 1] != 10 else 0  # the end of the text ends a line as `\n` does
    fresh, after_space = True, True  # nothing but spaces so far in this line; the last character was a space
    dots, ellipsis = 0, False  # full stops, or an ellipsis sign, at the end of what was seen of the line
    at = start
    while at < end:
        point, size = _decode(values, at)
        at += size
        if point == 10:
            dotted += dots >= 3 or ellipsis
            lines += 1
            fresh, after_space, dots, ellipsis = True, True, 0, False
            continue
        if classes[point] == 1:
            after_space = True
            continue
        if fresh:
            bullets += point == 0x2022 or point == 0x2D  # noqa: PLR1714  as above
            fresh = False
        hashes += point == 0x23
        dots = (1 if after_space else dots + 1) if point == 0x2E else 0
        ellipsis = point == 0x2026
        ellipses += ellipsis or (dots > 0 and dots % 3 == 0)
        after_space = False
    dotted += dots >= 3 or ellipsis
    out[5], out[6], out[7], out[8], out[9] = hashes, ellipses, lines, bullets, dotted
