"""The wheel that workers get: all of the installed package, nothing else, the same bytes for the same content."""

import base64
import csv
import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import datamill
from datamill.services.engines.wheel import build_wheel, unpack

ROOT = Path(datamill.__file__).parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


def test_it_is_the_same_bytes_for_the_same_package(wheel: Path, tmp_path: Path) -> None:
    assert build_wheel(tmp_path).read_bytes() == wheel.read_bytes()
    assert wheel.name == f"datamill-{datamill.__version__}-py3-none-any.whl"


def test_it_holds_the_package_and_no_more(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    modules = {f"datamill/{path.relative_to(ROOT).as_posix()}" for path in ROOT.rglob("*.py")}
    assert modules <= names
    assert not any("__pycache__" in name or "tests/" in name for name in names)
    assert {name.split("/")[0] for name in names} == {"datamill", f"datamill-{datamill.__version__}.dist-info"}
    for data in ("workflows/recipes/", "operators/decon/"):
        assert any(name.startswith(f"datamill/{data}") for name in names)
    assert any(name.endswith(".npz") for name in names)
    assert any(name.endswith(".j2") for name in names)


def test_its_record_tells_the_hash_and_size_of_every_file(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        info = f"datamill-{datamill.__version__}.dist-info"
        rows = list(csv.reader(archive.read(f"{info}/RECORD").decode().splitlines()))
        assert {row[0] for row in rows} == set(archive.namelist())
        for name, told, size in rows:
            if name.endswith("/RECORD"):
                assert (told, size) == ("", "")
                continue
            data = archive.read(name)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            assert (told, int(size)) == (f"sha256={digest}", len(data)), name


def test_what_is_unpacked_runs_by_itself(wheel: Path, tmp_path: Path) -> None:
    folder = unpack(wheel, tmp_path / "there")
    script = (
        "import datamill, numpy; from pathlib import Path; from datamill.operators.registry import catalogue; "
        "root = Path(datamill.__file__).parent; found = sorted(root.rglob('*.npz')); "
        "print(root, len(catalogue()), sum(len(numpy.load(f).files) for f in found))"
    )
    command = [sys.executable, "-P", "-c", f"import sys; sys.path.insert(0, {str(folder)!r}); {script}"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120)
    place, operators, entries = ran.stdout.split()
    assert Path(place) == folder / "datamill"
    assert int(operators) > 30
    assert int(entries) > 0


def test_the_entry_points_of_the_package_travel_with_it(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        points = [name for name in archive.namelist() if name.endswith("entry_points.txt")]
        assert points
        assert b"datamill" in archive.read(points[0])


def test_a_package_without_metadata_has_no_entry_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import PackageNotFoundError

    from datamill.services.engines import wheel as module

    def absent(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(module, "distribution", absent)
    assert not any(name.endswith("entry_points.txt") for name in zipfile.ZipFile(build_wheel(tmp_path)).namelist())
