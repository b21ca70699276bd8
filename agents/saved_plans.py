"""Where the workflow of a thread is written, so that it runs again tomorrow, without replacing anybody's file.

A plan file that datamill wrote and nobody changed may be replaced by the thread's newer version; a file of the same
name that a person wrote or edited stays, and the plan gets the next free name beside it.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from datamill.errors import DatamillError, ExitCode
from datamill.services.storage.atomic import write_bytes
from datamill.workflows.paths import STATE_FOLDER, PathPolicy

NAME = "plan"
WRITTEN = "plans"


def save_plan_text(text: str, project: Path, out: str) -> Path:
    """Write a workflow to `<out>/plan.yaml`, or to the next free name; returns the file.

    Raises:
        DatamillError: `DM-PATH-002` (exit 4) when `out` leaves the project.
    """
    content = text.encode("utf-8", "replace")
    path = next(p for p in _names(project / out) if _replaceable(p, content, project))
    issue = PathPolicy.of(project).check_write(str(path), "plan", ())
    if issue is not None:
        raise DatamillError(issue.code, issue.message, exit_code=ExitCode.NEEDS_APPROVAL, fix="-o a folder inside")
    if not path.is_file() or path.read_bytes() != content:
        write_bytes(_mark(content, project), b"", "plan.mark")
        write_bytes(path, content, "plan.file")
    return path


def _names(folder: Path) -> Iterator[Path]:
    yield folder / f"{NAME}.yaml"
    number = 2
    while True:
        yield folder / f"{NAME}-{number}.yaml"
        number += 1


def _replaceable(path: Path, content: bytes, project: Path) -> bool:
    if not path.exists():
        return True
    if not path.is_file():
        return False
    found = path.read_bytes()
    return found == content or _mark(found, project).is_file()


def _mark(content: bytes, project: Path) -> Path:
    """Exists for every content datamill wrote."""
    return project / STATE_FOLDER / WRITTEN / hashlib.sha256(content).hexdigest()
