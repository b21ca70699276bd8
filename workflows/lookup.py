"""Looking things up in a finished or stopped run: rows of a step, rows that left, and the way of one row."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import xxhash

from datamill.errors import DatamillError, ExitCode, nearest
from datamill.services.engines.shards import read_shard
from datamill.services.records import ID, Fate
from datamill.workflows.run_files import DROPS, STEPS_FILE
from datamill.workflows.run_record import RunRecord


@dataclass(frozen=True)
class RunData:
    """The rows and fates a run left, by step."""

    project: Path
    run: RunRecord

    def _shards(self) -> dict[str, list[dict[str, Any]]]:
        try:
            text = (self.run.folder / STEPS_FILE).read_text(encoding="utf-8")
        except FileNotFoundError as error:
            message = f"run {self.run.id} did not get far enough to have data"
            raise DatamillError("DM-RUN-022", message, fix="run the same command again to resume it") from error
        shards: dict[str, list[dict[str, Any]]] = json.loads(text)["shards"]
        return shards

    def steps(self) -> list[str]:
        """Steps with rows, in plan order."""
        return list(self._shards())

    def stats(self) -> dict[str, Any]:
        """Statistics that report steps made, by step."""
        text = (self.run.folder / STEPS_FILE).read_text(encoding="utf-8")
        return {
            name: json.loads(value["stats"]) for name, value in json.loads(text)["stats"].items() if "stats" in value
        }

    def tables(self, step: str) -> Iterator[pa.Table]:
        """Rows after `step`, a shard at a time.

        Raises:
            DatamillError: `DM-RUN-023` unknown step, `DM-RUN-024` when the committed shards have been cleaned away.
        """
        shards = self._shards()
        if step not in shards:
            raise DatamillError(
                "DM-RUN-023", f"run {self.run.id} has no step `{step}`", exit_code=ExitCode.USAGE,
                nearest=nearest(step, shards), expected=", ".join(shards),
            )  # fmt: skip
        for shard in shards[step]:
            path = self.project / shard["path"]
            if not path.is_file():
                message = f"the rows of `{step}` were cleaned away"
                raise DatamillError("DM-RUN-024", message, fix="run the plan again to make them anew")
            yield read_shard(path)

    def fates(self, step: str) -> pa.Table:
        """All fates of `step`."""
        path = self.run.folder / DROPS / f"{step}.parquet"
        if not path.is_file():
            list(self.tables(step))  # raises the right error for an unknown step
            raise DatamillError("DM-RUN-022", f"run {self.run.id} has no drops of `{step}`")
        return pq.read_table(path)

    def dropped(self, step: str | None, reason: str | None, k: int, seed: int = 0) -> list[dict[str, Any]]:
        """Up to `k` rows that left, per step and reason, chosen by a keyed hash, with their text.

        Args:
            step: one step, or None for all.
            reason: one reason, or None for all.
            k: examples per reason.
            seed: another seed shows other examples.
        """
        found = []
        for name in [step] if step else self.steps():
            frame = pl.from_arrow(self.fates(name))
            assert isinstance(frame, pl.DataFrame)
            frame = frame.filter(pl.col("fate").is_in([str(f) for f in Fate if f != Fate.EXPANDED]))
            if reason:
                frame = frame.filter(pl.col("reason") == reason)
            for group in frame.partition_by("fate", "reason", maintain_order=True):
                chosen = sorted(group.to_dicts(), key=lambda r: xxhash.xxh3_64_intdigest(f"{seed}:{r['id']}".encode()))[
                    :k
                ]
                found += [{"step": name, "count": group.height, **record} for record in chosen]
        return [{**record, "row": self.row_before(record["step"], record["id"])} for record in found]

    def row_before(self, step: str, row_id: str) -> dict[str, Any] | None:
        """The row as it went into `step`; None for a record that never became a row."""
        lock = json.loads((self.run.folder / "plan.lock.json").read_text(encoding="utf-8"))
        parents: list[str] = next((s["needs"] for s in lock["steps"] if s["id"] == step), [])
        for parent in parents:
            row = self.row(parent, row_id)
            if row is not None:
                return row
        return None

    def row(self, step: str, row_id: str) -> dict[str, Any] | None:
        """The row `row_id` after `step`, or None."""
        for table in self.tables(step):
            hit = table.filter(pc.equal(table[ID], row_id))
            if hit.num_rows:
                record: dict[str, Any] = hit.to_pylist()[0]
                return record
        return None

    def why(self, row_id: str) -> list[dict[str, Any]]:
        """The way of one row through the plan: at each step whether it was there, and its fates."""
        way = []
        for step in self.steps():
            table = self.fates(step)
            own = table.filter(pc.equal(table["id"], row_id)).to_pylist()
            here = self.row(step, row_id) is not None
            if here or own:
                way.append({"step": step, "present": here, "fates": own})
        return way
