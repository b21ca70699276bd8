"""Files a run leaves in its folder besides outputs: drops, metrics, and where the rows of each step are."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from datamill.services.records import FATE_SCHEMA
from datamill.services.storage.atomic import atomic_path, write_json
from datamill.services.storage.units import read_table
from datamill.workflows.plan import Plan
from datamill.workflows.run_record import RunRecord
from datamill.workflows.runner import StepResult

DROPS = "drops"
STEPS_FILE = Path("data") / "steps.json"


def write_run_files(
    record: RunRecord, plan: Plan, results: Mapping[str, StepResult], state: Mapping[str, Any], project: Path
) -> None:
    """Write `drops/<step>.parquet`, `metrics.parquet` and `data/steps.json`.

    Args:
        record: the run.
        plan: the plan.
        results: what each step left behind.
        state: contents of `run.json`.
        project: project folder; shards are named relative to it.
    """
    for name, result in results.items():
        write_drops(record.folder / DROPS / f"{name}.parquet", result.fates)
    _write_metrics(record.folder / "metrics.parquet", plan, results)
    shards = {
        name: [
            {"path": os.path.relpath(s.path, project), "rows": s.num_rows, "digest": s.digest} for s in result.shards
        ]
        for name, result in results.items()
    }
    stats = {name: dict(result.stats) for name, result in results.items() if result.stats}
    write_json(record.folder / STEPS_FILE, {"shards": shards, "stats": stats, "run": state["id"]}, "run.data")


def write_drops(path: Path, fates: list[Path]) -> None:
    """All fates of one step in one file, in shard order, a shard in memory at a time."""
    with atomic_path(path, "run.drops") as temporary, pq.ParquetWriter(temporary, FATE_SCHEMA) as writer:
        for file in fates:
            table = read_table(file)
            if table.num_rows:
                writer.write_table(table.cast(FATE_SCHEMA))


def _write_metrics(path: Path, plan: Plan, results: Mapping[str, StepResult]) -> None:
    records = [
        {
            "step": step.id,
            "operator": step.operator,
            "rows_in": results[step.id].books.rows_in,
            "rows_out": results[step.id].books.rows_out,
            "expanded": results[step.id].books.expanded,
            "seconds": results[step.id].seconds,
            "shards": len(results[step.id].shards),
            "reused": results[step.id].reused,
        }
        for step in plan.steps
        if step.id in results
    ]
    with atomic_path(path, "run.metrics") as temporary:
        pq.write_table(pa.Table.from_pylist(records), temporary)
