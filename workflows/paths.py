"""Which paths a workflow may touch: inside the project, or where a person allowed it by name.

Symbolic links are resolved before the check. A person who names an input on the command line grants reading that
path; grants are kept in the project (`.datamill/grants.json`) so that the saved workflow runs again tomorrow.
The check is made when a plan is compiled and once more before a run touches anything.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from datamill.errors import Issue

STATE_FOLDER = ".datamill"
GRANTS = "grants.json"
REMOTE_MARK = "://"


@dataclass(frozen=True)
class PathPolicy:
    """Decides about paths.

    Attributes:
        project: root of the project, absolute.
        allowed: further folders or files that may be read, absolute.
    """

    project: Path
    allowed: tuple[Path, ...] = ()

    @classmethod
    def of(cls, project: Path, allow: Iterable[str | Path] = ()) -> "PathPolicy":
        """Policy of a project: settings, flags and earlier grants together."""
        root = project.resolve()
        extra = [Path(p).expanduser() for p in allow] + granted(root)
        return cls(root, tuple((root / p).resolve() for p in extra))

    def resolve(self, path: str) -> Path:
        """Absolute path without looking at permissions."""
        return (self.project / Path(path).expanduser()).resolve()

    def check_read(self, path: str, step: str, field: str = "path") -> Issue | None:
        """`DM-PATH-001` when reading `path` is not allowed, `DM-PATH-003` for addresses."""
        if REMOTE_MARK in path:
            scheme = path.split(REMOTE_MARK, 1)[0]
            message = f"`{scheme}` addresses are not read by this version; copy the file here"
            return Issue("DM-PATH-003", message, step=step, field=field)
        if "\0" in path:
            return Issue("DM-PATH-001", "a path may not contain a NUL character", step=step, field=field)
        target = self.resolve(path.split("*", 1)[0] if "*" in path else path)
        if any(target == root or root in target.parents for root in (self.project, *self.allowed)):
            return None
        return Issue(
            "DM-PATH-001",
            f"`{path}` is outside the project",
            step=step,
            field=field,
            fix='name it with -i, or add its folder to allow_paths = ["..."] in datamill.toml',
        )

    def check_write(self, path: str, step: str, inputs: Iterable[Path]) -> Issue | None:
        """`DM-PATH-002` when writing `path` would leave the project or touch an input or datamill's own state."""
        if REMOTE_MARK in path or "\0" in path:
            return Issue("DM-PATH-002", f"outputs are local files, not `{path}`", step=step, field="path")
        target = self.resolve(path)
        if self.project not in target.parents:
            return Issue("DM-PATH-002", f"`{path}` is outside the project", step=step, field="path")
        state = self.project / STATE_FOLDER
        if target == state or state in target.parents:
            return Issue("DM-PATH-002", f"`{path}` is datamill's own state", step=step, field="path")
        for source in inputs:
            if target == source or source in target.parents or _globbed(target, source):
                message = f"`{path}` would overwrite the input `{source.name}`"
                return Issue("DM-PATH-004", message, step=step, field="path", fix="write to a new path")
        return None


def _globbed(target: Path, source: Path) -> bool:
    """Whether an input written as a pattern would read the output `target` (again)."""
    pattern = str(source)
    if "**" in pattern:
        return fnmatchcase(str(target), pattern)
    return any(mark in pattern for mark in "*?[") and target.match(pattern)


def granted(project: Path) -> list[Path]:
    """Paths that a person has granted in this project."""
    file = project / STATE_FOLDER / GRANTS
    if not file.is_file():
        return []
    return [Path(item) for item in json.loads(file.read_text(encoding="utf-8"))]


def grant(project: Path, paths: Iterable[Path]) -> None:
    """Remember that a person named `paths` on the command line."""
    known = {str(p) for p in granted(project)}
    new = known | {str(p.resolve()) for p in paths}
    if new == known:
        return
    folder = project / STATE_FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f"{GRANTS}.{os.getpid()}.tmp"
    temporary.write_text(json.dumps(sorted(new)), encoding="utf-8")
    temporary.replace(folder / GRANTS)
