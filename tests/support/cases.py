"""Cases as whole plans: copy a case into a project, run a workflow over it, read what became of its rows."""

import shutil
from pathlib import Path
from typing import Any

from support.project import approved_run, compiled

from datamill.services.records import SYSTEM_COLUMNS
from datamill.workflows.execute import RunResult
from datamill.workflows.lookup import RunData
from datamill.workflows.run_record import RunRecord


def project_of(case: Path, folder: Path) -> Path:
    """A project with the files of a case."""
    shutil.copytree(case, folder, dirs_exist_ok=True, copy_function=shutil.copyfile)
    return folder


def run_case(folder: Path, workflow: str, workers: int = 1) -> tuple[RunResult, RunData]:
    """Approve and run `workflow` in `folder`."""
    result = approved_run(folder, compiled(folder, workflow), workers=workers)
    return result, RunData(folder, RunRecord(result.folder))


def rows_after(data: RunData, step: str) -> list[dict[str, Any]]:
    """Rows after a step, without system columns."""
    return [
        {key: value for key, value in row.items() if key not in SYSTEM_COLUMNS}
        for table in data.tables(step)
        for row in table.to_pylist()
    ]
