"""Sketches of Arrow string columns: band keys, content hashes, shingle sets and row hashes.

Any string column goes: plain, large, view or dictionary strings, chunked, sliced, with nulls. Offsets and bytes are
used where they lie. Texts that the kernel's NFC quick check cannot wave through are composed with `unicodedata`
and sketched again.

Cost: see `kernel`; the tables for other than ASCII text are built only when a non-ASCII byte is seen.
"""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from datamill.services.minhash import kernel
from datamill.services.minhash.characters import character_table
from datamill.services.minhash.settings import SketchSettings, Unit

_NO_TABLES: kernel.Tables = (np.zeros(1, np.uint32), np.zeros(1, np.uint8))


@dataclass(frozen=True, slots=True)
class Sketches:
    """Sketches of `n` texts.

    Attributes:
        keys: `(n, bands) uint64`; meaningless where `counts` is not positive.
        contents: `(n,) uint64`, equal for texts that read the same after normalisation.
        counts: `(n,) int64` shingles with repetition; 0 for a blank text, -1 for a null.
        signatures: `(n, bands * key_rows) uint32` minima, or no rows when they were not asked for.
    """

    keys: NDArray[np.uint64]
    contents: NDArray[np.uint64]
    counts: NDArray[np.int64]
    signatures: NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class _Strings:
    """One Arrow array as the kernel reads it; `owner` keeps the buffers alive."""

    owner: pa.Array
    base: int
    offsets: NDArray[np.int64]
    valid: NDArray[np.bool_]
    data: NDArray[np.uint8]

    def tables(self) -> kernel.Tables:
        low, high = (int(self.offsets[0]), int(self.offsets[-1])) if len(self.offsets) > 1 else (0, 0)
        return character_table() if high > low and int(self.data[low:high].max()) >= 0x80 else _NO_TABLES


def sketch_column(
    column: pa.Array | pa.ChunkedArray, settings: SketchSettings, *, signatures: bool = False
) -> Sketches:
    """Sketch every text of a string column with the fused kernel.

    Args:
        column: strings; nulls allowed.
        settings: banding, n-gram and seed.
        signatures: also return the minima.

    Returns:
        Sketches in the order of the column.
    """
    a, b = settings.permutations()
    num_docs = len(column)
    found = _empty(num_docs, settings.bands, len(a), signatures)
    done = 0
    for strings in _chunks(column):
        stop = done + len(strings.valid)
        part = _slice(found, done, stop, signatures)
        flags = _run(strings, settings, a, b, part)
        if flags.any():
            where = np.flatnonzero(flags)
            again = _empty(len(where), settings.bands, len(a), signatures)
            _run(_composed(strings, where), settings, a, b, again)
            for name in ("keys", "contents", "counts") + (("signatures",) if signatures else ()):
                getattr(part, name)[where] = getattr(again, name)
        done = stop
    return found


def shingle_set_arrays(
    column: pa.Array | pa.ChunkedArray, unit: Unit, ngram: int
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Sorted distinct 64-bit shingle hashes of every text.

    Returns:
        The sets one after another, `(total,) uint64`, and their limits, `(n + 1,) int64`: set `i` is
        `flat[limits[i]:limits[i + 1]]`. Nulls and blank texts have empty sets.
    """
    pieces: list[NDArray[np.uint64]] = []
    sizes: list[NDArray[np.int64]] = [np.zeros(1, np.int64)]
    for strings in _chunks(column):
        flat, bounds, flags = _sets(strings, unit, ngram)
        if flags.any():
            flat, bounds = _replace_sets(strings, flags, flat, bounds, unit, ngram)
        pieces.append(flat)
        sizes.append(np.diff(bounds))
    limits = np.cumsum(np.concatenate(sizes), dtype=np.int64)
    return (np.concatenate(pieces) if pieces else np.empty(0, np.uint64)), limits


def row_hashes(column: pa.Array | pa.ChunkedArray) -> NDArray[np.uint64]:
    """64-bit hash of every string of `column` (row ids), `(n,) uint64`."""
    found = [np.empty(0, np.uint64)]
    for strings in _chunks(column):
        out = np.empty(len(strings.valid), np.uint64)
        kernel.hash_strings(strings.base, strings.offsets, out)
        found.append(out)
    return np.concatenate(found)


def blank_mask(column: pa.Array | pa.ChunkedArray) -> NDArray[np.bool_]:
    """Whether each text is empty or made of separators only, `(n,) bool`; False for nulls."""
    found = [np.empty(0, np.bool_)]
    for strings in _chunks(column):
        out = np.empty(len(strings.valid), np.bool_)
        kernel.blank_strings(strings.base, strings.offsets, strings.tables()[0], out)
        found.append(out & strings.valid)
    return np.concatenate(found)


def _chunks(column: pa.Array | pa.ChunkedArray) -> Iterator[_Strings]:
    if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
        column = column.cast(pa.large_string())
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        if len(chunk):
            yield _strings(chunk)


def _strings(chunk: pa.Array) -> _Strings:
    width: Any = np.int64 if pa.types.is_large_string(chunk.type) else np.int32
    _, offset_buffer, data_buffer = chunk.buffers()
    offsets = np.frombuffer(offset_buffer, width)[chunk.offset : chunk.offset + len(chunk) + 1].astype(np.int64)
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.empty(0, np.uint8)
    valid = np.asarray(chunk.is_valid()) if chunk.null_count else np.ones(len(chunk), np.bool_)
    address = data_buffer.address if data_buffer is not None else 0
    return _Strings(chunk, address, offsets, valid, data)


def _composed(strings: _Strings, where: NDArray[np.int64]) -> _Strings:
    texts = strings.owner.take(pa.array(where)).to_pylist()
    return _strings(pa.array([unicodedata.normalize("NFC", text) for text in texts], pa.large_string()))


def _empty(num_docs: int, bands: int, num_perm: int, signatures: bool) -> Sketches:
    return Sketches(
        np.zeros((num_docs, bands), np.uint64),
        np.zeros(num_docs, np.uint64),
        np.zeros(num_docs, np.int64),
        np.zeros((num_docs if signatures else 0, num_perm), np.uint32),
    )


def _slice(whole: Sketches, low: int, high: int, signatures: bool) -> Sketches:
    minima = whole.signatures[low:high] if signatures else whole.signatures
    return Sketches(whole.keys[low:high], whole.contents[low:high], whole.counts[low:high], minima)


def _run(
    strings: _Strings, settings: SketchSettings, a: NDArray[np.uint32], b: NDArray[np.uint32], out: Sketches
) -> NDArray[np.uint8]:
    flags = np.zeros(len(strings.valid), np.uint8)
    table, combining = strings.tables()
    unit = kernel.UNIT_CODES[settings.unit]
    kernel.sketch_documents(
        strings.base, strings.offsets, strings.valid, unit, settings.ngram, a, b, settings.bands,
        table, combining, out.keys, out.contents, out.counts, flags, out.signatures,
    )  # fmt: skip
    return flags


def _sets(strings: _Strings, unit: Unit, ngram: int) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint8]]:
    table, combining = strings.tables()
    room = np.empty(int(strings.offsets[-1] - strings.offsets[0]) + 1, np.uint64)
    bounds = np.zeros(len(strings.offsets), np.int64)
    flags = np.zeros(len(strings.valid), np.uint8)
    used = kernel.shingle_sets(
        strings.base, strings.offsets, strings.valid, kernel.UNIT_CODES[unit], ngram, table, combining,
        room, bounds, flags,
    )  # fmt: skip
    return room[:used].copy(), bounds, flags


def _replace_sets(
    strings: _Strings,
    flags: NDArray[np.uint8],
    flat: NDArray[np.uint64],
    bounds: NDArray[np.int64],
    unit: Unit,
    ngram: int,
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    where = np.flatnonzero(flags)
    new_flat, new_bounds, _ = _sets(_composed(strings, where), unit, ngram)
    sets = [flat[low:high] for low, high in pairwise(bounds)]
    for i, position in enumerate(where):
        sets[position] = new_flat[new_bounds[i] : new_bounds[i + 1]]
    sizes = np.array([0, *(len(one) for one in sets)], np.int64)
    return np.concatenate(sets), np.cumsum(sizes)
