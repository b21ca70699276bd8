"""The reply cache: round trip, damage, secrets, several processes."""

import subprocess
import sys
from pathlib import Path

import pytest

from datamill.services.llm.cache import Entry, ReplyCache

KEY = "ab" + "0" * 62
ENTRY = Entry('{"text": "ünïcode \\u0000 \U0001f600"}', 12, 3)


def test_round_trip(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path)
    assert cache.get(KEY) is None
    cache.put(KEY, ENTRY)
    assert cache.get(KEY) == ENTRY
    assert cache.path(KEY) == tmp_path / "ab" / f"{KEY}.json"
    assert ReplyCache(tmp_path).get(KEY) == ENTRY, "another process finds it"


def test_lone_surrogates_survive(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path)
    cache.put(KEY, Entry("half \ud83d", 0, 0))
    assert cache.get(KEY) == Entry("half \ud83d", 0, 0)


def test_without_a_folder_nothing_is_kept() -> None:
    cache = ReplyCache(None)
    cache.put(KEY, ENTRY)
    assert cache.get(KEY) is None


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"raw": "x"}', b'{"raw": "x", "tokens_in": 1, "tokens_out": null}'],
)
def test_a_damaged_entry_is_a_miss(tmp_path: Path, damage: bytes) -> None:
    cache = ReplyCache(tmp_path)
    cache.put(KEY, ENTRY)
    cache.path(KEY).write_bytes(damage)
    assert cache.get(KEY) is None
    cache.put(KEY, ENTRY)
    assert cache.get(KEY) == ENTRY, "and is replaced"


def test_every_flipped_byte_is_noticed(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path)
    cache.put(KEY, Entry("short", 1, 2))
    good = cache.path(KEY).read_bytes()
    for position in range(len(good)):
        changed = bytearray(good)
        changed[position] ^= 1
        cache.path(KEY).write_bytes(bytes(changed))
        assert cache.get(KEY) in {None, Entry("short", 1, 2)}, f"byte {position} gave another reply"


def test_an_entry_under_another_key_is_a_miss(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path)
    other = "ab" + "1" * 62
    cache.put(KEY, ENTRY)
    cache.path(KEY).rename(cache.path(other))
    assert cache.get(other) is None


def test_no_drafts_are_left(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path)
    for number in range(5):
        cache.put(f"{number:064x}", ENTRY)
    assert {path.suffix for path in tmp_path.rglob("*") if path.is_file()} == {".json"}


WRITER = """
import sys
from pathlib import Path
from datamill.services.llm.cache import Entry, ReplyCache
cache, bad = ReplyCache(Path(sys.argv[1])), 0
for turn in range(150):
    key = f"{turn % 5:064x}"
    cache.put(key, Entry(f"reply of {turn % 5} " + "x" * 20000, 1, 1))
    entry = cache.get(key)
    bad += entry is None or not entry.raw.startswith(f"reply of {turn % 5} ")
print(bad)
"""


def test_two_processes_write_the_same_entries(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [writer.communicate(timeout=60)[0].strip() for writer in writers] == ["0", "0"]
