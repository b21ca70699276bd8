"""A saved set of sketches to hold new rows against, with the settings it was made under.

A folder with `settings.json`, `rows.arrow` (`_id`, `_ord` in total order), `keys.npy` and `owners.npy` (all band
keys, sorted, and the row each belongs to), `contents.npy` with its sorting order, and, when made for verification,
the shingle hashes of every row in `shingles.npy` and `limits.npy`. It holds no text. Reuse under any other setting
is refused with the name of the setting.

Cost on disk: 12 bytes a band and row, and 8 bytes a distinct shingle (about the size of the text) for verification.
Loading maps the files and reads what is looked up.
"""

import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from datamill.errors import DatamillError, ExitCode
from datamill.services.minhash.settings import SketchSettings
from datamill.services.records import ID, ORD

MAX_OWNERS: Final[int] = 64
"""Rows of one band key that a query meets at most, first in total order; equal texts are found apart from this."""

ROWS_SCHEMA: Final = pa.schema([pa.field(ID, pa.string()), pa.field(ORD, pa.int64())])
_ARRAYS: Final = ("keys", "owners", "contents", "order", "shingles", "limits")


@dataclass(frozen=True, slots=True)
class MinHashIndex:
    """Sketches of `n` rows with text, in total order.

    Attributes:
        settings: `SketchSettings.identity()` of their making.
        rows: `_id` and `_ord`.
        keys: `(n * bands,) uint64`, sorted.
        owners: `(n * bands,) uint32`, the row of each key, ascending within equal keys.
        contents: `(n,) uint64` content hashes.
        order: `(n,) uint32`, rows by ascending content hash, then row.
        shingles: sorted distinct shingle hashes of all rows, one set after another; empty without verification.
        limits: `(n + 1,) int64` limits of the sets.
    """

    settings: Mapping[str, Any]
    rows: pa.Table
    keys: NDArray[np.uint64]
    owners: NDArray[np.uint32]
    contents: NDArray[np.uint64]
    order: NDArray[np.uint32]
    shingles: NDArray[np.uint64]
    limits: NDArray[np.int64]

    def candidates(
        self, keys: NDArray[np.uint64], contents: NDArray[np.uint64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Pairs (query, row of the index) that share a band key or the whole content, distinct and sorted.

        Args:
            keys: `(m, bands) uint64` of the queries.
            contents: `(m,) uint64` of the queries.
        """
        flat = keys.ravel()
        low = np.searchsorted(self.keys, flat, "left")
        many = np.minimum(np.searchsorted(self.keys, flat, "right") - low, MAX_OWNERS)
        query = np.repeat(np.arange(len(flat)) // max(1, keys.shape[1]), many)
        step = np.arange(int(many.sum())) - np.repeat(np.cumsum(many) - many, many)
        owner = self.owners[np.repeat(low, many) + step].astype(np.int64)
        same_query, same_owner = self._equal_content(contents)
        pairs = np.stack([np.concatenate([query, same_query]), np.concatenate([owner, same_owner])], axis=1)
        distinct = np.unique(pairs, axis=0).astype(np.int64)
        return distinct[:, 0], distinct[:, 1]

    def _equal_content(self, contents: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        if not len(self.contents):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        place = np.searchsorted(self.contents, contents, "left", sorter=self.order)
        owner = self.order[np.minimum(place, len(self.order) - 1)].astype(np.int64)
        hit = np.flatnonzero(self.contents[owner] == contents)
        return hit.astype(np.int64), owner[hit]

    def joined(self, other: "MinHashIndex") -> "MinHashIndex":
        """This index and `other`, whose rows count as later, in one."""
        require_equal_settings(self.settings, other.settings, "the second index")
        keys = np.concatenate([self.keys, other.keys])
        owners = np.concatenate([self.owners, other.owners + np.uint32(len(self.contents))])
        order = np.argsort(keys, kind="stable")
        contents = np.concatenate([self.contents, other.contents])
        return MinHashIndex(
            self.settings,
            pa.concat_tables([self.rows, other.rows]),
            keys[order],
            owners[order],
            contents,
            _content_order(contents),
            np.concatenate([self.shingles, other.shingles]),
            np.concatenate([self.limits, self.limits[-1] + other.limits[1:]]),
        )


def build_index(
    settings: SketchSettings,
    rows: pa.Table,
    keys: NDArray[np.uint64],
    contents: NDArray[np.uint64],
    shingles: NDArray[np.uint64] | None = None,
    limits: NDArray[np.int64] | None = None,
) -> MinHashIndex:
    """An index of rows in total order; `keys` is `(n, bands)`, the other arrays as in `MinHashIndex`."""
    flat = keys.ravel()
    order = np.argsort(flat, kind="stable")
    owners = (np.arange(len(flat)) // max(1, keys.shape[1])).astype(np.uint32)
    if shingles is None or limits is None:
        shingles, limits = np.empty(0, np.uint64), np.zeros(len(contents) + 1, np.int64)
    return MinHashIndex(
        settings.identity(), rows.select(ROWS_SCHEMA.names).cast(ROWS_SCHEMA), flat[order], owners[order], contents,
        _content_order(contents), shingles, limits,
    )  # fmt: skip


def _content_order(contents: NDArray[np.uint64]) -> NDArray[np.uint32]:
    return np.argsort(contents, kind="stable").astype(np.uint32)


def save_index(index: MinHashIndex, folder: Path) -> None:
    """Write `index` to `folder`, all or nothing; an index made under the same settings is replaced.

    Raises:
        DatamillError: `DM-DEDUP-004` when `folder` exists and is no index, `DM-DEDUP-002` when it is an index with
            other settings.
    """
    if folder.exists():
        if not (folder / "settings.json").is_file():
            raise DatamillError(
                "DM-DEDUP-004", "the folder exists and is not a saved MinHash index", file=str(folder),
                field="params.save_index", fix="name another folder",
            )  # fmt: skip
        require_equal_settings(_read_settings(folder), index.settings, str(folder))
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    for name in _ARRAYS:
        np.save(fresh / f"{name}.npy", getattr(index, name))
    with pa.ipc.new_file(fresh / "rows.arrow", index.rows.schema) as writer:
        writer.write_table(index.rows)
    text = json.dumps({**index.settings, "num_rows": index.rows.num_rows}, indent=2, sort_keys=True)
    (fresh / "settings.json").write_text(text + "\n", encoding="utf-8")
    if folder.exists():
        shutil.rmtree(folder)
    fresh.rename(folder)


def load_index(folder: Path, settings: SketchSettings) -> MinHashIndex:
    """Map a saved index, made under exactly `settings`.

    Raises:
        DatamillError: `DM-DEDUP-002` naming every setting that differs, `DM-DEDUP-003` when the folder is not an
            index or is damaged.
    """
    stored = _read_settings(folder)
    num_rows = stored.pop("num_rows", None)
    require_equal_settings(stored, settings.identity(), str(folder))
    try:
        arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in _ARRAYS}
        rows = pa.ipc.open_file(pa.memory_map(str(folder / "rows.arrow"))).read_all()
    except (OSError, ValueError, pa.ArrowInvalid) as error:
        raise _damaged(folder, str(error)) from error
    index = MinHashIndex(stored, rows, **arrays)
    sizes = {rows.num_rows, len(index.contents), len(index.limits) - 1, num_rows}
    if len(sizes) != 1 or len(index.keys) != len(index.owners) or int(index.limits[-1]) != len(index.shingles):
        raise _damaged(folder, "the files disagree about the number of rows")
    return index


def require_equal_settings(stored: Mapping[str, Any], wanted: Mapping[str, Any], place: str) -> None:
    """Refuse two sets of settings that differ anywhere.

    Raises:
        DatamillError: `DM-DEDUP-002`; the message names every key that differs with both values.
    """
    names = sorted(set(stored) | set(wanted))
    different = [name for name in names if name != "num_rows" and stored.get(name) != wanted.get(name)]
    if not different:
        return
    shown = ", ".join(f"`{name}` (index {stored.get(name)!r}, asked {wanted.get(name)!r})" for name in different)
    raise DatamillError(
        "DM-DEDUP-002",
        f"the saved index was made with other settings: {shown}",
        exit_code=ExitCode.INVALID,
        file=place,
        field="params." + different[0],
        expected="the settings of the index",
        fix="use the settings of the index, or build a new one with save_index",
        context={"different": different},
    )


def _read_settings(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _damaged(folder, str(error)) from error
    if not isinstance(found, dict):
        raise _damaged(folder, "settings.json holds no settings")
    return found


def _damaged(folder: Path, why: str) -> DatamillError:
    return DatamillError(
        "DM-DEDUP-003", f"not a readable MinHash index: {why}", exit_code=ExitCode.INVALID, file=str(folder),
        field="params.against", fix="build it again with save_index",
    )  # fmt: skip
