"""Sketches of Arrow columns: every layout, the reference hashes, NFC, theory, and no byte read past the end."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from datamill.services.minhash import reference
from datamill.services.minhash.settings import SketchSettings
from datamill.services.minhash.sketch import blank_mask, row_hashes, shingle_set_arrays, sketch_column

TEXTS = [
    "Hello World, the Quick brown fox jumps over", "是", "你好世界，我们来了", "", " \u3000", None, "e\u0301a caf\u00e9 \u0130x",
    "สวัสดีชาวโลก hello", "ß ẞ Σίσυφος", "exactly8", "sixteen_chars_ab", "a", "1234567 12345678 123456789",
    "\U0001f600 emoji\U0001f469\u200d\U0001f4bb", "tab\tand\nnewline\x00nul", "日本語 text 日本", "trailing space ",
]  # fmt: skip
UNITS = ["words", "chars", "auto"]


def reference_sets(texts: list[str | None], unit: str, ngram: int) -> list[list[int]]:
    found = [reference.shingles(text or "", unit, ngram) for text in texts]  # type: ignore[arg-type]  # a Unit
    return [sorted(reference.shingle_hash(shingle) for shingle in one) for one in found]


def kernel_sets(column: pa.Array | pa.ChunkedArray, unit: str, ngram: int) -> list[list[int]]:
    flat, limits = shingle_set_arrays(column, unit, ngram)  # type: ignore[arg-type]  # a Unit
    return [flat[limits[i] : limits[i + 1]].tolist() for i in range(len(limits) - 1)]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("ngram", [1, 2, 5])
def test_shingles_equal_the_reference(unit: str, ngram: int) -> None:
    assert kernel_sets(pa.array(TEXTS), unit, ngram) == reference_sets(TEXTS, unit, ngram)


def layouts() -> dict[str, pa.Array | pa.ChunkedArray]:
    padded = pa.array(["before", *TEXTS, "after"])
    return {
        "string": pa.array(TEXTS, pa.string()),
        "large_string": pa.array(TEXTS, pa.large_string()),
        "string_view": pa.array(TEXTS).cast(pa.string_view()),
        "dictionary": pa.array(TEXTS).dictionary_encode(),
        "sliced": padded.slice(1, len(TEXTS)),
        "sliced twice": pa.concat_arrays([padded, padded]).slice(3).slice(len(TEXTS), len(TEXTS)),
        "chunked": pa.chunked_array([TEXTS[:3], [], TEXTS[3:4], TEXTS[4:]], pa.string()),
    }


@pytest.mark.parametrize("layout", layouts())
def test_every_layout_gives_the_same_sketch(layout: str) -> None:
    settings = SketchSettings()
    plain = sketch_column(layouts()["string"], settings)
    found = sketch_column(layouts()[layout], settings)
    for name in ("keys", "contents", "counts"):
        expected = getattr(plain, name)
        if layout == "sliced twice":
            continue
        assert np.array_equal(getattr(found, name), expected), name
    if layout == "sliced twice":
        texts = layouts()[layout].to_pylist()
        assert kernel_sets(layouts()[layout], "auto", 5) == reference_sets(texts, "auto", 5)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([], pa.string()),
        pa.array([], pa.large_string()),
        pa.chunked_array([], pa.string()),
        pa.array(["a", "b"]).slice(2),
        pa.array([None, None], pa.string()),
        pa.nulls(2),
        pa.array(["", ""]),
    ],
)
def test_nothing_to_sketch(column: pa.Array) -> None:
    sketches = sketch_column(column, SketchSettings(), signatures=True)
    assert len(sketches.counts) == len(sketches.keys) == len(sketches.signatures) == len(column)
    assert (sketches.counts <= 0).all()
    assert kernel_sets(column, "auto", 5) == [[]] * len(column)
    assert blank_mask(column).tolist() == [text == "" for text in column.to_pylist()]


def test_bytes_behind_a_null_are_not_read_as_text() -> None:
    offsets = pa.py_buffer(np.array([0, 5, 10], np.int32).tobytes())
    column = pa.Array.from_buffers(pa.string(), 2, [pa.py_buffer(b"\x02"), offsets, pa.py_buffer(b"helloworld")], 1)
    assert column.to_pylist() == [None, "world"]
    assert sketch_column(column, SketchSettings()).counts.tolist() == [-1, 1]
    assert [len(one) for one in kernel_sets(column, "words", 5)] == [0, 1]
    assert blank_mask(column).tolist() == [False, False]


def test_counts_say_null_blank_and_number_of_shingles() -> None:
    counts = sketch_column(pa.array([None, " ", "a b", "a b c d e f g"]), SketchSettings()).counts
    assert counts.tolist() == [-1, 0, 1, 3]


def test_composed_and_decomposed_texts_are_one() -> None:
    column = pa.array(["Café au lait à Zürich", "Cafe\u0301 au lait a\u0300 Zu\u0308rich", "Cafe au lait a Zurich"])
    sketches = sketch_column(column, SketchSettings(), signatures=True)
    assert sketches.contents[0] == sketches.contents[1] != sketches.contents[2]
    assert np.array_equal(sketches.signatures[0], sketches.signatures[1])
    assert np.array_equal(sketches.keys[0], sketches.keys[1])


def test_marks_in_the_wrong_order_are_reordered() -> None:
    column = pa.array(["q\u0323\u0307 x", "q\u0307\u0323 x"])
    assert len(set(sketch_column(column, SketchSettings()).contents.tolist())) == 1


def test_content_hash_sees_order_and_case_fold_but_not_layout() -> None:
    contents = sketch_column(pa.array(["a b c", "A  B\nC ", "a c b", "ab c"]), SketchSettings()).contents.tolist()
    assert contents[0] == contents[1]
    assert len(set(contents)) == 3


@pytest.mark.parametrize("verify", ["none", "jaccard"])
def test_band_keys_follow_the_signature(verify: str) -> None:
    settings = SketchSettings(verify=verify)  # type: ignore[arg-type]  # a Verify
    sketches = sketch_column(pa.array(["a b c d e f", "a b c d e f", "g h i j k l m"]), settings, signatures=True)
    width = settings.key_rows
    for band in range(settings.bands):
        piece = sketches.signatures[:, band * width : (band + 1) * width]
        same = bool((piece[0] == piece[2]).all())
        assert sketches.keys[0, band] == sketches.keys[1, band]
        assert (sketches.keys[0, band] == sketches.keys[2, band]) == same
    assert len(set(sketches.keys[0].tolist())) == settings.bands


def test_minima_equal_the_definition() -> None:
    text = "the quick brown fox jumps over the lazy dog"
    settings = SketchSettings(bands=4, rows=4, verify="none")
    a, b = settings.permutations()
    values = [reference.shingle_hash(s) >> 32 for s in reference.shingles(text, "words", 5)]
    expected = [min((v * int(x) + int(y)) % (1 << 32) for v in values) for x, y in zip(a, b, strict=True)]
    assert sketch_column(pa.array([text]), settings, signatures=True).signatures[0].tolist() == expected


@pytest.mark.parametrize("length", [2, 20, 200, 2000])
@pytest.mark.parametrize("similarity", [0.3, 0.8])
def test_estimates_follow_theory_at_every_length(length: int, similarity: float) -> None:
    shared = max(1, round(length * 2 * similarity / (1 + similarity)))
    pairs, exact = [], shared / (2 * length - shared)
    for trial in range(40):
        common = [f"c{trial}x{i}" for i in range(shared)]
        own = [[f"{side}{trial}x{i}" for i in range(length - shared)] for side in "ab"]
        pairs += [" ".join(common + own[0]), " ".join(common + own[1])]
    settings = SketchSettings(ngram=1, bands=256, rows=1, verify="none")
    minima = sketch_column(pa.array(pairs), settings, signatures=True).signatures
    mean = float((minima[0::2] == minima[1::2]).mean())
    deviation = (exact * (1 - exact) / (40 * 256)) ** 0.5
    assert abs(mean - exact) < 5 * deviation + 1e-9


def test_row_hashes_are_distinct_and_depend_on_bytes_only() -> None:
    names = ["", "a", "b", "ab", "a" * 8, "a" * 9, "a" * 16, *(f"{i:032x}" for i in range(5000))]
    hashes = row_hashes(pa.array(names))
    assert len(set(hashes.tolist())) == len(names)
    assert np.array_equal(row_hashes(pa.chunked_array([names[:9], names[9:]])), hashes)
    assert np.array_equal(row_hashes(pa.array(names, pa.large_string()).slice(5)), hashes[5:])


def test_blank_means_separators_only() -> None:
    column = pa.array(["", " \t\n", "\u3000\u2003\ufeff", "x", None, "\u00a0.", "是"])
    assert blank_mask(column).tolist() == [True, True, True, False, False, False, False]


GUARDED = """
import ctypes, mmap, sys
import numpy as np, pyarrow as pa
from datamill.services.minhash.settings import SketchSettings
from datamill.services.minhash.sketch import blank_mask, row_hashes, shingle_set_arrays, sketch_column

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
page = mmap.PAGESIZE
block = libc.mmap(None, 3 * page, 3, 0x22, -1, 0)
assert libc.mprotect(ctypes.c_void_p(block), page, 0) == 0
assert libc.mprotect(ctypes.c_void_p(block + 2 * page), page, 0) == 0

def guarded(texts, at_end):
    data = "".join(texts).encode("utf-8", "surrogatepass")
    start = block + 2 * page - len(data) if at_end else block + page
    ctypes.memmove(start, data, len(data))
    sizes = [len(text.encode("utf-8", "surrogatepass")) for text in texts]
    offsets = pa.py_buffer(np.cumsum([0, *sizes]).astype(np.int32).tobytes())
    return pa.Array.from_buffers(pa.string(), len(texts), [None, offsets, pa.foreign_buffer(start, len(data))])

if sys.argv[1] == "overrun":
    ctypes.string_at(block + 2 * page, 1)
words = ["a", "ab c", "abcdefg", "abcdefgh", "abcdefghi jk", "é", "是", "x是", "\U0001f600", "12345678é", "e\\u0301", ""]
for at_end in (True, False):
    for text in words:
        for texts in ([text], ["first one", text], [text, text]):
            column = guarded(texts, at_end)
            for unit in ("words", "chars", "auto"):
                sketch_column(column, SketchSettings(unit=unit))
                shingle_set_arrays(column, unit, 5)
            row_hashes(column)
            blank_mask(column)
broken = guarded(["ok", "z"], True)
data = ctypes.cast(block + 2 * page - 1, ctypes.POINTER(ctypes.c_ubyte))
for lead in (0xC3, 0xE2, 0xF0, 0xFF, 0x80):  # a character cut off by the end of the buffer
    data[0] = lead
    for unit in ("words", "chars", "auto"):
        assert sketch_column(broken, SketchSettings(unit=unit)).counts.tolist() == [1, 1]
print("within bounds")
"""


@pytest.mark.parametrize(("mode", "survives"), [("stay", True), ("overrun", False)])
def test_no_byte_outside_the_buffer_is_read(mode: str, survives: bool) -> None:
    """Texts stand against unreadable pages on either side; the control shows that touching one is fatal."""
    command = [sys.executable, "-c", GUARDED, mode]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode == 0) == survives, done.stderr
    assert ("within bounds" in done.stdout) == survives
