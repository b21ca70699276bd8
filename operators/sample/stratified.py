"""`sample.stratified`: a random sample whose groups have stated sizes, by keyed hash of seed and row id.

* `n` or `fraction` with `allocation: proportional` keeps the shares of the groups (largest remainders), with `equal`
  gives every group the same number of rows; a group that is too small passes its surplus on to the others.
* `max_per_group` cuts every group to at most that many rows.

Nulls are a group of their own. Cost: two passes over `_id` and the grouping columns; per row a key and a label.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal, Self

import numpy as np
import polars as pl
import pyarrow as pa
from pydantic import Field, model_validator

from datamill.operators.declaration import Context, Effect, Params, operator
from datamill.operators.parameters import Columns
from datamill.operators.sample.allocation import allocate
from datamill.operators.sample.keyed import at_or_below, keyed_hashes, smallest
from datamill.operators.sample.random import rows_wanted, selection
from datamill.operators.sample.strata import group_needs, labels
from datamill.services.engines.protocol import Dataset
from datamill.services.records import ID

PURPOSE = "sample.stratified"


class StratifiedParams(Params):
    """Parameters of `sample.stratified`: exactly one of `n`, `fraction` and `max_per_group`."""

    by: Columns = Field(description="columns whose values make the groups")
    n: int | None = Field(None, ge=0, description="rows to take in all")
    fraction: float | None = Field(None, ge=0, le=1, description="share of the rows to take in all")
    max_per_group: int | None = Field(None, ge=0, description="rows to take of each group at most")
    allocation: Literal["proportional", "equal"] = Field(
        "proportional", description="sizes of the groups in the sample: as in the data, or all the same"
    )
    seed: int | None = Field(None, description="seed of the draw; the step's seed when unset")

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if sum(value is not None for value in (self.n, self.fraction, self.max_per_group)) != 1:
            raise ValueError("give exactly one of `n`, `fraction` and `max_per_group`")
        return self


def group_sizes(params: StratifiedParams, available: Mapping[str, int]) -> dict[str, int]:
    """Rows to take of each group, given the rows there are; groups in order of their labels settle ties."""
    groups = sorted(available)
    if params.max_per_group is not None:
        return {group: min(available[group], params.max_per_group) for group in groups}
    wanted = rows_wanted(sum(available.values()), params.n, params.fraction)
    limits = [available[group] for group in groups]
    weights = [1.0] * len(groups) if params.allocation == "equal" else [float(limit) for limit in limits]
    return dict(zip(groups, allocate(weights, wanted, limits), strict=True))


@operator(
    "sample.stratified",
    "Takes a random sample whose groups are proportional, equal or capped.",
    effect=Effect.GLOBAL,
    params=StratifiedParams,
    reads=lambda params: group_needs(params.by, "params.by"),
    reference="Cochran 1977, Sampling Techniques, chapter 5; Hamilton apportionment",
    keywords=(
        "stratified", "stratify", "balance", "balanced", "per group", "per domain", "per source", "at most per",
        "quota", "sources balanced", "cap per",
        "分层", "分层抽样", "均衡", "平衡", "每类", "每个领域", "estratificada", "balancear",
        "por grupo", "por domínio",
        "estratificado", "equilibrar", "por dominio",
    ),
    reasons=("not_sampled", "fewer_than_asked"),
)  # fmt: skip
def sample_stratified(datasets: Sequence[Dataset], params: StratifiedParams, ctx: Context) -> Dataset:
    """Find the key of the last row taken of each group, then decide every row against its group's."""
    seed = ctx.seed if params.seed is None else params.seed
    columns = [ID, *params.by]
    keyed = datasets[0].map_tables(partial(_keyed, seed=seed, by=params.by), columns=columns).collect()
    frame = pl.from_arrow(keyed)
    assert isinstance(frame, pl.DataFrame)
    keys = {str(name): part["key"].to_numpy() for (name,), part in frame.partition_by("group", as_dict=True).items()}
    sizes = group_sizes(params, {group: len(values) for group, values in keys.items()})
    bounds = {group: smallest(values, sizes[group]) for group, values in keys.items()}
    asked = rows_wanted(len(frame), params.n, params.fraction) if params.max_per_group is None else 0
    note = int(frame["key"].to_numpy().min()) if asked > len(frame) > 0 else None
    decide = partial(_decide, seed=seed, by=params.by, bounds=bounds, note=note, asked=asked, available=len(frame))
    return datasets[0].map_tables(decide, columns=columns)


def _keyed(table: pa.Table, *, seed: int, by: Sequence[str]) -> pa.Table:
    keys = pa.array(keyed_hashes(table[ID], seed, PURPOSE), pa.uint64())
    return pa.table({"group": labels(table, by).to_arrow().cast(pa.string()), "key": keys})


def _decide(
    table: pa.Table, *, seed: int, by: Sequence[str], bounds: Mapping[str, int], note: int | None, asked: int,
    available: int,
) -> pa.Table:  # fmt: skip
    keys = keyed_hashes(table[ID], seed, PURPOSE)
    groups = labels(table, by)
    taken = np.zeros(len(keys), dtype=np.bool_)
    for group in groups.unique().to_list():
        taken |= (groups == group).to_numpy() & at_or_below(keys, bounds[group])
    noted = pl.Series(keys == np.uint64(note or 0), dtype=pl.Boolean) & (note is not None)
    return selection(
        table[ID],
        pl.Series(taken, dtype=pl.Boolean),
        reason="not_sampled",
        noted=noted,
        asked=asked,
        available=available,
    )
