"""Declared dependencies against what the source imports, and pins against what is declared."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("src/datamill", "agents", "operators", "services", "training", "workflows")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DISTRIBUTIONS = {
    "ruamel": "ruamel-yaml",
    "latex2sympy2_extended": "latex2sympy2-extended",
    "math_verify": "math-verify",
    "yaml": "pyyaml",
}
MODEL_SIDE = {
    "accelerate", "datasets", "deepspeed", "gguf", "llamafactory", "peft", "safetensors", "torch", "torchaudio",
    "transformers", "trl", "omegaconf",
}  # fmt: skip
"""Imported by training and services.models only; the extra `train` brings them, some through LLaMA-Factory."""

ENGINES = {
    "ray": ("services/engines/ray.py", "services/engines/ray_session.py"),
    "pyspark": ("services/engines/spark.py", "services/engines/spark_session.py"),
    "py4j": ("services/engines/spark.py",),
}
"""Imported by the engine of that extra and nowhere else; py4j comes with PySpark."""


def imported() -> dict[str, set[str]]:
    """Top-level packages imported anywhere in the source, with the files that do."""
    found: dict[str, set[str]] = {}
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                    names = [node.module]
                for name in names:
                    found.setdefault(name.split(".")[0], set()).add(path.relative_to(ROOT).as_posix())
    return {k: v for k, v in found.items() if k not in sys.stdlib_module_names and k not in {"datamill", "__future__"}}


def distribution(requirement: str) -> str:
    name = re.match(r"[A-Za-z0-9._\-]+", requirement)
    assert name is not None
    return re.sub(r"[._]+", "-", name.group()).lower()


CORE = {distribution(line) for line in PROJECT["dependencies"]}
EXTRAS = {extra: {distribution(line) for line in lines} for extra, lines in PROJECT["optional-dependencies"].items()}


def test_everything_imported_is_declared() -> None:
    names = {DISTRIBUTIONS.get(name, name.replace("_", "-")): files for name, files in imported().items()}
    missing = {name: sorted(files)[:3] for name, files in names.items() if name not in CORE | MODEL_SIDE | set(ENGINES)}
    assert missing == {}


def test_an_engine_is_imported_where_it_is_an_engine_only() -> None:
    names = imported()
    assert {name: tuple(sorted(names[name])) for name in ENGINES} == ENGINES


def test_the_training_stack_is_imported_on_its_own_side_only() -> None:
    for name, files in imported().items():
        if name in MODEL_SIDE:
            outside = [file for file in files if not file.startswith(("training/", "services/models/"))]
            assert outside == [], name


def test_every_core_dependency_is_used_and_bounded() -> None:
    names = {DISTRIBUTIONS.get(name, name.replace("_", "-")) for name in imported()}
    indirect = {
        "rich",  # typer draws with it
        "langgraph-checkpoint-sqlite",  # the package behind langgraph.checkpoint.sqlite
        "latex2sympy2-extended",  # math-verify's parser: its version decides verdicts
    }
    assert CORE - names - indirect == set()
    assert all(re.search(r"[<>=]", line) for line in PROJECT["dependencies"])
    assert "py3langid>=0.4,<1" in PROJECT["dependencies"]


def test_extras_are_those_promised() -> None:
    assert set(EXTRAS) == {"train", "ray", "spark", "web", "all"}
    assert {"torch", "transformers", "peft", "llamafactory"} <= EXTRAS["train"]
    assert not CORE & {"torch", "transformers", "ray", "pyspark", "pandas", "llamafactory"}


def pins(name: str) -> dict[str, str]:
    lines = [line.split("#")[0].strip() for line in (ROOT / "requirements" / name).read_text().splitlines()]
    return {distribution(line): line.split("==")[1] for line in lines if "==" in line}


def test_the_light_set_pins_every_declared_package_once() -> None:
    light = pins("light.txt")
    assert CORE - set(light) == set()
    assert EXTRAS["train"] - {"llamafactory"} - set(light) == set()
    assert not set(light) & set(pins("dev.txt"))
    assert all("+" not in version for version in light.values()), "a local version cannot be had from the index"


@pytest.mark.parametrize("name", ["light.txt", "dev.txt"])
def test_pins_are_what_runs_here(name: str) -> None:
    from importlib.metadata import PackageNotFoundError, version

    different = {}
    for package, pin in pins(name).items():
        try:
            here = version(package).split("+")[0]
        except PackageNotFoundError:
            here = "absent"
        if here != pin.split("+")[0]:
            different[package] = (pin, here)
    assert different == {}


def test_no_registry_address_or_machine_path_is_committed() -> None:
    for path in [
        *(ROOT / "requirements").glob("*"),
        ROOT / "pyproject.toml",
        ROOT / "Makefile",
        *(ROOT / "scripts").glob("*"),
    ]:
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"https?://|--index-url|--extra-index-url|/home/|/opt/wheels", text), path.name
