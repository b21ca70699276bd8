"""Fused kernel: UTF-8 bytes -> tokens -> shingle hashes -> MinHash -> band keys, on Arrow string buffers.

No Python object is made per document or token. Bytes are read eight at a time, and only bytes of the document at
hand: the last, partial word of a document is taken from a load that ends at its end, so a buffer is never read past
its end, whatever the slice. ASCII runs take a word-parallel path; other characters are decoded and looked up in the
table of `characters`. A document whose characters might compose under NFC is flagged, and the caller normalises it.

Cost: about 1 ns a byte for tokens plus 0.1 ns per shingle and permutation; scratch of eight bytes per input byte of
the largest document.

Source: Broder (1997) for MinHash; multiply-add permutations on already mixed 32-bit values; the tests of
"zero byte in a word" after H. S. Warren, "Hacker's Delight", chapter 6.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from datamill.services.minhash import characters, reference
from datamill.services.minhash.compiled import compiled
from datamill.services.minhash.sorting import sort_values

U64 = np.uint64
U32 = np.uint32
K1 = U64(reference.K1)
K2 = U64(reference.K2)
K3 = U64(reference.K3)
K4 = U64(reference.K4)
ABOVE_SPACE = U64(0x2121212121212121)
HIGH_BITS = U64(0x8080808080808080)
LOW_BITS = U64(0x7F7F7F7F7F7F7F7F)
FROM_A = U64(0x3F3F3F3F3F3F3F3F)  # 0x80 - 'A' in each byte
PAST_Z = U64(0x2525252525252525)  # 0x7f - 'Z' in each byte
LOWER_MASK = U32(characters.LOWER_MASK)
SEPARATOR = U32(characters.SEPARATOR)
UNSPACED = U32(characters.UNSPACED)
RECOMPOSE = U32(characters.RECOMPOSE)
UNIT_CODES = {"words": 0, "chars": 1, "auto": 2}


@intrinsic  # type: ignore[untyped-decorator]  # numba ships no types
def _load8(_context: Any, _address: Any) -> Any:
    """Eight bytes at an address, alignment unknown, as uint64."""

    def generate(_ctx: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        value = builder.load(pointer)
        value.align = 1
        return value

    return types.uint64(types.uintp), generate


@intrinsic  # type: ignore[untyped-decorator]  # numba ships no types
def _load1(_context: Any, _address: Any) -> Any:
    """One byte at an address, as uint64."""

    def generate(_ctx: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())
        return builder.zext(builder.load(pointer), ir.IntType(64))

    return types.uint64(types.uintp), generate


@intrinsic  # type: ignore[untyped-decorator]  # numba ships no types
def _trailing_zeros(_context: Any, _value: Any) -> Any:
    """Number of trailing zero bits of a uint64."""

    def generate(_ctx: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), generate


@compiled
def mix(value: Any) -> Any:
    """See `reference.mix`."""
    value ^= value >> U64(32)
    value *= K4
    return value ^ (value >> U64(32))


@compiled
def _fold(value: Any, chunk: Any) -> Any:
    value = (value ^ chunk) * K1
    return value ^ (value >> U64(29))


@compiled
def _chunk(position: Any, start: Any, end: Any) -> Any:
    """Up to eight bytes at `position`, zero-padded; reads nothing outside `[start, end)`."""
    left = end - position
    if left >= 8:
        return _load8(position)
    if end - start >= 8:
        return _load8(end - 8) >> U64(8 * (8 - left))
    value = U64(0)
    for i in range(left):
        value |= _load1(position + i) << U64(8 * i)
    return value


@compiled
def _lower_ascii(chunk: Any) -> Any:
    """Lower-case the ASCII letters among eight bytes at once."""
    seven = chunk & LOW_BITS
    upper = ((seven + FROM_A) ^ (seven + PAST_Z)) & ~chunk & HIGH_BITS
    return chunk | (upper >> U64(2))


@compiled
def _decode(position: Any, end: Any) -> tuple[Any, Any]:
    """Code point at `position` and its length in bytes; a malformed byte counts as U+FFFD."""
    first = _load1(position)
    if first < U64(0x80):
        return np.int64(first), 1
    size = 2 if first < U64(0xE0) else (3 if first < U64(0xF0) else 4)
    if first < U64(0xC2) or first > U64(0xF4) or position + size > end:
        return np.int64(0xFFFD), 1
    code = np.int64(first & (U64(0xFF) >> U64(size + 1)))
    for i in range(1, size):
        byte = _load1(position + i)
        if byte & U64(0xC0) != U64(0x80):
            return np.int64(0xFFFD), 1
        code = (code << 6) | np.int64(byte & U64(0x3F))
    return (code, size) if code < 0x110000 else (np.int64(0xFFFD), 1)


@compiled
def _encode(code: Any) -> tuple[Any, Any]:
    """UTF-8 bytes of a code point as a little-endian integer, and their number."""
    c = U64(code)
    tail = U64(0x80) | (c & U64(0x3F))
    if c < U64(0x80):
        return c, 1
    if c < U64(0x800):
        return (U64(0xC0) | (c >> U64(6))) | (tail << U64(8)), 2
    middle = U64(0x80) | ((c >> U64(6)) & U64(0x3F))
    if c < U64(0x10000):
        return (U64(0xE0) | (c >> U64(12))) | (middle << U64(8)) | (tail << U64(16)), 3
    second = U64(0x80) | ((c >> U64(12)) & U64(0x3F))
    return (U64(0xF0) | (c >> U64(18))) | (second << U64(8)) | (middle << U64(16)) | (tail << U64(24)), 4


@compiled
def _unicode_run(
    position: Any, end: Any, table: Any, combining: Any, out: Any, count: Any
) -> tuple[Any, Any, Any, Any]:
    """Tokens of one run without separators: next position, token count, unspaced characters, NFC flag."""
    value, pending, filled, length = K3, U64(0), 0, 0
    num_unspaced, flag, last_rank = 0, 0, np.int64(0)
    while position < end:
        code, size = _decode(position, end)
        position += size
        info = table[code]
        if info & SEPARATOR:
            break
        rank = np.int64(combining[code])
        if info & RECOMPOSE or (rank != 0 and rank < last_rank):
            flag = 1
        last_rank = rank
        encoded, width = _encode(info & LOWER_MASK)
        if info & UNSPACED:
            if length > 0:
                out[count] = (_fold(value, pending) if filled > 0 else value) * K2
                count += 1
                value, pending, filled, length = K3, U64(0), 0, 0
            out[count] = _fold(K3, encoded) * K2
            count += 1
            num_unspaced += 1
            continue
        length += 1
        pending |= encoded << U64(8 * filled)
        filled += width
        if filled >= 8:
            value = _fold(value, pending)
            filled -= 8
            pending = encoded >> U64(8 * (width - filled)) if filled > 0 else U64(0)
    if length > 0:
        out[count] = (_fold(value, pending) if filled > 0 else value) * K2
        count += 1
    return position, count, num_unspaced, flag


@compiled
def word_tokens(start: Any, end: Any, table: Any, combining: Any, out: Any) -> tuple[Any, Any, Any]:
    """Token hashes of the bytes `[start, end)` into `out`: count, unspaced characters, NFC flag."""
    position, count, num_unspaced, flag = start, 0, 0, 0
    while position < end:
        chunk = _chunk(position, start, end)
        if chunk & U64(0xFF) <= U64(0x20):
            position += 1
            continue
        value, cursor, ascii_only = K3, position, True
        while True:
            stops = (chunk - ABOVE_SPACE) & ~chunk & HIGH_BITS
            length = np.int64(8)
            if stops != U64(0):
                length = np.int64(_trailing_zeros(stops) >> U64(3))
                chunk &= (U64(1) << U64(8 * length)) - U64(1)
            if chunk & HIGH_BITS:
                ascii_only = False
                break
            if length > 0:
                value = _fold(value, _lower_ascii(chunk))
            cursor += length
            if length < 8 or cursor >= end:
                break
            chunk = _chunk(cursor, start, end)
        if ascii_only:
            out[count] = value * K2
            count += 1
            position = cursor
        else:
            position, count, more, marked = _unicode_run(position, end, table, combining, out, count)
            num_unspaced += more
            flag |= marked
    return count, num_unspaced, flag


@compiled
def char_tokens(start: Any, end: Any, table: Any, combining: Any, out: Any) -> tuple[Any, Any]:
    """Hashes of the code points of `[start, end)` into `out`, runs of separators as one space: count, NFC flag."""
    position, count, flag, last_rank, gap = start, 0, 0, np.int64(0), False
    while position < end:
        code, size = _decode(position, end)
        position += size
        if code < 0x80:
            info = U32(code + 32) if 65 <= code <= 90 else U32(code)
            if code <= 0x20:
                info |= SEPARATOR
            last_rank = np.int64(0)
        else:
            info = table[code]
            rank = np.int64(combining[code])
            if info & RECOMPOSE or (rank != 0 and rank < last_rank):
                flag = 1
            last_rank = rank
        if info & SEPARATOR:
            gap = count > 0
            continue
        if gap:
            out[count] = _fold(K3, U64(0x20)) * K2
            count += 1
            gap = False
        encoded, _ = _encode(info & LOWER_MASK)
        out[count] = _fold(K3, encoded) * K2
        count += 1
    return count, flag


@compiled
def text_tokens(start: Any, end: Any, unit: Any, table: Any, combining: Any, out: Any) -> tuple[Any, Any]:
    """Token hashes under `unit` (a value of `UNIT_CODES`): count, NFC flag."""
    if unit == 1:
        return char_tokens(start, end, table, combining, out)
    count, num_unspaced, flag = word_tokens(start, end, table, combining, out)
    if unit == 2 and num_unspaced * 2 > count:
        return char_tokens(start, end, table, combining, out)
    return count, flag


@compiled
def shingle_hashes(tokens: Any, count: Any, ngram: Any, out: Any) -> Any:
    """64-bit hashes of the `ngram`-token windows into `out` (may be `tokens` itself): their number."""
    if count == 0:
        return 0
    size = min(ngram, count)
    leaving = U64(1)
    for _ in range(size):
        leaving *= K1
    window = U64(0)
    for i in range(size):
        window = window * K1 + tokens[i]
    for i in range(count - size):
        first = tokens[i]
        out[i] = mix(window)
        window = window * K1 + tokens[i + size] - first * leaving
    out[count - size] = mix(window)
    return count - size + 1


@compiled
def _content_hash(tokens: Any, count: Any) -> Any:
    """Hash of the whole token sequence: equal for texts that read the same after normalisation."""
    value = U64(count)
    for i in range(count):
        value = value * K3 + tokens[i]
    return mix(value)


@compiled
def _minima(values: Any, count: Any, multipliers: Any, offsets: Any, out: Any) -> None:
    """Minimum over `values[:count]` of every permutation `a * x + b (mod 2^32)`."""
    for j in range(multipliers.shape[0]):
        a, b, least = multipliers[j], offsets[j], U32(0xFFFFFFFF)
        for i in range(count):
            least = min(least, U32(values[i] * a + b))
        out[j] = least


@compiled
def band_key(band: Any, signature: Any, first: Any, rows: Any) -> Any:
    """64-bit key of one band of a signature."""
    value = U64(band) * K2 + U64(1)
    for r in range(rows):
        value = (value ^ U64(signature[first + r])) * K1
        value ^= value >> U64(31)
    return mix(value)


@compiled
def sketch_documents(
    base: Any, offsets: Any, valid: Any, unit: Any, ngram: Any, multipliers: Any, addends: Any, bands: Any,
    table: Any, combining: Any, keys: Any, contents: Any, counts: Any, flags: Any, signatures: Any,
) -> None:  # fmt: skip
    """Band keys `(n, bands)`, content hashes, shingle counts (-1 null) and NFC flags of `n` documents.

    `signatures` receives the minima when it has `n` rows, and is left alone when it has none.
    """
    num_docs = offsets.shape[0] - 1
    longest = 0
    for d in range(num_docs):
        longest = max(longest, offsets[d + 1] - offsets[d])
    tokens = np.empty(longest + 1, np.uint64)
    values = np.empty(longest + 1, np.uint32)
    minima = np.empty(multipliers.shape[0], np.uint32)
    rows = multipliers.shape[0] // bands
    for d in range(num_docs):
        if not valid[d]:
            counts[d] = -1
            continue
        start, end = base + offsets[d], base + offsets[d + 1]
        num_tokens, flags[d] = text_tokens(start, end, unit, table, combining, tokens)
        contents[d] = _content_hash(tokens, num_tokens)
        count = shingle_hashes(tokens, num_tokens, ngram, tokens)
        counts[d] = count
        for i in range(count):
            values[i] = U32(tokens[i] >> U64(32))
        _minima(values, count, multipliers, addends, minima)
        for q in range(bands):
            keys[d, q] = band_key(q, minima, q * rows, rows)
        if signatures.shape[0] > 0:
            signatures[d, :] = minima


@compiled
def shingle_sets(
    base: Any, offsets: Any, valid: Any, unit: Any, ngram: Any, table: Any, combining: Any,
    flat: Any, bounds: Any, flags: Any,
) -> Any:  # fmt: skip
    """Sorted distinct shingle hashes of every document, one after another in `flat`; `bounds` gets `n + 1` limits."""
    used = 0
    bounds[0] = 0
    for d in range(offsets.shape[0] - 1):
        if not valid[d]:
            bounds[d + 1] = used
            continue
        room = flat[used:]
        num_tokens, flags[d] = text_tokens(base + offsets[d], base + offsets[d + 1], unit, table, combining, room)
        count = shingle_hashes(room, num_tokens, ngram, room)
        sort_values(room, 0, count)
        distinct = min(count, 1)
        for i in range(1, count):
            if room[i] != room[distinct - 1]:
                room[distinct] = room[i]
                distinct += 1
        used += distinct
        bounds[d + 1] = used
    return used


@compiled
def hash_strings(base: Any, offsets: Any, out: Any) -> None:
    """64-bit hash of every string, byte for byte."""
    for d in range(offsets.shape[0] - 1):
        start, end = base + offsets[d], base + offsets[d + 1]
        value = U64(end - start) * K2 + K3
        position = start
        while position < end:
            value = _fold(value, _chunk(position, start, end))
            position += 8
        out[d] = mix(value * K2)


@compiled
def blank_strings(base: Any, offsets: Any, table: Any, out: Any) -> None:
    """Whether every character of a string is a separator."""
    for d in range(offsets.shape[0] - 1):
        position, end = base + offsets[d], base + offsets[d + 1]
        out[d] = True
        while position < end:
            code, size = _decode(position, end)
            position += size
            if code > 0x20 and (code < 0x80 or not (table[code] & SEPARATOR)):
                out[d] = False
                break


Tables = tuple[NDArray[np.uint32], NDArray[np.uint8]]
