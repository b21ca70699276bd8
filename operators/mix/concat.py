"""`mix.concat`: put several branches or inputs together, with the name of the origin in a domain column.

Without weights every row stays. With `weights` (and a total `n`, or the largest total that needs no repeats) each
domain gives its share by largest remainders, drawn without replacement by keyed hash of seed and row id; rows left
over are `not_selected`. A domain that is too small for its share gives all it has (`on_short: cap`, with a remark) or
stops the run (`error`). Types are compared by the compiler before a row is read. Cost: two passes over `_id`.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal, Self

import numpy as np
import polars as pl
import pyarrow as pa
from pydantic import Field, field_validator, model_validator

from datamill.errors import DatamillError, ExitCode, nearest
from datamill.operators.declaration import ColumnType, Context, Effect, Params, Schema, operator
from datamill.operators.outcomes import with_column
from datamill.operators.parameters import with_columns
from datamill.operators.sample.allocation import largest_remainder
from datamill.operators.sample.keyed import Keys, at_or_below, keyed_hashes, smallest
from datamill.operators.sample.random import selection
from datamill.operators.sample.shares import normalized_shares
from datamill.services.engines.protocol import Dataset
from datamill.services.engines.tables import TableDataset
from datamill.services.records import ID

PURPOSE = "mix.concat"


class ConcatParams(Params):
    """Parameters of `mix.concat`."""

    domain_column: str = Field("domain", description="output: name of the step or input the row came from")
    weights: dict[str, float] | None = Field(
        None, description="share of each parent; exactly the parents' names, summing to 1 or 100"
    )
    n: int | None = Field(None, ge=0, description="rows in all; needs `weights`")
    on_short: Literal["cap", "error"] = Field("cap", description="a domain with fewer rows than its share of `n`")
    seed: int | None = Field(None, description="seed of the draw; the step's seed when unset")

    @field_validator("weights")
    @classmethod
    def _shares(cls, weights: dict[str, float] | None) -> dict[str, float] | None:
        return None if weights is None else dict(zip(weights, normalized_shares([*weights.values()]), strict=True))

    @model_validator(mode="after")
    def _valid(self) -> Self:
        if self.n is not None and self.weights is None:
            raise ValueError("`n` needs `weights`; use sample.random to take n rows of the whole")
        return self


def _writes(params: ConcatParams, schema: Schema) -> Schema:
    domain = ColumnType("string", nullable=False, semantic="label")
    return with_columns(schema, **{params.domain_column: domain})


def domain_sizes(params: ConcatParams, available: Mapping[str, int]) -> dict[str, int]:
    """Rows asked of each parent, in the parents' order; more than available when `n` is too large.

    Raises:
        DatamillError: `DM-OPA-040` when the names of the weights are not exactly those of the parents.
    """
    if params.weights is None:
        return dict(available)
    if set(params.weights) != set(available):
        _refuse_names(params.weights, available)
    weights = [params.weights[name] for name in available]
    total = params.n if params.n is not None else _largest_total(weights, list(available.values()))
    return dict(zip(available, largest_remainder(weights, total), strict=True))


def _largest_total(weights: Sequence[float], available: Sequence[int]) -> int:
    """The largest total whose shares need no repeats."""
    total = min((int(rows / weight) for weight, rows in zip(weights, available, strict=True) if weight > 0), default=0)
    total += len(weights)
    while total and any(s > a for s, a in zip(largest_remainder(weights, total), available, strict=True)):
        total -= 1
    return total


def _refuse_names(weights: Mapping[str, float], available: Mapping[str, int]) -> None:
    wrong = next(iter(sorted(set(weights) - set(available))), None)
    missing = sorted(set(available) - set(weights))
    what = f"`{wrong}` is no parent of this step" if wrong else f"there is no weight for `{missing[0]}`"
    raise DatamillError(
        "DM-OPA-040",
        f"mix.concat: {what}",
        exit_code=ExitCode.INVALID,
        field="params.weights",
        expected=f"weights for exactly {', '.join(f'`{name}`' for name in available)}",
        nearest=nearest(wrong, available) if wrong else None,
    )


@operator(
    "mix.concat",
    "Puts several branches together with a domain column, optionally by weights.",
    effect=Effect.JOIN,
    params=ConcatParams,
    writes=_writes,
    keywords=(
        "mix", "concat", "concatenate", "combine", "merge datasets", "join datasets", "union", "mixture", "proportions",
        "blend", "together",
        "混合", "合并", "拼接数据", "配比", "misturar", "juntar", "combinar", "proporções", "mezclar", "unir", "mezcla",
    ),
    reasons=("over_share", "fewer_than_asked"),
)  # fmt: skip
def concat(datasets: Sequence[Dataset], params: ConcatParams, ctx: Context) -> Dataset:
    """Decide the rows of every parent; their names come, in order, from `ctx.settings["parents"]`.

    Returns:
        Decisions on the rows of all parents with the domain column; one table per partition of each parent.

    Raises:
        DatamillError: `DM-OPA-040` wrong names, `DM-OPA-041` a domain is too small and `on_short` is `error`,
            `DM-OPA-042` one row arrives from two parents.
    """
    seed = ctx.seed if params.seed is None else params.seed
    names = parent_names(datasets, ctx)
    keys = {name: _all_keys(data, seed) for name, data in zip(names, datasets, strict=True)}
    _refuse_repeats(datasets, names)
    sizes = domain_sizes(params, {name: len(values) for name, values in keys.items()})
    tables: list[pa.Table] = []
    for name, dataset in zip(names, datasets, strict=True):
        there, asked = len(keys[name]), sizes[name]
        if asked > there and params.on_short == "error":
            _refuse_short(name, there, asked)
        note = int(keys[name].min()) if asked > there > 0 else None
        decide = partial(
            _decide, name=name, seed=seed, bound=smallest(keys[name], asked), note=note, asked=asked, available=there,
            column=params.domain_column,
        )  # fmt: skip
        tables += dataset.map_tables(decide, columns=[ID]).tables()
    return TableDataset(tuple(tables))


def parent_names(datasets: Sequence[Dataset], ctx: Context) -> tuple[str, ...]:
    """Names of the parents in the order of `needs`."""
    names = tuple(str(name) for name in ctx.settings.get("parents", ()))
    if len(names) != len(datasets):
        raise ValueError(f"{len(datasets)} parents but {len(names)} names: the runner sets settings['parents']")
    return names


def _refuse_repeats(datasets: Sequence[Dataset], names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name, dataset in zip(names, datasets, strict=True):
        ids = set(dataset.collect([ID])[ID].to_pylist())
        if seen & ids:
            raise DatamillError(
                "DM-OPA-042",
                f"{len(seen & ids)} rows arrive both from `{name}` and from a parent before it",
                expected="branches that have no row in common",
                fix="make the conditions of the branches exclude each other",
            )
        seen |= ids


def _refuse_short(name: str, there: int, asked: int) -> None:
    raise DatamillError(
        "DM-OPA-041",
        f"mix.concat: `{name}` has {there} rows, its share is {asked}",
        field="params.n",
        fix="lower `n`, change the weights, or set `on_short: cap`",
    )


def _all_keys(dataset: Dataset, seed: int) -> Keys:
    keys = dataset.map_tables(partial(_keys, seed=seed), columns=[ID]).collect()["key"]
    return np.asarray(keys.combine_chunks().to_numpy(zero_copy_only=False), dtype=np.uint64)


def _keys(table: pa.Table, *, seed: int) -> pa.Table:
    return pa.table({"key": pa.array(keyed_hashes(table[ID], seed, PURPOSE), pa.uint64())})


def _decide(
    table: pa.Table, *, name: str, seed: int, bound: int, note: int | None, asked: int, available: int, column: str
) -> pa.Table:
    keys = keyed_hashes(table[ID], seed, PURPOSE)
    taken = pl.Series(at_or_below(keys, bound), dtype=pl.Boolean)
    noted = pl.Series(keys == np.uint64(note or 0), dtype=pl.Boolean) & (note is not None)
    done = selection(table[ID], taken, reason="over_share", noted=noted, asked=asked, available=available)
    return with_column(done, column, name, pa.string())
