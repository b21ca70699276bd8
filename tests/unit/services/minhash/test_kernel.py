"""Building blocks of the kernel against Python, byte by byte and code point by code point."""

import ctypes

import numpy as np
import pytest

from datamill.services.minhash import kernel, reference
from datamill.services.minhash.characters import character_table


def held(data: bytes) -> tuple[ctypes.Array[ctypes.c_char], int, int]:
    """A buffer that keeps `data`, its first address and the one past the last."""
    buffer = ctypes.create_string_buffer(data, len(data) + 1)
    return buffer, ctypes.addressof(buffer), ctypes.addressof(buffer) + len(data)


@pytest.mark.parametrize("length", range(1, 20))
def test_chunks_are_the_bytes_zero_padded(length: int) -> None:
    data = bytes(range(1, length + 1))
    buffer, start, end = held(data)
    for offset in range(length):
        expected = int.from_bytes(data[offset : offset + 8], "little")
        assert kernel._chunk(start + offset, start, end) == expected
    assert buffer.raw[:length] == data


def test_lower_casing_of_eight_bytes_leaves_all_else_alone() -> None:
    for byte in range(128):
        for place in range(8):
            chunk = np.uint64(byte << (8 * place)) | np.uint64(0x7F00000000000000 if place < 7 else 0)
            expected = bytes(int(chunk).to_bytes(8, "little")).lower()
            assert int(kernel._lower_ascii(chunk)).to_bytes(8, "little") == expected


def test_code_points_survive_encode_and_decode() -> None:
    for code in [*range(0x1, 0x900), 0xFFF, 0x1000, 0xD7FF, 0xE000, 0xFFFD, 0xFFFF, 0x10000, 0x1F600, 0x10FFFF]:
        data = chr(code).encode()
        value, width = kernel._encode(code)
        assert (int(value).to_bytes(8, "little")[:width], width) == (data, len(data))
        buffer, start, end = held(data)
        assert kernel._decode(start, end) == (code, len(data)), buffer


@pytest.mark.parametrize(
    "data", [b"\x80", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xff", b"\xc0\x80", b"\xe2A\x80", b"\xf5\x80\x80\x80"]
)
def test_malformed_bytes_count_one_replacement_each(data: bytes) -> None:
    buffer, start, end = held(data)
    assert kernel._decode(start, end) == (0xFFFD, 1), buffer


def test_beyond_unicode_is_malformed() -> None:
    buffer, start, end = held(b"\xf4\x90\x80\x80")
    assert kernel._decode(start, end) == (0xFFFD, 1), buffer


@pytest.mark.parametrize(
    "text",
    [
        "one", "eight888", "nine99999", "sixteen_sixteen_", "a b", "  a  ", "abcdefgh ijk", "ABC", "é", "abcdefgé",
        "abcdefghé x", "éabcdefgh", "x是y", "是", "12345678是", "a\u3000b", "aé\u00a0bé", "ÀÉÎ õü", "\U0001f600a",
    ],
)  # fmt: skip
def test_word_hashes_equal_the_reference(text: str) -> None:
    buffer, start, end = held(text.encode())
    out = np.zeros(64, np.uint64)
    count, num_unspaced, flag = kernel.word_tokens(start, end, *character_table(), out)
    words = reference.word_tokens(text)
    assert out[:count].tolist() == [reference.token_hash(word) for word in words], buffer
    assert num_unspaced == text.count("是")
    assert flag == 0


@pytest.mark.parametrize(
    ("text", "expected"), [("abc", 0), ("e\u0301", 1), ("é", 0), ("ก\u0e38\u0e48", 0), ("ก\u0e48\u0e38", 1)]
)
def test_quick_check_for_composition(text: str, expected: int) -> None:
    buffer, start, end = held(text.encode())
    out = np.zeros(16, np.uint64)
    assert kernel.word_tokens(start, end, *character_table(), out)[2] == expected, buffer
    assert kernel.char_tokens(start, end, *character_table(), out)[1] == expected


@pytest.mark.parametrize("count", [0, 1, 4, 5, 6, 40])
@pytest.mark.parametrize("ngram", [1, 2, 5])
def test_rolling_windows_equal_the_polynomial(count: int, ngram: int) -> None:
    tokens = [f"t{i * 7 % 11}" for i in range(count)]
    hashes = np.array([reference.token_hash(token) for token in tokens] + [0], np.uint64)
    found = kernel.shingle_hashes(hashes, count, ngram, hashes)  # in place, as the sketch does it
    size = min(ngram, count)
    expected = [reference.shingle_hash(tokens[i : i + size]) for i in range(count - size + 1)] if count else []
    assert hashes[:found].tolist() == expected


def test_equal_bands_at_other_places_have_other_keys() -> None:
    signature = np.array([5, 6, 5, 6], np.uint32)
    assert kernel.band_key(0, signature, 0, 2) != kernel.band_key(1, signature, 2, 2)
    assert kernel.band_key(0, signature, 0, 2) == kernel.band_key(0, signature, 2, 2)


def test_mixing_is_a_bijection_that_spreads_single_bits() -> None:
    values = [int(kernel.mix(np.uint64(1 << bit))) for bit in range(64)]
    assert values == [reference.mix(1 << bit) for bit in range(64)]
    assert len(set(values)) == 64
    assert np.mean([value.bit_count() for value in values]) > 20
