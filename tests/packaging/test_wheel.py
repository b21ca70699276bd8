"""The wheel: ordinary files, and the core alone is enough for the catalogue and a first run."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("agents", "operators", "services", "training", "workflows")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, so that no build folder appears in the checkout."""
    folder = tmp_path_factory.mktemp("build")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    for name in ("src", *FOLDERS):
        shutil.copytree(
            ROOT / name, folder / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
        )
    done = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", "dist", "."],
        cwd=folder, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (path,) = (folder / "dist").glob("*.whl")
    return path


@pytest.mark.slow
def test_the_wheel_holds_every_file_as_an_ordinary_file(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        links = [info.filename for info in archive.infolist() if (info.external_attr >> 16) & 0o170000 == 0o120000]
    assert links == []
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"datamill"}
    data = {".py", ".yaml", ".j2", ".npz", ".json", ".txt"}
    for folder in FOLDERS:
        for path in (
            p for p in (ROOT / folder).rglob("*") if p.is_file() and p.suffix in data and "__pycache__" not in p.parts
        ):
            assert f"datamill/{path.relative_to(ROOT).as_posix()}" in names
    assert "datamill/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert any(name.startswith("datamill/workflows/recipes/") for name in names)
    assert any(name.endswith(".j2") for name in names)
    assert any(name.endswith(".npz") for name in names)
    assert not any("tests" in name.split("/") for name in names)


@pytest.mark.slow
def test_the_core_alone_lists_operators_and_runs_a_workflow(wheel: Path, tmp_path: Path) -> None:
    """A clean environment from the package index with nothing but the core dependencies."""
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True, timeout=120)
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    if uv and (links := os.environ.get("PIP_FIND_LINKS")):
        environment["UV_FIND_LINKS"] = links.replace(" ", ",")
    install = [uv, "pip", "install", "-q", "-p", str(python)] if uv else [str(python), "-m", "pip", "install", "-q"]
    done = subprocess.run(
        [*install, str(wheel)], env=environment, capture_output=True, text=True, check=False, timeout=500
    )
    assert done.returncode == 0, done.stderr[-2000:]
    datamill = str(python.with_name("datamill"))

    def run(*words: str, code: int = 0) -> str:
        ran = subprocess.run(
            [datamill, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=120
        )
        assert ran.returncode == code, ran.stderr[-2000:]
        return ran.stdout

    assert "dedup.minhash" in run("ops", "list")
    listed = subprocess.run(
        [
            str(python),
            "-c",
            "import importlib.util as u; print([u.find_spec(n) is None for n in ('torch', 'transformers', 'ray', 'pyspark')])",
        ],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert listed.stdout.strip() == "[True, True, True, True]"
    rows = [{"text": f"row number {i % 5} of a small file", "answer": str(i)} for i in range(10)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run("ask", "remove exact duplicates", "-i", "rows.jsonl", "-m", "rules", "--approve", "--json")
    assert json.loads(run("runs", "show", "@last", "--json"))["status"] == "done"
    run("train", "@last", code=3)
