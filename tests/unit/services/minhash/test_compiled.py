"""Where machine code is kept."""

from pathlib import Path

import numpy as np
import pytest

from datamill.services.minhash import compiled as module
from datamill.services.minhash.compiled import choose_cache, compiled


def test_code_lives_beside_a_writable_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    assert choose_cache(tmp_path, tmp_path / "other") is None


def test_a_chosen_folder_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert choose_cache(Path("/proc/nowhere"), tmp_path / "other") is None


def test_an_unwritable_source_falls_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    fallback = tmp_path / "user"
    assert choose_cache(Path("/proc/nowhere"), fallback) == fallback
    temporary = choose_cache(Path("/proc/nowhere"), Path("/proc/nothing"))
    assert temporary is not None
    assert temporary.is_dir()


def test_a_folder_that_cannot_be_written_counts_as_unwritable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.os, "access", lambda _path, _mode: False)
    assert not module._writable(tmp_path)


def test_compiled_function_divides_like_numpy() -> None:
    @compiled
    def ratio(a: float, b: float) -> float:
        return a / b

    assert np.isinf(ratio(1.0, 0.0))
