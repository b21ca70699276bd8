"""A word in a file that every worker must find, before any work is given to it."""

import pickle
import socket
from pathlib import Path

import pytest

from datamill.errors import DatamillError, ExitCode
from datamill.services.engines.visibility import Nonce, require_seen


def test_a_worker_that_sees_the_word_has_nothing_to_say(tmp_path: Path) -> None:
    nonce = Nonce.write(tmp_path)
    assert pickle.loads(pickle.dumps(nonce)).blind_worker() is None
    assert Nonce.write(tmp_path).word != nonce.word


def test_a_worker_without_the_file_or_with_another_names_itself(tmp_path: Path) -> None:
    nonce = Nonce.write(tmp_path)
    nonce.path.write_text("of another machine", encoding="ascii")
    assert nonce.blind_worker() == socket.gethostname()
    nonce.path.unlink()
    assert nonce.blind_worker() == socket.gethostname()
    nonce.path.mkdir()
    assert nonce.blind_worker() == socket.gethostname()


def test_all_seeing_is_silence(tmp_path: Path) -> None:
    require_seen("DM-ENGINE-013", Nonce.write(tmp_path), [None, None])
    require_seen("DM-ENGINE-013", Nonce.write(tmp_path), [])


def test_the_error_names_the_folder_and_each_worker_once(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    answers = ["n2", None, "n1", "n2", "n5", "n4", "n3"]
    with pytest.raises(DatamillError) as caught:
        require_seen("DM-ENGINE-024", Nonce.write(scratch), answers)
    error = caught.value
    assert (error.code, error.exit_code) == ("DM-ENGINE-024", ExitCode.INVALID)
    assert f"workers on n1, n2, n3 and 2 more do not see the folder {tmp_path}" in str(error)
    with pytest.raises(DatamillError, match="workers on n1 do not see"):
        require_seen("DM-ENGINE-024", Nonce.write(scratch), ["n1", "n1"])
