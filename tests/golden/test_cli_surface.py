"""The frozen surface: `--help` of every command and the set of commands and flags, as files.

To change it on purpose: `python scripts/cli_surface.py`, look at the diff, commit it.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "cli"


@pytest.fixture(scope="module")
def surface() -> dict[str, str]:
    """What the surface is now, from a process with a fixed width and no colour."""
    code = "import json, cli_surface; print(json.dumps(cli_surface.surface()))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "scripts"), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


def test_the_set_of_commands_and_flags_is_the_committed_one(surface: dict[str, str]) -> None:
    assert surface["surface.txt"] == (GOLDEN / "surface.txt").read_text(encoding="utf-8"), __doc__
    assert set(surface) == {path.name for path in GOLDEN.glob("*.txt")}


def test_every_help_text_is_the_committed_one(surface: dict[str, str]) -> None:
    changed = [name for name, text in surface.items() if text != (GOLDEN / name).read_text(encoding="utf-8")]
    assert changed == [], __doc__


def test_commands_of_the_interface_are_there(surface: dict[str, str]) -> None:
    groups = {line.split(":")[0] for line in surface["surface.txt"].splitlines()}
    for name in (
        "ask",
        "chat",
        "plan check",
        "run",
        "runs show",
        "data drops",
        "train",
        "models pull",
        "report",
        "ops list",
        "doctor",
        "config show",
    ):
        assert f"datamill {name}" in groups
    flags = surface["surface.txt"]
    for flag in ("--json", "--no-color", "--no-input", "--project", "--version", "--quiet", "--verbose"):
        assert flag in flags.splitlines()[0]


def test_help_fits_the_terminal_and_says_what_each_option_is_for(surface: dict[str, str]) -> None:
    texts = {name: text for name, text in surface.items() if name != "surface.txt"}
    assert max(len(line) for text in texts.values() for line in text.splitlines()) <= 100
    bare = [f"{name}: {line}" for name, text in texts.items() for line in text.splitlines() if _is_bare(line)]
    assert bare == []


def _is_bare(line: str) -> bool:
    return line.startswith("  -") and "  " not in line.strip() and len(line) < 30
