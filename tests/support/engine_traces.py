"""One workflow on every engine, and what must not depend on which."""

import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from support.project import approved_run, compiled

from datamill.workflows.lookup import RunData
from datamill.workflows.plan import Plan
from datamill.workflows.run_record import RunRecord
from datamill.workflows.yaml_file import dump


@dataclass(frozen=True)
class Trace:
    """What must not depend on the engine."""

    outputs: dict[str, str]
    ids: dict[str, list[str]]
    books: dict[str, dict[str, int]]
    reasons: dict[str, list[str]]


def trace(folder: Path, plan: Plan, executor: str) -> Trace:
    """Run `plan` and note outputs (bytes), ids of every step, counters and every fate."""
    result = approved_run(folder, plan, workers=2, executor=executor)
    reasons = {}
    for path in sorted((result.folder / "drops").glob("*.parquet")):
        fates = pl.read_parquet(path)
        reasons[path.stem] = sorted(repr(row) for row in fates.drop("shard", strict=False).rows(named=True))
    found = RunData(folder, RunRecord(result.folder))
    ids = {step: sorted(i for table in found.tables(step) for i in table["_id"].to_pylist()) for step in found.steps()}
    digests = {
        output.name: hashlib.sha256((folder / output.path).read_bytes()).hexdigest() for output in result.outputs
    }
    return Trace(digests, ids, {name: dict(books) for name, books in result.steps.items()}, reasons)


def everywhere(request: pytest.FixtureRequest, text: str, make: Any, counts: dict[str, int], rows: int) -> Trace:
    """The same workflow on local in one partition, and on every engine in several; all traces are one."""
    traces = []
    for executor, partitions in (("local", 1), *counts.items()):
        if executor != "local":
            request.getfixturevalue(executor)  # one Ray and one Spark for the whole session
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            make(folder)
            data = yaml.safe_load(text)
            data["run"] = {"shard_rows": max(1, -(-rows // partitions))}
            traces.append(trace(folder, compiled(folder, dump(data)), executor))
    assert all(found == traces[0] for found in traces[1:])
    return traces[0]
