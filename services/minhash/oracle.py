"""The second backend: `datasketch` minima over the plain Python shingles, in the kernel's own form.

Slow and independent: it shares with the fused kernel the meaning of a shingle and the banding, and nothing of its
arithmetic. It serves as reference and, through the saved index, for incremental work where datasketch's
permutations are wanted.

Source: E. Zhu, datasketch (MinHash with `(a x + b) mod p mod 2^32`); xxHash32 of each shingle.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

from datamill.services.minhash import reference
from datamill.services.minhash.settings import SketchSettings
from datamill.services.minhash.sketch import Sketches

_JOIN = "\x1f"  # a separator, so it is never part of a word


def shingle_bytes(text: str, settings: SketchSettings) -> list[bytes]:
    """The distinct shingles of a text as bytes, the way datasketch wants them."""
    found = reference.shingles(text, settings.unit, settings.ngram)
    return [_JOIN.join(shingle).encode("utf-8", "surrogatepass") for shingle in sorted(found)]


def new_minhash(settings: SketchSettings) -> Any:
    """An empty `datasketch.MinHash` for `settings`, with `bands * key_rows` permutations and xxHash32."""
    from datasketch import MinHash

    return MinHash(num_perm=settings.bands * settings.key_rows, seed=settings.seed, hashfunc=xxhash.xxh32_intdigest)


def sketch_with_datasketch(column: pa.Array | pa.ChunkedArray, settings: SketchSettings) -> Sketches:
    """Sketch every text with datasketch; see `Sketches` for the shapes. Content hashes are xxh3-64 of the tokens."""
    texts = column.to_pylist()
    empty = new_minhash(settings)
    keys = np.zeros((len(texts), settings.bands), np.uint64)
    contents = np.zeros(len(texts), np.uint64)
    counts = np.zeros(len(texts), np.int64)
    signatures = np.zeros((len(texts), settings.bands * settings.key_rows), np.uint32)
    for i, text in enumerate(texts):
        if text is None:
            counts[i] = -1
            continue
        shingles = shingle_bytes(text, settings)
        counts[i] = len(shingles)
        contents[i] = xxhash.xxh3_64_intdigest(_JOIN.join(reference.tokens(text, settings.unit)).encode())
        minhash = empty.copy()
        minhash.update_batch(shingles)
        signatures[i] = minhash.hashvalues.astype(np.uint32)
        keys[i] = _band_keys(signatures[i], settings)
    return Sketches(keys, contents, counts, signatures)


def _band_keys(signature: NDArray[np.uint32], settings: SketchSettings) -> list[int]:
    width = settings.key_rows
    pieces = (signature[q * width : (q + 1) * width].tobytes() for q in range(settings.bands))
    return [xxhash.xxh3_64_intdigest(piece, seed=q) for q, piece in enumerate(pieces)]
