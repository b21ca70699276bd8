"""Shared state: no write is lost between threads or processes, and a failed change changes nothing."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from datamill.services.llm.store import FileStore, MemoryStore, Store, open_store, read_json, write_atomic


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return open_store(None if request.param == "memory" else tmp_path / "state", "counts")


def value(store: Store, name: str) -> int:
    with store.update() as data:
        return int(data.get(name, 0))


def test_kind_follows_the_folder(tmp_path: Path) -> None:
    assert isinstance(open_store(None, "x"), MemoryStore)
    file_store = open_store(tmp_path / "deep" / "down", "x")
    assert isinstance(file_store, FileStore)
    assert file_store.path == tmp_path / "deep" / "down" / "x.json"


def test_changes_are_kept(store: Store) -> None:
    with store.update() as data:
        data["n"] = 4
        data["nested"] = {"a": [1]}
    with store.update() as data:
        assert data == {"n": 4, "nested": {"a": [1]}}


def test_a_block_that_raises_changes_nothing(store: Store) -> None:
    with store.update() as data:
        data["inner"] = {"n": 1}

    def fail() -> None:
        with store.update() as data:
            data["inner"]["n"] = 2
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    with store.update() as data:
        assert data == {"inner": {"n": 1}}


def test_threads_lose_nothing(store: Store) -> None:
    def count() -> None:
        for _ in range(50):
            with store.update() as data:
                data["n"] = data.get("n", 0) + 1

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert value(store, "n") == 200


COUNTER = """
import sys
from pathlib import Path
from datamill.services.llm.store import open_store
store = open_store(Path(sys.argv[1]), "counts")
for _ in range(200):
    with store.update() as data:
        data["n"] = data.get("n", 0) + 1
"""


def test_processes_lose_nothing(tmp_path: Path) -> None:
    counters = [subprocess.Popen([sys.executable, "-c", COUNTER, str(tmp_path)]) for _ in range(2)]
    assert [counter.wait(60) for counter in counters] == [0, 0]
    assert value(open_store(tmp_path, "counts"), "n") == 400


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff"])
def test_damaged_files_start_empty(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "counts.json").write_bytes(content)
    assert value(open_store(tmp_path, "counts"), "n") == 0


def test_write_atomic_replaces_and_leaves_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for durable in (False, True):
        write_atomic(path, '{"a": 1}', durable=durable)
        assert read_json(path) == {"a": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]
    assert read_json(tmp_path / "absent.json") == {}
