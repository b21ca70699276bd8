"""A run's folder: what was asked, approved, done and left behind, readable by other tools.

`runs/<yyyymmdd-hhmmss>-<slug>-<6 hex>/` holds `plan.yaml`, `plan.lock.json`, `run.json` (state), `events.jsonl`,
`env.json`, `report.json`, `report.html` and `card.md`; `runs/latest` links to the newest. `run.json` is replaced
atomically at every change of state, so a killed run is seen as `running` by a process that is gone.
"""

import json
import os
import platform
import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from datamill.errors import DatamillError, ExitCode
from datamill.services.storage.atomic import commit_point, temporary_name, write_bytes, write_json
from datamill.workflows.plan import Plan

RUNS = "runs"
LATEST = "latest"
STATE = "run.json"
FINISHED = frozenset({"done", "gate_failed"})
"""Statuses of runs that are over; a run with another status is gone on with."""
PACKAGES = ("datamill", "polars", "pyarrow", "numpy", "numba", "torch", "transformers", "llamafactory", "deepspeed")


@dataclass(frozen=True)
class RunRecord:
    """Handle on a run folder."""

    folder: Path

    @property
    def id(self) -> str:
        """Name of the folder."""
        return self.folder.name

    def state(self) -> dict[str, Any]:
        """Contents of `run.json`."""
        state: dict[str, Any] = json.loads((self.folder / STATE).read_text(encoding="utf-8"))
        return state

    def update(self, **facts: Any) -> dict[str, Any]:
        """Merge `facts` into `run.json` atomically."""
        state = {**(self.state() if (self.folder / STATE).is_file() else {}), **facts}
        write_json(self.folder / STATE, state, "run.state")
        return state

    @property
    def plan_file(self) -> Path:
        """The approved workflow, as text."""
        return self.folder / "plan.yaml"


def new_run(
    project: Path,
    plan: Plan,
    approval: Mapping[str, Any],
    command: str,
    asked: str = "",
    history: Mapping[str, Any] | None = None,
) -> RunRecord:
    """Make the folder of a new run; it appears whole under its name or not at all."""
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    folder = project / RUNS / f"{stamp}-{plan.name[:40]}-{secrets.token_hex(3)}"
    unborn = temporary_name(folder.with_name(f".{folder.name}"))
    unborn.mkdir(parents=True)
    record = RunRecord(unborn)
    write_bytes(record.plan_file, plan.yaml.encode(), "run.plan")
    write_json(unborn / "plan.lock.json", plan.to_dict(), "run.lock")
    write_json(unborn / "env.json", environment(), "run.env")
    record.update(
        id=folder.name, name=plan.name, digest=plan.digest, status="running", pid=os.getpid(), command=command,
        request=asked, history=dict(history or {}), approval=dict(approval),
        started=datetime.now(UTC).isoformat(timespec="seconds"), steps={},
    )  # fmt: skip
    unborn.rename(folder)
    commit_point("run.made")
    point_latest(project, folder)
    return RunRecord(folder)


def point_latest(project: Path, folder: Path) -> None:
    """Make `runs/latest` a link to `folder`."""
    link = project / RUNS / LATEST
    temporary = link.with_name(f".latest-{os.getpid()}-{secrets.token_hex(3)}")
    temporary.symlink_to(folder.name)
    temporary.replace(link)


def list_runs(project: Path) -> list[RunRecord]:
    """Runs of a project, oldest first."""
    folder = project / RUNS
    found = (
        (path for path in folder.iterdir() if not path.is_symlink() and not path.name.startswith("."))
        if folder.is_dir()
        else ()
    )
    return [RunRecord(path) for path in sorted(found) if (path / STATE).is_file()]


def find_run(project: Path, name: str) -> RunRecord:
    """The run called `name`: a full id, a unique part of one, a folder, `@last`, or `@k` (k-th newest).

    Raises:
        DatamillError: `DM-RUN-020` when no run or more than one fits.
    """
    runs = list_runs(project)
    if name in {"@last", "latest"} and runs:
        return runs[-1]
    if name.startswith("@") and name[1:].isdigit() and 1 <= int(name[1:]) <= len(runs):
        return runs[-int(name[1:])]
    folder = Path(name)
    if (folder / STATE).is_file():
        return RunRecord(folder.resolve())
    matches = [run for run in runs if name and not name.startswith("@") and name in run.id]
    if len(matches) == 1 or (matches and matches[-1].id == name):
        return matches[-1]
    what = f"{len(matches)} runs match" if matches else "there is no run"
    raise DatamillError("DM-RUN-020", f"{what} `{name}`", exit_code=ExitCode.USAGE, fix="datamill runs list")


def unfinished(project: Path, digest: str) -> RunRecord | None:
    """The newest run of the plan `digest` if it did not end well; it is the one to resume."""
    run = _newest(project, digest)
    return run if run is not None and run.state()["status"] not in FINISHED else None


def finished(project: Path, digest: str) -> RunRecord | None:
    """The newest run of the plan `digest` if it ended well."""
    run = _newest(project, digest)
    return run if run is not None and run.state()["status"] in FINISHED else None


def _newest(project: Path, digest: str) -> RunRecord | None:
    return next((run for run in reversed(list_runs(project)) if run.state()["digest"] == digest), None)


def environment() -> dict[str, Any]:
    """Versions and hardware, without names of users or hosts."""
    versions: dict[str, str | None] = {}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = None
    return {
        "python": sys.version.split()[0],
        "platform": platform.system(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "packages": versions,
    }
