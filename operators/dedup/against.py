"""New rows held against an older set: only new rows may leave, and each names the old row it matched.

The older set is a saved index or another input. Duplicates inside either set are left alone: what leaves here has a
counterpart in the older set, nothing else.

Cost: one pass over each set; the older set's band keys (12 bytes a band and row) on the driver and with every
worker, a saved index as memory-mapped files.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from datamill.errors import DatamillError, ExitCode
from datamill.operators.dedup.candidates import sketch
from datamill.operators.dedup.clusters import decision_schema
from datamill.services.engines.protocol import Dataset
from datamill.services.minhash.index import MinHashIndex, build_index
from datamill.services.minhash.settings import SketchSettings
from datamill.services.records import ID, ORD, Fate

REASON = "in_older_set"


def is_path(name: str) -> bool:
    """Whether `against` names a folder (it holds a slash) rather than an input."""
    return "/" in name


def older_decisions(
    new: Dataset, index: MinHashIndex, column: str, settings: SketchSettings, threshold: float
) -> pa.Table:
    """Decisions about the new rows that match a row of `index`: merged into the most similar, first in order on ties.

    Without verification a shared band is a match and `value` is null unless the texts are equal.
    """
    score = partial(_score, index=index, column=column, settings=settings, threshold=threshold)
    return new.map_tables(score, columns=[ID, column]).collect()


def index_of_dataset(old: Dataset, new: Dataset, column: str, settings: SketchSettings) -> MinHashIndex:
    """An index of another input, with shingle sets for those of its rows that share a band with a row of `new`."""
    index = index_dataset(old, column, settings, sets=False)
    if settings.verify == "none":
        return index
    touched = new.map_tables(partial(_owners, index=index, column=column, settings=settings), columns=[ID, column])
    wanted = np.unique(touched.collect()["owner"].to_numpy())
    chosen = index.rows.take(pa.array(wanted)).select([ID])
    sets = old.semi_join(chosen, ID).map_tables(partial(_sets, column=column, settings=settings), columns=[ID, column])
    found = pl.DataFrame(sets.collect())
    ordered = pl.DataFrame(index.rows).select(ID).join(found, on=ID, how="left", maintain_order="left")
    shingles, limits = _flattened(ordered.get_column("set"))
    return replace(index, shingles=shingles, limits=limits)


def index_dataset(data: Dataset, column: str, settings: SketchSettings, *, sets: bool) -> MinHashIndex:
    """An index of all rows of `data` that have text, in total order."""
    make = partial(_indexed, column=column, settings=settings, sets=sets)
    frame = pl.DataFrame(data.map_tables(make, columns=[ID, ORD, column]).collect()).sort(ORD, ID)
    flat = frame.get_column("keys").explode(empty_as_null=False).to_numpy()
    keys = np.ascontiguousarray(flat).reshape(frame.height, settings.bands)
    contents = np.ascontiguousarray(frame.get_column("content").to_numpy())
    rows = frame.select(ID, ORD).to_arrow()
    if not sets:
        return build_index(settings, rows, keys, contents)
    return build_index(settings, rows, keys, contents, *_flattened(frame.get_column("set")))


def open_source(against: str, inputs: Mapping[str, Dataset], project: Path) -> Dataset | Path:
    """The named input, or the folder of a saved index.

    Raises:
        DatamillError: `DM-DEDUP-006` when there is neither.
    """
    if against in inputs:
        return inputs[against]
    folder = project / against
    if (folder / "settings.json").is_file():
        return folder
    raise DatamillError(
        "DM-DEDUP-006",
        f"`against: {against}` is neither an input nor a saved index",
        exit_code=ExitCode.INVALID,
        field="params.against",
        expected="the name of another input, or a folder made by save_index (written with a slash)",
    )


def _indexed(table: pa.Table, *, column: str, settings: SketchSettings, sets: bool) -> pa.Table:
    sketches = sketch(table[column], settings)
    live = sketches.counts > 0
    chosen = table.filter(pa.array(live))
    keys = sketches.keys[live]
    limits = pa.array(np.arange(len(keys) + 1) * settings.bands, pa.int64())
    columns = {
        ID: chosen[ID],
        ORD: chosen[ORD],
        "content": pa.array(sketches.contents[live]),
        "keys": pa.LargeListArray.from_arrays(limits, pa.array(keys.ravel(), pa.uint64())),
    }
    if sets:
        columns["set"] = _set_list(chosen, column, settings)
    return pa.table(columns)


def _owners(table: pa.Table, *, index: MinHashIndex, column: str, settings: SketchSettings) -> pa.Table:
    sketches = sketch(table[column], settings)
    live = sketches.counts > 0
    _, owners = index.candidates(sketches.keys[live], sketches.contents[live])
    return pa.table({"owner": pa.array(np.unique(owners), pa.int64())})


def _sets(table: pa.Table, *, column: str, settings: SketchSettings) -> pa.Table:
    return pa.table({ID: table[ID], "set": _set_list(table, column, settings)})


def _set_list(table: pa.Table, column: str, settings: SketchSettings) -> pa.Array:
    from datamill.services.minhash.sketch import shingle_set_arrays

    flat, limits = shingle_set_arrays(table[column], settings.unit, settings.ngram)
    return pa.LargeListArray.from_arrays(pa.array(limits), pa.array(flat, pa.uint64()))


def _flattened(sets: pl.Series) -> tuple[np.ndarray, np.ndarray]:
    sizes = sets.list.len().fill_null(0).to_numpy()
    limits = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])
    flat = sets.drop_nulls().explode(empty_as_null=False).cast(pl.UInt64).to_numpy()
    return np.ascontiguousarray(flat), limits


def _score(
    table: pa.Table, *, index: MinHashIndex, column: str, settings: SketchSettings, threshold: float
) -> pa.Table:
    sketches = sketch(table[column], settings)
    live = np.flatnonzero(sketches.counts > 0)
    query, owner = index.candidates(sketches.keys[live], sketches.contents[live])
    same = sketches.contents[live][query] == np.asarray(index.contents)[owner]
    value = np.where(same, 1.0, np.nan)
    if settings.verify == "jaccard":
        value = np.where(same, 1.0, _similarities(table, live, query, owner, index, column, settings))
        keep = value >= threshold
        query, owner, value = query[keep], owner[keep], value[keep]
    best = (
        pl.DataFrame({"query": query, "owner": owner, "value": value})
        .with_columns(pl.col("value").fill_nan(None))
        .sort(["query", "value", "owner"], descending=[False, True, False], nulls_last=True)
        .group_by("query", maintain_order=True)
        .first()
    )
    ids = table[ID].take(pa.array(live[best.get_column("query").to_numpy()], pa.int64()))
    into = index.rows[ID].take(pa.array(best.get_column("owner").to_numpy(), pa.int64()))
    count = len(ids)
    columns = [
        ids, pa.repeat(str(Fate.MERGED), count), pa.repeat(REASON, count), best.get_column("value").to_arrow(),
        pa.repeat(threshold, count), into, pa.nulls(count, pa.string()), into,
        pa.repeat(pa.scalar(1, pa.int64()), count),
    ]  # fmt: skip
    return pa.table(columns, names=decision_schema().names).cast(decision_schema())


def _similarities(
    table: pa.Table,
    live: np.ndarray,
    query: np.ndarray,
    owner: np.ndarray,
    index: MinHashIndex,
    column: str,
    settings: SketchSettings,
) -> np.ndarray:
    """Exact Jaccard of (query, owner) pairs; the old sets are copied out of the index row by row."""
    from datamill.services.minhash.pairs import jaccards
    from datamill.services.minhash.sketch import shingle_set_arrays

    needed, ours = np.unique(query, return_inverse=True)
    texts = table[column].take(pa.array(live[needed], pa.int64()))
    flat, limits = shingle_set_arrays(texts, settings.unit, settings.ngram)
    older, theirs = np.unique(owner, return_inverse=True)
    pieces = [np.asarray(index.shingles[index.limits[i] : index.limits[i + 1]]) for i in older]
    sizes = np.array([len(piece) for piece in pieces], np.int64)
    joined = np.concatenate([flat, *pieces]) if pieces else flat
    bounds = np.concatenate([limits, limits[-1] + np.cumsum(sizes)])
    return jaccards(joined, bounds, ours.astype(np.int64), theirs.astype(np.int64) + len(needed))
