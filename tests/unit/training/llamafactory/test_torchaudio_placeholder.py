import importlib.machinery
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from datamill.training.llamafactory import torchaudio_placeholder


@pytest.fixture
def clean(monkeypatch: Any) -> Any:
    monkeypatch.delitem(sys.modules, "torchaudio", raising=False)
    yield
    sys.modules.pop("torchaudio", None)


def test_absent_every_use_says_why(clean: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(torchaudio_placeholder.importlib.util, "find_spec", lambda _name: None)
    assert torchaudio_placeholder.install()
    import torchaudio

    with pytest.raises(ImportError, match="torchaudio is not installed: audio samples need it"):
        _ = torchaudio.load
    with pytest.raises(ImportError, match="audio samples need it"):
        _ = torchaudio.functional
    assert torchaudio.__spec__ is not None
    assert torchaudio_placeholder.install()  # a second time changes nothing


def test_installed_nothing_is_done(clean: Any, monkeypatch: Any) -> None:
    spec = importlib.machinery.ModuleSpec("torchaudio", None)
    monkeypatch.setattr(torchaudio_placeholder.importlib.util, "find_spec", lambda _name: spec)
    assert not torchaudio_placeholder.install()
    assert "torchaudio" not in sys.modules


def test_imported_nothing_is_done(clean: Any, monkeypatch: Any) -> None:
    real = ModuleType("torchaudio")
    monkeypatch.setitem(sys.modules, "torchaudio", real)
    assert not torchaudio_placeholder.install()
    assert sys.modules["torchaudio"] is real


@pytest.mark.train
@pytest.mark.slow
def test_in_torchrun_workers(tmp_path: Any) -> None:
    """Also inside workers LLaMA-Factory is imported and an audio sample is told what it lacks."""
    script = tmp_path / "worker.py"
    script.write_text(
        "from datamill.training.llamafactory.torchaudio_placeholder import install\n"
        "placed = install()\n"
        "from llamafactory.data import mm_plugin\n"
        "import torchaudio\n"
        "try:\n    torchaudio.load\n    print('REAL', not placed)\n"
        "except ImportError as error:\n    print('PLACED', placed, error)\n"
    )
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port", "29411"]
    done = subprocess.run(
        [*command, str(script)], capture_output=True, text=True, timeout=240, check=False, cwd=Path.cwd()
    )
    assert done.returncode == 0, done.stderr[-2000:]
    lines = [line for line in done.stdout.splitlines() if line.startswith(("REAL", "PLACED"))]
    assert len(lines) == 2
    assert set(lines) <= {"REAL True", "PLACED True torchaudio is not installed: audio samples need it"}
