"""What is asked of a cluster, whichever it is: where its workers have datamill from, and what becomes of an error."""

import errno
import hashlib
import json
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from support.cli import run_cli
from support.project import compiled, write_rows

from datamill.services.engines.protocol import Engine
from datamill.workflows.approval import approve
from datamill.workflows.execute import RunRequest, run_plan
from datamill.workflows.runner import RunOptions

FAULTY = """\
version: 1
name: faulty
inputs: {{load: {{path: few.jsonl}}}}
steps:
  - {{id: swallow, operator: {operator}, needs: load}}
outputs: {{out: {{from: swallow, path: out/few.jsonl}}}}
run: {{shard_rows: 5}}
"""


def where(_item: int) -> dict[str, Any]:
    """On a worker: where datamill is imported from, and whether what lies beside its modules came along."""
    import datamill
    from datamill.operators.registry import catalogue, find

    root = Path(datamill.__file__).parent
    needed = ("datamill/operators/decon", "datamill/workflows/recipes")
    data = {path.suffix for path in root.rglob("*") if path.is_file()}
    params = find("text.normalize").params()
    return {
        "file": datamill.__file__, "operators": sorted(catalogue()), "suffixes": sorted(data), "pid": os.getpid(),
        "folders": [(root.parent / name).is_dir() for name in needed], "params": type(params).__name__,
        "fingerprints": fingerprints(),
    }  # fmt: skip


def fingerprints() -> int:
    """Entries of the shipped benchmark fingerprints, read from beside the imported package."""
    from importlib.resources import files

    import numpy as np

    return sum(len(np.load(path).files) for path in Path(str(files("datamill"))).rglob("*.npz"))


def full_disk(item: int) -> int:
    """What writing to a full disk raises."""
    if item == 2:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/full/unit")
    return item


def disk_error(engine: Engine) -> dict[str, Any]:
    """How a worker's full disk arrives on the driver."""
    try:
        list(engine.map_units(full_disk, [0, 1, 2, 3]))
    except OSError as error:
        return {"errno": error.errno, "file": str(error.filename)}
    return {}


def faulty_runs(folder: Path, executor: str) -> dict[str, Any]:
    """Exit code and stderr of a batch step and of a global step that raise on one row."""
    rows = [{"text": f"row {i} {'poison' if i == 12 else 'bread'}"} for i in range(20)]
    write_rows(folder / "few.jsonl", rows)
    told = {}
    for kind in ("batch", "whole"):
        text = FAULTY.format(operator=f"faulty.{kind}")
        (folder / f"{kind}.yaml").write_text(text, encoding="utf-8")
        digest = compiled(folder, text).digest
        ran = run_cli(folder, ["run", f"{kind}.yaml", "-q", "-e", executor, "-j", "2", "--approve", digest])
        told[kind] = {"code": ran.code, "err": ran.err}
    return told


def disturbed_run(folder: Path, executor: str, disturb: Callable[[], Any], **options: Any) -> dict[str, Any]:
    """Run the plan of `folder`; `disturb` is called in a thread of its own as soon as `near` has begun.

    Returns:
        `status`, sha256 of every output, what `disturb` returned, and whether `near` was at work the whole time.
    """
    plan = compiled(folder)
    approve(folder, plan, "test")
    over = threading.Event()
    said: dict[str, Any] = {}

    def listen(event: Mapping[str, Any]) -> None:
        if event["event"] == "step_started" and event["steps"] == ["near"]:
            threading.Thread(target=hurt).start()
        if event["event"] == "unit_done" and event["step"] == "near":
            over.set()

    def hurt() -> None:
        said["disturbed"] = disturb()
        said["in_the_middle"] = not over.is_set()

    request = RunRequest(folder, executor, workers=2, options=RunOptions(**options), listener=listen)
    result = run_plan(plan, request)
    return {"status": result.status, "outputs": digests(folder), **said}


def digests(folder: Path) -> dict[str, str]:
    """sha256 of the data files among the outputs."""
    files = sorted((folder / "out").iterdir())
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if path.suffix in {".jsonl", ".parquet"}
    }


def tell(facts: Mapping[str, Any], path: Path) -> None:
    """Leave the facts for the test."""
    path.write_text(json.dumps(facts, default=str), encoding="utf-8")
