"""`sample.random`: a simple random sample without replacement, by keyed hash of seed and row id.

The same rows for every engine, partitioning and order of the input; a larger `n` under the same seed only adds rows.
Asking for more rows than there are gives all of them, with a remark. Cost: two passes over `_id`, 8 bytes a row.
"""

from collections.abc import Sequence
from functools import partial
from typing import Self

import numpy as np
import polars as pl
import pyarrow as pa
from pydantic import Field, model_validator

from datamill.operators.declaration import Context, Effect, Params, operator
from datamill.operators.outcomes import decisions
from datamill.operators.sample.keyed import Keys, at_or_below, keyed_hashes, smallest
from datamill.services.engines.protocol import Dataset
from datamill.services.records import ID, Fate

PURPOSE = "sample.random"


class RandomParams(Params):
    """Parameters of `sample.random`: exactly one of `n` and `fraction`."""

    n: int | None = Field(None, ge=0, description="rows to take")
    fraction: float | None = Field(
        None, ge=0, le=1, description="share of the rows to take, rounded to the nearest row"
    )
    seed: int | None = Field(None, description="seed of the draw; the step's seed when unset")

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if (self.n is None) == (self.fraction is None):
            raise ValueError("give exactly one of `n` and `fraction`")
        return self


def rows_wanted(available: int, n: int | None, fraction: float | None) -> int:
    """Rows to take out of `available`; a fraction is rounded half up."""
    return n if n is not None else int((fraction or 0.0) * available + 0.5)


@operator(
    "sample.random",
    "Takes a random sample of the rows, without replacement.",
    effect=Effect.GLOBAL,
    params=RandomParams,
    keywords=(
        "sample", "random sample", "random rows", "subset", "subsample", "downsample", "pick rows", "take rows",
        "采样", "抽样", "随机", "随机抽取", "抽取", "amostra", "amostragem", "aleatória",
        "muestra", "aleatoria", "muestreo",
    ),
    reasons=("not_sampled", "fewer_than_asked"),
)  # fmt: skip
def sample_random(datasets: Sequence[Dataset], params: RandomParams, ctx: Context) -> Dataset:
    """Find the key of the last row taken, then decide every row against it."""
    seed = ctx.seed if params.seed is None else params.seed
    keys = _all_keys(datasets[0], seed)
    wanted = rows_wanted(len(keys), params.n, params.fraction)
    first = int(keys.min()) if wanted > len(keys) > 0 else None
    decide = partial(_decide, seed=seed, bound=smallest(keys, wanted), note=first, asked=wanted, available=len(keys))
    return datasets[0].map_tables(decide, columns=[ID])


def _all_keys(dataset: Dataset, seed: int) -> Keys:
    keys = dataset.map_tables(partial(_keys, seed=seed), columns=[ID]).collect()["key"]
    return np.asarray(keys.combine_chunks().to_numpy(zero_copy_only=False), dtype=np.uint64)


def _keys(table: pa.Table, seed: int) -> pa.Table:
    return pa.table({"key": pa.array(keyed_hashes(table[ID], seed, PURPOSE), pa.uint64())})


def _decide(table: pa.Table, *, seed: int, bound: int, note: int | None, asked: int, available: int) -> pa.Table:
    keys = keyed_hashes(table[ID], seed, PURPOSE)
    taken = pl.Series(at_or_below(keys, bound), dtype=pl.Boolean)
    noted = pl.Series(keys == np.uint64(note or 0), dtype=pl.Boolean) & (note is not None)
    return selection(table[ID], taken, reason="not_sampled", noted=noted, asked=asked, available=available)


def selection(
    ids: pa.ChunkedArray, taken: pl.Series, *, reason: str, noted: pl.Series, asked: int, available: int
) -> pa.Table:
    """Decisions of a draw: rows not taken are `not_selected`, one row carries the remark that too few were there."""
    frame = pl.DataFrame({"taken": taken, "noted": noted}).select(
        fate=pl.when(~pl.col("taken")).then(pl.lit(Fate.NOT_SELECTED.value))
        .when("noted").then(pl.lit(Fate.NOTED.value)),
        reason=pl.when(~pl.col("taken")).then(pl.lit(reason)).when("noted").then(pl.lit("fewer_than_asked")),
        value=pl.when("noted").then(pl.lit(float(available))),
        threshold=pl.when("noted").then(pl.lit(float(asked))),
    )  # fmt: skip
    columns = {name: frame[name] for name in frame.columns}
    return decisions(ids, **columns)
