"""`split`: mark every row as train, validation or test, without tearing groups apart.

Rows that share a value of `group_by` (duplicate clusters, by default, when the data has `cluster_id`) go to one side,
so nothing leaks from training into evaluation. Groups of several rows are placed first, in the order of their keys,
each on the side that is most behind its share; single rows then fill up the sides exactly. With `stratify_by` this is
done within every stratum, whose sizes are rounded each by itself. The result is a function of seed, ids and groups.
Cost: two passes over `_id` and the columns named; about 40 bytes a row on the driver. No row leaves.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import polars as pl
import pyarrow as pa
from pydantic import Field, field_validator, model_validator

from datamill.operators.declaration import ColumnType, Context, Effect, Need, Params, Schema, operator
from datamill.operators.outcomes import decisions, with_column
from datamill.operators.parameters import Columns, with_columns
from datamill.operators.sample.allocation import allocate, largest_remainder
from datamill.operators.sample.keyed import keyed_hashes, smallest
from datamill.operators.sample.shares import normalized_shares
from datamill.operators.sample.strata import group_needs, labels
from datamill.services.engines.protocol import Dataset
from datamill.services.records import ID, ORD

PURPOSE = "split"
AUTO_GROUP = "cluster_id"


class SplitParams(Params):
    """Parameters of `split`."""

    ratios: tuple[float, ...] = Field(
        min_length=2, max_length=3, description="shares of train (, validation) and test; they sum to 1 or 100"
    )
    names: tuple[str, ...] | None = Field(
        None, description="names of the sides; train, val with two ratios and train, val, test with three"
    )
    group_by: str | None = Field(
        "auto", description="column whose equal values stay on one side; auto is cluster_id if there is one"
    )
    stratify_by: Columns | None = Field(None, description="columns whose values are spread evenly over the sides")
    column: str = Field("split", description="output: name of the side")
    seed: int | None = Field(None, description="seed of the draw; the step's seed when unset")

    _shares = field_validator("ratios")(normalized_shares)

    @model_validator(mode="after")
    def _valid(self) -> Self:
        if self.names is not None and (len(self.names) != len(self.ratios) or len(set(self.names)) < len(self.names)):
            raise ValueError("give one distinct name a ratio")
        return self

    @property
    def sides(self) -> tuple[str, ...]:
        """Names of the sides in the order of the ratios."""
        return self.names or ("train", "val", "test")[: len(self.ratios)]


def _reads(params: SplitParams) -> list[Need]:
    group = (params.group_by,) if params.group_by not in {None, "auto"} else ()
    return [
        *group_needs([name for name in group if name], "params.group_by"),
        *group_needs(params.stratify_by or (), "params.stratify_by"),
    ]


def _writes(params: SplitParams, schema: Schema) -> Schema:
    return with_columns(schema, **{params.column: ColumnType("string", nullable=False, semantic="label")})


@dataclass(frozen=True, slots=True)
class Assignment:
    """Where rows go: whole groups by key, single rows by the bounds of their stratum."""

    groups: Mapping[int, int]
    bounds: Mapping[str, tuple[int, ...]]


@operator(
    "split",
    "Marks rows as train, validation or test; duplicate clusters stay on one side.",
    effect=Effect.GLOBAL,
    params=SplitParams,
    reads=_reads,
    writes=_writes,
    keywords=(
        "split", "train test split", "train/val/test", "validation set", "hold out", "holdout", "90/10",
        "80/10/10",
        "划分", "切分", "训练集", "验证集", "测试集", "拆分", "dividir", "separar treino", "treino e teste",
        "validação",
        "partir", "entrenamiento y prueba", "validación", "conjunto de prueba",
    ),
)  # fmt: skip
def split(datasets: Sequence[Dataset], params: SplitParams, ctx: Context) -> Dataset:
    """Assign groups and bounds from one pass, then mark every row in a second."""
    seed = ctx.seed if params.seed is None else params.seed
    group = params.group_by
    if group == "auto":
        group = AUTO_GROUP if AUTO_GROUP in datasets[0].schema.names else None
    strata = params.stratify_by or ()
    columns = list(dict.fromkeys([ID, ORD, *([group] if group else []), *strata]))
    units = partial(_units, seed=seed, group=group, strata=strata)
    frame = pl.from_arrow(datasets[0].map_tables(units, columns=columns).collect())
    assert isinstance(frame, pl.DataFrame)
    decide = partial(_decide, units=units, assignment=assign(frame, params.ratios), params=params)
    return datasets[0].map_tables(decide, columns=columns)


def _units(table: pa.Table, *, seed: int, group: str | None, strata: Sequence[str]) -> pa.Table:
    """Key of the unit each row belongs to (its group, or itself), its stratum and its place in the order."""
    names = ["row\0" + name for name in table[ID].to_pylist()]
    if group is not None:
        values = table[group].cast(pa.string()).to_pylist()
        names = [own if value is None else "group\0" + value for own, value in zip(names, values, strict=True)]
    keys = pa.array(keyed_hashes(names, seed, PURPOSE), pa.uint64())
    return pa.table({"key": keys, "stratum": labels(table, strata).to_arrow().cast(pa.string()), "order": table[ORD]})


def assign(rows: pl.DataFrame, ratios: Sequence[float]) -> Assignment:
    """Place every unit.

    Args:
        rows: one row per row with `key` (uint64, equal within a unit), `stratum` and `order`; a unit belongs to the
            stratum of its first row.
        ratios: shares of the sides, summing to 1.
    """
    units = rows.sort("order", "key").group_by("key").agg(pl.col("stratum").first(), size=pl.len()).sort("key")
    groups: dict[int, int] = {}
    bounds: dict[str, tuple[int, ...]] = {}
    for (stratum,), part in units.partition_by("stratum", as_dict=True, maintain_order=True).items():
        left = largest_remainder(ratios, int(part["size"].sum()))
        targets = tuple(left)
        for key, size in part.filter(pl.col("size") > 1).select("key", "size").iter_rows():
            side = _most_behind(left, targets, size)
            left[side] -= size
            groups[key] = side
        bounds[str(stratum)] = _bounds(part.filter(pl.col("size") == 1)["key"], left)
    return Assignment(groups, bounds)


def _most_behind(left: Sequence[int], targets: Sequence[int], size: int) -> int:
    """The side with the largest unfilled share, if possible one that the group fits into."""
    usable = [side for side, target in enumerate(targets) if target > 0]
    fitting = [side for side in usable if left[side] >= size] or usable
    return max(fitting, key=lambda side: (left[side] / targets[side], targets[side], -side))


def _bounds(keys: pl.Series, left: Sequence[int]) -> tuple[int, ...]:
    """Keys up to which single rows go to each side but the last, so that every side gets what it still lacks."""
    room = [max(value, 0) for value in left]
    shares = allocate([float(value) for value in room], len(keys), room)
    values = keys.to_numpy()
    return tuple(smallest(values, sum(shares[: side + 1])) for side in range(len(shares) - 1))


def _decide(table: pa.Table, *, units: Any, assignment: Assignment, params: SplitParams) -> pa.Table:
    rows = pl.from_arrow(units(table))
    assert isinstance(rows, pl.DataFrame)
    side = np.zeros(len(rows), dtype=np.int64)
    keys = rows["key"].to_numpy()
    for stratum in rows["stratum"].unique().to_list():
        here = (rows["stratum"] == stratum).to_numpy()
        for bound in assignment.bounds.get(stratum, ()):
            side += here & ((keys > np.uint64(bound)) if bound >= 0 else True)
    placed = [assignment.groups.get(key, own) for key, own in zip(keys.tolist(), side.tolist(), strict=True)]
    names = pl.Series([params.sides[index] for index in placed], dtype=pl.String)
    return with_column(decisions(table[ID]), params.column, names, pa.string())
