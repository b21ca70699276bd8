"""Writing the outputs of a run: files, their registration for LLaMA-Factory, and what was written before.

An output file that datamill wrote may be replaced by a later run; a file it did not write is never overwritten
without a specific yes. Bytes are a function of the rows alone, so a file that is already right is left alone.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from datamill.errors import DatamillError, ExitCode
from datamill.services.engines.protocol import Shard
from datamill.services.engines.shards import read_shard
from datamill.services.records import ID, SYSTEM_COLUMNS
from datamill.services.storage.atomic import write_json
from datamill.services.writing import write_rows
from datamill.workflows.paths import STATE_FOLDER
from datamill.workflows.plan import Plan, sha256
from datamill.workflows.spec import OutputSpec

OUTPUTS = "outputs"
BLOCK = 1 << 22
PENDING = "pending"


@dataclass(frozen=True)
class WrittenOutput:
    """An output file.

    Attributes:
        name: output name.
        path: where it is.
        rows: rows in it.
        num_bytes: size.
        sha256: digest of the bytes.
        source: content key of rows and format.
        reused: whether the file was already right.
    """

    name: str
    path: str
    rows: int
    num_bytes: int
    sha256: str
    source: str
    reused: bool = False


def check_targets(project: Path, plan: Plan, overwrite: bool) -> None:
    """Refuse to replace files that datamill did not write.

    Raises:
        DatamillError: `DM-PATH-006` (exit 4) unless `overwrite` is the person's specific yes.
    """
    for name, output in plan.outputs.items():
        target = project / output.path
        if overwrite or not target.exists():
            continue
        record = _record(project, target)
        ours = record is not None and (record["sha256"] == PENDING or record["sha256"] == file_sha256(target))
        if not ours:
            raise DatamillError(
                "DM-PATH-006",
                f"`{output.path}` exists and was not written by datamill",
                exit_code=ExitCode.NEEDS_APPROVAL,
                step=name,
                fix="choose another path, or add --overwrite to replace it",
            )


def write_output(project: Path, name: str, output: OutputSpec, shards: Sequence[Shard], plan: Plan) -> WrittenOutput:
    """Write one output, or find that it is already there byte for byte."""
    target = project / output.path
    keep_ids = output.llamafactory is not None
    source = sha256([[shard.digest for shard in shards], output.format, keep_ids])
    record = _record(project, target)
    if record and record["source"] == source and target.is_file() and file_sha256(target) == record["sha256"]:
        return WrittenOutput(**{**record, "reused": True, "name": name})
    protected = [project / str(step.params["path"]) for step in plan.steps if step.is_source]
    tables = data_tables(shards, keep_ids=keep_ids)
    # said before it is done: a run killed between the rename and the record finds its own file again
    intent = WrittenOutput(name, output.path, 0, 0, PENDING, PENDING)
    write_json(_record_path(project, target), asdict(intent), "output.intent")
    file = write_rows(tables, target, output.format, protect=protected)
    written = WrittenOutput(name, output.path, file.rows, file.bytes, file.sha256, source)
    write_json(_record_path(project, target), asdict(written), "output.record")
    return written


def data_tables(shards: Sequence[Shard], *, keep_ids: bool) -> Iterator[pa.Table]:
    """Rows without system columns; with `keep_ids` the stable id stays, for training to name samples by."""
    for shard in shards:
        table = read_shard(shard.path)
        gone = [c for c in SYSTEM_COLUMNS if c in table.column_names and not (keep_ids and c == ID)]
        table = table.drop_columns(gone)
        if keep_ids:
            table = table.select([*(c for c in table.column_names if c != ID), ID])
        yield table


def file_sha256(path: Path) -> str:
    """Hex sha256 of a file."""
    hasher = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(BLOCK):
            hasher.update(block)
    return hasher.hexdigest()


def _record_path(project: Path, target: Path) -> Path:
    key = hashlib.sha256(str(target).encode()).hexdigest()[:24]
    return project / STATE_FOLDER / OUTPUTS / f"{key}.json"


def _record(project: Path, target: Path) -> Mapping[str, Any] | None:
    path = _record_path(project, target)
    if not path.is_file():
        return None
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return record
