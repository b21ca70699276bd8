"""`dedup.minhash`: near-duplicates by MinHash and banding, verified by exact Jaccard similarity.

Promises: the same rows leave for any partitioning, row order, engine and number of workers; exactly one row of each
cluster stays (`keep_one`); a blank text is never a near-duplicate; a text shorter than the n-gram is compared as a
whole. With `verify: jaccard` no row leaves without a compared pair whose exact similarity reaches the threshold.

Candidates: two texts meet when all `rows` minima of one of `bands` bands agree; with verification two rows fewer
are asked of a band, which finds a superset at a higher recall, and the exact comparison removes the excess.

Under `unit: auto` a text is shingled by words or by characters as its own script asks; two texts on different sides
of that line share no shingle.

Cost: about 0.9 CPU seconds for 200 MB of English text, verified 1.5, Cyrillic about twice that; see
`benchmarks/minhash.py`.

Source: Broder (1997); FineWeb (Penedo et al. 2024) for 14 x 8 over word 5-grams.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, model_validator

from datamill.errors import DatamillError, ExitCode
from datamill.operators.declaration import (
    ColumnType,
    Context,
    Effect,
    Need,
    OnNull,
    Params,
    Schema,
    operator,
    text_need,
)
from datamill.operators.dedup.against import (
    REASON,
    index_dataset,
    index_of_dataset,
    is_path,
    older_decisions,
    open_source,
)
from datamill.operators.dedup.candidates import candidates, member_table, pairs_on_the_driver
from datamill.operators.dedup.clustering import as_decided, decided_rows, distinct_pairs, one_decision, verified_pairs
from datamill.operators.dedup.clusters import (
    KEEP_PATTERN,
    best_column,
    cluster_decisions,
    no_decisions,
    with_decisions,
)
from datamill.operators.dedup.preview import SimilarPair, similar_pairs
from datamill.services.engines.protocol import Dataset
from datamill.services.minhash.index import MinHashIndex, load_index, save_index
from datamill.services.minhash.settings import SketchSettings, detection_probability, suggest_banding
from datamill.services.records import ID, Fate

DRIVER_PAIRS = 10_000_000
"""Candidate pairs up to which the driver clusters (17 bytes each); above, every join is a shuffle (`clustering`)."""

EMPTY = "empty_text"
NEAR = "near_duplicate"
_BOUNDS: dict[str, Any] = {"exclusiveMinimum": 0, "maximum": 1}


class MinHashParams(Params):
    """Parameters of `dedup.minhash`."""

    column: str = Field("text", description="text column that is compared")
    threshold: Annotated[float, Field(json_schema_extra=_BOUNDS)] = Field(
        0.8, description="Jaccard similarity of shingle sets from which two rows are duplicates, above 0 to 1"
    )
    ngram: int = Field(5, ge=1, le=64, description="tokens per shingle")
    unit: Literal["auto", "words", "chars"] = Field(
        "auto", description="what is counted: words, characters, or per text whichever its script asks for"
    )
    bands: int = Field(14, ge=1, le=4096, description="bands of the locality-sensitive hash")
    rows: int = Field(
        8, ge=1, le=4096, description="permutations per band; two fewer are asked of candidates to verify"
    )
    seed: int = Field(1, ge=0, description="seed of the permutations; an index only matches its own seed")
    verify: Literal["jaccard", "none"] = Field(
        "jaccard", description="compare the shingle sets of every candidate pair, or trust the bands"
    )
    keep: str = Field(
        "first", pattern=KEEP_PATTERN, description="row that stays: first, longest, or best:<number column>"
    )
    action: Literal["keep_one", "drop_all"] = Field(
        "keep_one", description="keep one row of each cluster, or none of a cluster of two and more"
    )
    against: str | None = Field(
        None, description="older set: name of another input, or folder of a saved index (with a slash: ./index)"
    )
    save_index: str | None = Field(None, description="folder to save an index of the remaining rows in")
    backend: Literal["fused", "datasketch"] = Field("fused", description="compiled kernel, or datasketch (slow)")
    on_empty: Literal["keep", "drop"] = Field("keep", description="blank texts: kept with a remark, or dropped")
    on_null: OnNull = Field("keep", description="null texts: kept, dropped, or refused")

    @model_validator(mode="after")
    def _one_purpose(self) -> "MinHashParams":
        if self.against is not None and self.action == "drop_all":
            raise ValueError("action: drop_all makes no sense with against: rows of the older set are never removed")
        return self

    def settings(self) -> SketchSettings:
        """The part of the parameters that a sketch depends on."""
        return SketchSettings(self.unit, self.ngram, self.bands, self.rows, self.seed, self.verify, self.backend)


def preview(texts: Sequence[str | None], params: MinHashParams, limit: int = 5) -> tuple[SimilarPair, ...]:
    """The most similar pairs of a sample of texts and whether `params` would remove one of each."""
    return similar_pairs(texts, params.settings(), params.threshold, limit)


def curve_note(params: MinHashParams) -> str:
    """The S-curve at the threshold in one sentence, for the plan."""
    plain = detection_probability(params.threshold, params.bands, params.rows)
    text = (
        f"bands={params.bands} rows={params.rows}: P(detect) = 1-(1-s^r)^b = {_two_digits(plain)} "
        f"at similarity {params.threshold:g}"
    )
    if params.verify == "none":
        return text
    rows = params.settings().key_rows
    wide = detection_probability(params.threshold, params.bands, rows)
    return f"{text} ({_two_digits(wide)} with the {rows} rows asked of candidates that are verified)"


def _two_digits(value: float) -> str:
    if not 0 < value < 0.01:
        return f"{value:.2f}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def _likely(threshold: float) -> float:
    """The value probably meant: 8 and 80 mean 0.8."""
    for divisor in (10, 100):
        if threshold > 1 and threshold / divisor <= 1:
            return round(threshold / divisor, 6)
    return 0.8


def _check(params: MinHashParams) -> Sequence[tuple[str, str, str]]:
    if not 0 < params.threshold <= 1:
        message = (
            f"threshold {params.threshold:g} is no Jaccard similarity (above 0, up to 1); "
            f"did you mean {_likely(params.threshold):g}?"
        )
        return [("error", "threshold", message)]
    found = [("note", "bands", curve_note(params))]
    settings = params.settings()
    if detection_probability(params.threshold, params.bands, settings.key_rows) < 0.5:
        bands, rows = suggest_banding(params.threshold, params.bands * params.rows)
        swapped = detection_probability(params.threshold, params.rows, params.bands)
        hint = " bands and rows may have been swapped;" if swapped >= 0.5 else ""
        message = (
            f"most pairs at the threshold will be missed:{hint} try bands={bands} rows={rows}. {curve_note(params)}"
        )
        found.append(("warning", "bands", message))
    if params.against is not None and params.save_index == params.against:
        found.append(("error", "save_index", "an index cannot be read and replaced by one step; name another folder"))
    if params.save_index is not None and not _inside_project(params.save_index):
        found.append(
            ("error", "save_index", "an index is written inside the project; give a relative path without `..`")
        )
    if params.against is not None and params.keep != "first":
        found.append(("warning", "keep", "keep has no effect with against: every matched new row leaves"))
    return found


def _inside_project(folder: str) -> bool:
    path = Path(folder)
    return not path.is_absolute() and ".." not in path.parts and path != Path()


def _reads(params: MinHashParams) -> Sequence[Need]:
    best = best_column(params.keep)
    needs = [text_need(params.column, params.on_null, "params.column")]
    return [*needs, Need(best, dtypes=("int*", "double", "float*"), field="params.keep")] if best else needs


def _writes(_params: MinHashParams, schema: Schema) -> Schema:
    return {
        **schema,
        "cluster_id": ColumnType("string", nullable=False, semantic="label"),
        "cluster_size": ColumnType("int64", nullable=False, semantic="number"),
    }


@operator(
    "dedup.minhash",
    "Remove near-duplicate texts, keeping one row of each cluster.",
    effect=Effect.GLOBAL,
    params=MinHashParams,
    reads=_reads,
    writes=_writes,
    check=_check,
    files=lambda p: (p.against,) if p.against and is_path(p.against) else (),
    side_inputs=lambda p: (p.against,) if p.against and not is_path(p.against) else (),
    reference="Broder 1997; FineWeb (Penedo et al. 2024)",
    keywords=(
        "near-duplicate", "near duplicates", "fuzzy dedup", "minhash", "lsh", "deduplicate", "similar rows",
        "近似去重", "去重", "模糊去重", "duplicados", "quasi-doublons", "nahezu doppelt",
    ),
    reasons=(NEAR, f"{NEAR}_group", REASON, EMPTY, "null_<column>"),
)  # fmt: skip
def run(datasets: Sequence[Dataset], params: MinHashParams, ctx: Context) -> Dataset:
    """Decide for every row whether it stays.

    Returns:
        `_id`, the fate columns and `cluster_id`, `cluster_size` for every row. A removed row is `merged` into the
        representative (`into`), with the Jaccard similarity as `value` (null when not verified).

    Raises:
        DatamillError: `DM-DEDUP-001` threshold out of range, `DM-DEDUP-002` to `004` index, `DM-DEDUP-005` ids that
            repeat, `DM-DEDUP-006` unknown `against`, `DM-DEDUP-007` a null under `on_null: error`.
    """
    data = datasets[0]
    errors = [finding for finding in _check(params) if finding[0] == "error"]
    if errors:
        _, field, message = errors[0]
        raise DatamillError("DM-DEDUP-001", message, exit_code=ExitCode.INVALID, step=ctx.step, field=f"params.{field}")
    older = _older_index(data, params, ctx)
    if older is not None:
        return _applied(data, _against(data, older, params), older, params, ctx)
    found = candidates(data, params.column, params.settings())
    if found.num_rows > DRIVER_PAIRS:
        return _without_driver(data, found, params, ctx)
    return _applied(data, _within(data, found, params), None, params, ctx)


def _applied(
    data: Dataset, decided: pa.Table, older: MinHashIndex | None, params: MinHashParams, ctx: Context
) -> Dataset:
    """Decisions about all rows, those about rows with a duplicate being at hand."""
    if params.save_index is not None:
        _save(data, decided, older, params, ctx.project / params.save_index)
    return data.map_tables(partial(decision_table, decided=decided, params=params), columns=[ID, params.column])


def _without_driver(data: Dataset, found: Dataset, params: MinHashParams, ctx: Context) -> Dataset:
    """The same decisions with every join a shuffle; an index to save is still put together on the driver."""
    settings, best = params.settings(), best_column(params.keep)
    edges = verified_pairs(data, params.column, distinct_pairs(found), settings, params.threshold)
    decided = decided_rows(data, edges, params.keep, params.column, best, params.threshold, params.action, NEAR).keep()
    if params.save_index is not None:
        _save(data, decided.collect(), None, params, ctx.project / params.save_index)
    alone = data.map_tables(partial(decision_table, decided=no_decisions(), params=params), columns=[ID, params.column])
    return alone.union(decided.map_tables(as_decided)).shuffle(ID, one_decision)


def decision_table(table: pa.Table, *, decided: pa.Table, params: MinHashParams) -> pa.Table:
    """Decisions about all rows of one partition, given those about rows with a duplicate."""
    from datamill.services.minhash.sketch import blank_mask

    null = table[params.column].is_null()
    if params.on_null == "error" and pc.any(null).as_py():
        raise DatamillError(
            "DM-DEDUP-007", f"column `{params.column}` is null in a row", field="params.on_null",
            fix="set on_null: keep or drop",
        )  # fmt: skip
    blank = pl.Series(blank_mask(table[params.column]))
    missing = pl.Series(null.to_pylist(), dtype=pl.Boolean)
    rows = pl.DataFrame({ID: pl.from_arrow(table[ID])})
    empty_fate = Fate.DROPPED if params.on_empty == "drop" else Fate.NOTED
    null_fate = pl.lit(str(Fate.DROPPED)) if params.on_null == "drop" else pl.lit(None, pl.String)
    rows = rows.with_columns(
        fate=pl.when(blank).then(pl.lit(str(empty_fate))).when(missing).then(null_fate),
        reason=pl.when(blank).then(pl.lit(EMPTY)).when(missing & null_fate.is_not_null()).then(
            pl.lit(f"null_{params.column}")
        ),
    )  # fmt: skip
    return with_decisions(rows, decided)


def _within(data: Dataset, found: Dataset, params: MinHashParams) -> pa.Table:
    edges = pairs_on_the_driver(data, params.column, params.settings(), params.threshold, found)
    if edges.is_empty():
        return no_decisions()
    members = member_table(data, edges, params.keep, params.column, best_column(params.keep))
    return cluster_decisions(members, edges, threshold=params.threshold, action=params.action, reason=NEAR)


def _older_index(data: Dataset, params: MinHashParams, ctx: Context) -> MinHashIndex | None:
    if params.against is None:
        return None
    source = open_source(params.against, ctx.inputs, ctx.project)
    if isinstance(source, Path):
        return load_index(source, params.settings())
    return index_of_dataset(source, data, params.column, params.settings())


def _against(data: Dataset, older: MinHashIndex, params: MinHashParams) -> pa.Table:
    return older_decisions(data, older, params.column, params.settings(), params.threshold)


def _save(data: Dataset, decided: pa.Table, older: MinHashIndex | None, params: MinHashParams, folder: Path) -> None:
    """Index what remains; after a run against a saved index, that index and the new rows that stay."""
    gone = decided.filter(pc.is_valid(decided["fate"])).select([ID])
    settings = params.settings()
    index = index_dataset(data.anti_join(gone, ID), params.column, settings, sets=settings.verify == "jaccard")
    if older is not None and is_path(params.against or ""):
        index = older.joined(index)
    save_index(index, folder)
