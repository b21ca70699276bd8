"""The installed package as a wheel, for workers that do not share this machine's site-packages.

What travels is exactly what is imported here, whether it was installed from a wheel or for development, and never a
source folder with whatever else lies in it. The wheel names no requirements: the cluster's own environment has them.
It is the same bytes for the same package content (sorted entries, one fixed time).

Source: PyPA binary distribution format 1.0.
"""

import base64
import hashlib
import zipfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import datamill

_TIME = (1980, 1, 1, 0, 0, 0)
_SKIPPED = {"__pycache__"}


def build_wheel(folder: Path) -> Path:
    """Write `datamill-<version>-py3-none-any.whl` into `folder` and return it."""
    version = datamill.__version__
    info = f"datamill-{version}.dist-info"
    files = dict(_package_files())
    files[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: datamill\nVersion: {version}\n".encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: datamill\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    if points := _entry_points():
        files[f"{info}/entry_points.txt"] = points
    record = "".join(f"{name},{_hash(data)},{len(data)}\n" for name, data in sorted(files.items()))
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    target = folder / f"datamill-{version}-py3-none-any.whl"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name, _TIME), data, zipfile.ZIP_DEFLATED)
    return target


def unpack(wheel: Path, folder: Path) -> Path:
    """Unpack a wheel; returns the folder to put on the module path."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def _package_files() -> Iterator[tuple[str, bytes]]:
    root = Path(datamill.__file__).parent
    for path in _files_below(root):
        yield f"datamill/{path.relative_to(root).as_posix()}", path.read_bytes()


def _files_below(folder: Path) -> Iterator[Path]:
    """Files of a package in name order; folders that are links are followed, as an import does."""
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            if path.name not in _SKIPPED:
                yield from _files_below(path)
        else:
            yield path


def _entry_points() -> bytes:
    try:
        return (distribution("datamill").read_text("entry_points.txt") or "").encode()
    except PackageNotFoundError:
        return b""


def _hash(data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"sha256={digest}"
