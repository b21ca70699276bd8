"""Before Ray is joined: what is missing, what does not answer, which address is tried."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from datamill.errors import DatamillError, ExitCode
from datamill.services.engines import ray_session
from datamill.services.engines.ray import chunks_of, original, table_of
from datamill.services.engines.ray_session import RaySession

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture
def listening() -> Iterator[int]:
    """A port of this machine that takes connections and says nothing."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


def unreachable(address: str | None, scratch: Path) -> DatamillError:
    with pytest.raises(DatamillError) as caught:
        RaySession.open(address, None, scratch)
    assert (caught.value.code, caught.value.exit_code) == ("DM-ENGINE-011", ExitCode.MISSING_DEPENDENCY)
    return caught.value


def test_the_address_of_the_environment_is_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    assert "127.0.0.1:1" in str(unreachable(None, tmp_path))
    assert "no Ray cluster answers at 127.0.0.1:2" in str(unreachable("127.0.0.1:2", tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("address", ["no-such-host.invalid:6379", "ray://127.0.0.1:3"])
def test_a_host_that_is_none(tmp_path: Path, address: str) -> None:
    assert address in str(unreachable(address, tmp_path))


def test_a_name_of_this_machine_is_tried_as_ray_will_use_it(listening: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray replaces `127.0.0.1` by the address other nodes know; a cluster that listens on loopback alone is not there."""
    import ray.util

    monkeypatch.setattr(ray.util, "get_node_ip_address", lambda: "127.0.0.9")
    tried: list[tuple[str, int]] = []

    def connect(address: tuple[str, int], _timeout: float) -> Any:
        tried.append(address)
        raise ConnectionRefusedError("refused")

    monkeypatch.setattr(socket, "create_connection", connect)
    for given in (f"localhost:{listening}", f"127.0.0.1:{listening}", f"ray://localhost:{listening}", "10.0.0.7:6379"):
        with pytest.raises(DatamillError, match="refused"):
            ray_session._probe(given)
    assert tried == [("127.0.0.9", listening)] * 2 + [("localhost", listening), ("10.0.0.7", 6379)]


@pytest.mark.parametrize("address", ["auto", "local", "anything"])
def test_an_address_without_a_port_is_left_to_ray(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "create_connection", lambda *_: pytest.fail("it was tried"))
    ray_session._probe(address)


def test_a_port_that_answers_is_fine(listening: int, monkeypatch: pytest.MonkeyPatch) -> None:
    import ray.util

    monkeypatch.setattr(ray.util, "get_node_ip_address", lambda: "127.0.0.1")
    ray_session._probe(f"127.0.0.1:{listening}")


def test_what_ray_says_of_itself_is_one_line() -> None:
    error = original(RuntimeError("trace\n  of many\n  lines\nThe node died"))
    assert isinstance(error, DatamillError)
    assert (error.code, error.issues[0].message) == ("DM-ENGINE-012", "Ray gave up: The node died")
    assert "RuntimeError" in str(original(RuntimeError("")))


def test_chunks_pass_through_blocks_unchanged() -> None:
    chunks = [(3, b"abc"), (0, b""), (3, bytes(300))]
    assert [(part, data.to_pybytes()) for part, data in chunks_of(table_of(chunks))] == chunks  # type: ignore[attr-defined]
    assert list(chunks_of(table_of([]).select([]))) == []
