"""`datamill doctor`: is everything here that a run or a training needs?"""

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

import typer

from datamill.cli.session import Session
from datamill.errors import ExitCode

LOW_DISK_GB = 5


@dataclass(frozen=True)
class Finding:
    """One line of the report."""

    what: str
    state: Literal["ok", "warn", "fail"]
    detail: str
    fix: str = ""


def register(app: typer.Typer) -> None:
    """Add the command to the tree."""
    app.command("doctor")(doctor)


def doctor(context: typer.Context) -> int:
    """Check the environment: Python, packages, Java, GPU, LLM endpoint, disk; each line with its fix."""
    session: Session = context.obj
    findings = list(_findings(session.project))
    lines = [f"{f.state:<5} {f.what:<16} {f.detail}{'   fix: ' + f.fix if f.fix else ''}" for f in findings]
    session.result([asdict(finding) for finding in findings], "\n".join(lines))
    return ExitCode.MISSING_DEPENDENCY if any(f.state == "fail" for f in findings) else ExitCode.OK


def _findings(project: Path) -> Iterator[Finding]:
    good = sys.version_info >= (3, 11)
    yield Finding("python", "ok" if good else "fail", platform.python_version(), "" if good else "install Python 3.11")
    for package in ("pyarrow", "polars", "numba", "langgraph", "openai", "datasketch"):
        yield _package(package, "fail", "pip install datamill")
    for package, extra in (
        ("torch", "train"),
        ("llamafactory", "train"),
        ("deepspeed", "train"),
        ("ray", "ray"),
        ("pyspark", "spark"),
    ):
        yield _package(package, "warn", f"pip install 'datamill[{extra}]'")
    yield _training_stack()
    yield _java()
    yield _gpu()
    yield _endpoint()
    yield _disk(project)
    yield _writable(project)


def _package(name: str, missing: Literal["warn", "fail"], fix: str) -> Finding:
    try:
        return Finding(name, "ok", version(name))
    except PackageNotFoundError:
        return Finding(name, missing, "not installed", fix)


def _training_stack() -> Finding:
    if importlib.util.find_spec("torch") is None:
        return Finding("training", "warn", "needs the extra `train`", "pip install 'datamill[train]'")
    from datamill.errors import DatamillError
    from datamill.training.llamafactory.versions import check_versions

    try:
        check_versions()
    except DatamillError as error:
        return Finding("training", "warn", error.issues[0].message, error.issues[0].fix or "")
    return Finding("training", "ok", "supported versions")


def _java() -> Finding:
    java = shutil.which("java")
    if java is None:
        return Finding("java", "warn", "not found (only Spark needs it)", "install Java 17 or newer")
    text = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr  # noqa: S603  found on PATH
    return Finding("java", "ok", text.split("\n", 1)[0].strip() or "present")


def _gpu() -> Finding:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return Finding("gpu", "ok", "none: training runs on the CPU")
    query = [tool, "--query-gpu=name", "--format=csv,noheader"]
    found = subprocess.run(query, capture_output=True, text=True, check=False)  # noqa: S603  found on PATH
    return Finding("gpu", "ok" if found.returncode == 0 else "warn", found.stdout.strip() or "nvidia-smi fails")


def _endpoint() -> Finding:
    if os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"):
        where = os.environ.get("OPENAI_BASE_URL", "the provider's default address").split("@")[-1]
        return Finding("llm endpoint", "ok", f"configured ({where}); the key is set and not shown")
    detail = "none: the offline planner `rules` is used, LLM operators are left out"
    return Finding("llm endpoint", "warn", detail, "export OPENAI_API_KEY=... (and OPENAI_BASE_URL)")


def _disk(project: Path) -> Finding:
    free = shutil.disk_usage(project).free / 1e9
    state: Literal["ok", "warn"] = "ok" if free > LOW_DISK_GB else "warn"
    return Finding("disk", state, f"{free:.0f} GB free", "" if state == "ok" else "free some space")


def _writable(project: Path) -> Finding:
    good = os.access(project, os.W_OK)
    return Finding("project", "ok" if good else "fail", str(project), "" if good else "choose a writable --project")
