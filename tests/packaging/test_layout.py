"""The house: links, layers, sizes, and what importing costs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import datamill
import datamill.operators
import datamill.workflows

ROOT = Path(__file__).parents[2]
FOLDERS = ("agents", "operators", "services", "training", "workflows")
HEAVY = (
    "torch",
    "ray",
    "pyspark",
    "langgraph",
    "pandas",
    "polars",
    "numba",
    "transformers",
    "openai",
    "pyarrow",
    "datasketch",
)


@pytest.mark.parametrize("name", FOLDERS)
def test_links_are_relative_and_committed(name: str) -> None:
    link = ROOT / "src" / "datamill" / name
    assert link.is_symlink()
    assert link.readlink() == Path("..") / ".." / name
    listed = subprocess.run(
        ["git", "ls-files", "-s", f"src/datamill/{name}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode == 0 and listed.stdout:
        assert listed.stdout.startswith("120000 "), "committed as a link"


def test_the_package_comes_from_the_checkout() -> None:
    assert ROOT in Path(str(datamill.operators.__file__)).resolve().parents
    assert Path(str(datamill.workflows.__file__)).resolve() == ROOT / "workflows" / "__init__.py"


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    tool = Path(sys.executable).parent / "lint-imports"
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    return subprocess.run(
        [str(tool), "--no-cache"], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copy")
    shutil.copy(ROOT / "pyproject.toml", folder)
    for name in ("src", *FOLDERS):
        shutil.copytree(
            ROOT / name, folder / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
        )
    return folder


def test_layers_hold(copy: Path) -> None:
    done = lint_imports(copy)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "0 broken" in done.stdout


@pytest.mark.parametrize(
    ("where", "line"),
    [
        ("services/records.py", "import datamill.workflows.plan"),
        ("operators/registry.py", "from datamill.workflows import spec"),
        ("services/records.py", "import datamill.operators.registry"),
        ("workflows/plan.py", "import datamill.agents.state"),
        ("operators/parameters.py", "import torch"),
        ("workflows/plan.py", "import rich"),
    ],
)
def test_a_planted_import_breaks_the_build(copy: Path, where: str, line: str) -> None:
    path = copy / where
    text = path.read_text()
    path.write_text(f"{text}\n{line}\n")
    try:
        done = lint_imports(copy)
    finally:
        path.write_text(text)
    assert done.returncode != 0
    assert "BROKEN" in done.stdout


def loaded(code: str) -> set[str]:
    """Heavy packages in `sys.modules` after running `code` in a fresh interpreter."""
    program = f"{code}\nimport sys\nprint(' '.join(sorted(m for m in sys.modules if '.' not in m)))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    return set(done.stdout.splitlines()[-1].split()) & set(HEAVY)


@pytest.mark.parametrize(
    "code",
    [
        "import datamill",
        "import datamill; datamill.DatamillError",
        "from datamill.cli.app import invoke; invoke(['--help'])",
        "from datamill.cli.app import invoke; invoke(['run', '--help'])",
        "from datamill.cli.app import invoke; invoke(['train', '--help'])",
        "from datamill.cli.app import invoke; invoke(['config', 'path'])",
    ],
)
def test_starting_up_loads_nothing_heavy(code: str) -> None:
    assert loaded(code) == set()


def test_reading_the_catalogue_loads_no_model_stack() -> None:
    code = "from datamill.cli.app import invoke; invoke(['ops', 'list'])"
    assert loaded(code) & {"torch", "ray", "pyspark", "langgraph", "transformers", "openai"} == set()


def test_public_names_resolve_and_unknown_ones_do_not() -> None:
    for name in datamill.__all__:
        assert getattr(datamill, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        datamill.nothing  # noqa: B018  the access is the test


def test_files_and_functions_stay_small() -> None:
    import ast
    from statistics import median

    files, functions = [], []
    for path in (p for name in (*FOLDERS, "src/datamill/cli") for p in (ROOT / name).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        files.append((len(text.splitlines()), path.name))
        functions += [
            ((node.end_lineno or 0) - node.lineno + 1, f"{path.name}:{node.name}")
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
    assert max(files)[0] <= 500, max(files)
    assert max(functions)[0] <= 80, max(functions)
    assert median(size for size, _ in files) <= 150
    assert median(size for size, _ in functions) <= 12
