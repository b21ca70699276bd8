"""Committed units of work: the memory that makes a run resumable at any instant.

A unit is one step applied to one shard. Its key is the content of both, so a unit found under its key can be used
whatever run made it, and changing one parameter invalidates exactly the units below it. A unit is a folder
`<key[:2]>/<key>/` with `rows.arrow`, `fates.parquet` and, written last, `manifest.json`; without a manifest it
does not exist. Two processes may commit the same unit at once: they write the same bytes.

Rows are an uncompressed Arrow IPC file, because they are read several times (the next step, side inputs, outputs,
the report) and mostly in part. Measured on 39 MB of texts: written in 16 ms of CPU and mapped into memory in 0.2 ms,
beside 132 and 77 ms as Parquet with lz4, at 1.7 times the space. Units of older versions have `rows.parquet` and
stay usable.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from datamill.services.engines.shards import read_shard, write_file
from datamill.services.engines.tables import table_digest
from datamill.services.storage.atomic import atomic_path, write_json

ROWS = "rows.arrow"
OLD_ROWS = "rows.parquet"
FATES = "fates.parquet"
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Unit:
    """A committed unit.

    Attributes:
        key: content key.
        folder: where it lies.
        num_rows: surviving rows.
        digest: content digest of the surviving rows.
        counts: ledger counters of the unit.
        seconds: wall time it took when it was computed.
        extra: further facts a step wants to keep, such as statistics.
        rows_name: file of the surviving rows.
    """

    key: str
    folder: Path
    num_rows: int
    digest: str
    counts: Mapping[str, int]
    seconds: float
    extra: Mapping[str, Any] = field(default_factory=dict)
    rows_name: str = ROWS

    @property
    def rows_path(self) -> Path:
        """File of the surviving rows, for `read_shard`."""
        return self.folder / self.rows_name

    @property
    def fates_path(self) -> Path:
        """Parquet file of the fates."""
        return self.folder / FATES

    def rows(self, columns: list[str] | None = None) -> pa.Table:
        """The surviving rows."""
        return read_shard(self.rows_path, columns)

    def fates(self) -> pa.Table:
        """The fates of the unit."""
        return read_table(self.fates_path)


def read_table(path: Path, columns: list[str] | None = None) -> pa.Table:
    """Read a Parquet file with the schema it was written with."""
    with pq.ParquetFile(path, memory_map=True) as file:
        return file.read(columns=columns)


def write_table(table: pa.Table, path: Path, point: str) -> int:
    """Write `table` as Parquet atomically and deterministically; returns the number of bytes."""
    with atomic_path(path, point) as temporary:
        plain = table.replace_schema_metadata(None)
        pq.write_table(plain, temporary, compression="lz4", use_dictionary=False, write_statistics=False)
        return temporary.stat().st_size


def write_arrow(table: pa.Table, path: Path, point: str) -> int:
    """Write `table` as an Arrow IPC file atomically and deterministically; returns the number of bytes."""
    with atomic_path(path, point) as temporary:
        write_file(table.replace_schema_metadata(None).combine_chunks(), temporary)
        return temporary.stat().st_size


def unit_key(step_key: str, *inputs: str) -> str:
    """Key of a step applied to inputs with the given content digests."""
    return hashlib.sha256("\0".join((step_key, *inputs)).encode()).hexdigest()[:40]


@dataclass(frozen=True)
class UnitStore:
    """All units of a project, below one folder."""

    root: Path

    def folder(self, key: str) -> Path:
        """Where the unit `key` lies or would lie."""
        return self.root / key[:2] / key

    def load(self, key: str) -> Unit | None:
        """The unit `key`, or None when it is absent, unfinished or damaged (then it is computed again)."""
        folder = self.folder(key)
        try:
            manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
            whole = all((folder / name).stat().st_size == size for name, size in manifest["sizes"].items())
            if not whole or manifest["key"] != key:
                return None
            return Unit(
                key, folder, manifest["rows"], manifest["digest"], manifest["counts"], manifest["seconds"],
                manifest["extra"], ROWS if ROWS in manifest["sizes"] else OLD_ROWS,
            )  # fmt: skip
        except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):  # absent, or not a manifest
            return None

    def commit(
        self,
        key: str,
        rows: pa.Table,
        fates: pa.Table,
        counts: Mapping[str, int],
        seconds: float,
        extra: Mapping[str, Any] | None = None,
    ) -> Unit:
        """Make the unit durable: rows, then fates, then the manifest."""
        folder = self.folder(key)
        sizes = {
            ROWS: write_arrow(rows, folder / ROWS, "unit.rows"),
            FATES: write_table(fates, folder / FATES, "unit.fates"),
        }
        digest = table_digest(rows)
        manifest = {
            "key": key, "rows": rows.num_rows, "digest": digest, "counts": dict(counts), "seconds": round(seconds, 4),
            "sizes": sizes, "extra": dict(extra or {}),
        }  # fmt: skip
        write_json(folder / MANIFEST, manifest, "unit.manifest")
        return Unit(key, folder, rows.num_rows, digest, dict(counts), seconds, dict(extra or {}))
