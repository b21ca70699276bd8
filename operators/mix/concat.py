"""`mix.concat`: put several branches or inputs together, with the name of the origin in a domain column.

Without weights every row stays. With `weights` (and a total `n`, or the largest total that needs no repeats) each
domain gives its share by largest remainders, drawn without replacement by keyed hash of seed and row id; rows left
over are `not_selected`. A domain that is too small for its share gives all it has (`on_short: cap`, with a remark) or
stops the run (`error`). Types are compared by the compiler before a row is read.

The runner brings the parents into one shape, keeps a row that arrives twice once (from the first parent), and hands
each batch over with its parent's name in `_parent`; how many rows each domain may keep is settled once, by `prepare`.
Cost: with weights one pass over `_id` more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, field_validator, model_validator

from datamill.errors import DatamillError, ExitCode, nearest
from datamill.operators.declaration import ColumnType, Context, Effect, Params, Schema, operator
from datamill.operators.outcomes import fates_of, keep_where, then, with_column
from datamill.operators.parameters import with_columns
from datamill.operators.sample.allocation import largest_remainder
from datamill.operators.sample.keyed import Keys, at_or_below, keyed_hashes, smallest
from datamill.operators.sample.shares import normalized_shares
from datamill.services.engines.protocol import Dataset, Outcome
from datamill.services.records import ID, Fate

PURPOSE = "mix.concat"
PARENT = "_parent"
"""Column in which the runner says which parent a row comes from."""


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
    if params.domain_column in schema:
        raise DatamillError(
            "DM-OPA-043",
            f"a parent already has a column `{params.domain_column}`, which the names of the parents would replace",
            exit_code=ExitCode.INVALID,
            field="params.domain_column",
            fix="choose another `domain_column`, or drop or rename the column before",
        )
    domain = ColumnType("string", nullable=False, semantic="label")
    return with_columns(schema, **{params.domain_column: domain})


@dataclass(frozen=True, slots=True)
class Draw:
    """How rows of one domain are taken.

    Attributes:
        bound: rows whose key is not above it are taken, see `keyed.smallest`.
        asked: rows the weights ask for.
        available: rows there are.
        note: key of the row that carries the remark that too few rows were there.
    """

    bound: int
    asked: int
    available: int
    note: int | None


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
    """The largest total that the scarcest domain can take part in at its share."""
    scarce = (rows / weight for weight, rows in zip(weights, available, strict=True) if weight > 0)
    total = int(min(scarce, default=0.0) + 1e-9)  # 10 / 0.2 has to be 50
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


def prepare(params: ConcatParams, ctx: Context) -> Mapping[str, Draw] | None:
    """Settle how many rows each parent gives; `ctx.inputs` holds the parents by name, in the order of `needs`.

    Raises:
        DatamillError: `DM-OPA-040` wrong names, `DM-OPA-041` a domain is too small and `on_short` is `error`.
    """
    if params.weights is None:
        return None
    seed = ctx.seed if params.seed is None else params.seed
    keys: dict[str, Keys] = {}
    seen = np.empty(0, dtype=np.uint64)
    for name, dataset in ctx.inputs.items():
        found = _all_keys(dataset, seed)
        keys[name] = found[~np.isin(found, seen)]
        seen = np.concatenate([seen, keys[name]])
    sizes = domain_sizes(params, {name: len(values) for name, values in keys.items()})
    return {name: _draw(name, values, sizes[name], params) for name, values in keys.items()}


def _draw(name: str, keys: Keys, asked: int, params: ConcatParams) -> Draw:
    if asked > len(keys) and params.on_short == "error":
        raise DatamillError(
            "DM-OPA-041",
            f"mix.concat: `{name}` has {len(keys)} rows, its share is {asked}",
            field="params.n",
            fix="lower `n`, change the weights, or set `on_short: cap`",
        )
    note = int(keys.min()) if asked > len(keys) > 0 else None
    return Draw(smallest(keys, asked), asked, len(keys), note)


def _all_keys(dataset: Dataset, seed: int) -> Keys:
    keys = dataset.map_tables(partial(_keys, seed=seed), columns=[ID]).collect()["key"]
    return np.asarray(keys.combine_chunks().to_numpy(zero_copy_only=False), dtype=np.uint64)


def _keys(table: pa.Table, *, seed: int) -> pa.Table:
    return pa.table({"key": pa.array(keyed_hashes(table[ID], seed, PURPOSE), pa.uint64())})


@operator(
    "mix.concat",
    "Puts several branches together with a domain column, optionally by weights.",
    effect=Effect.JOIN,
    params=ConcatParams,
    writes=_writes,
    prepare=prepare,
    keywords=(
        "mix", "concat", "concatenate", "combine", "merge datasets", "join datasets", "union", "mixture", "proportions",
        "blend", "together",
        "混合", "合并", "拼接数据", "配比", "misturar", "juntar", "combinar", "proporções", "mezclar", "unir", "mezcla",
    ),
    reasons=("over_share", "fewer_than_asked"),
)  # fmt: skip
def concat(batch: pa.Table, params: ConcatParams, ctx: Context) -> Outcome:
    """Turn `_parent` into the domain column and, with weights, keep the rows drawn by `prepare`."""
    parents = batch[PARENT].cast(pa.string())
    rows = with_column(batch.drop_columns([PARENT]), params.domain_column, parents, pa.string())
    outcome = Outcome(rows)
    seed = ctx.seed if params.seed is None else params.seed
    for name, draw in (ctx.resources or {}).items():
        outcome = then(outcome, partial(_take, name=name, draw=draw, seed=seed, domain=params.domain_column))
    return outcome


def _take(rows: pa.Table, *, name: str, draw: Draw, seed: int, domain: str) -> Outcome:
    keys = keyed_hashes(rows[ID], seed, PURPOSE)
    here = np.asarray(pc.equal(rows[domain], name).to_numpy(zero_copy_only=False), dtype=np.bool_)
    taken = pa.array(at_or_below(keys, draw.bound) | ~here)
    outcome = keep_where(rows, taken, reason="over_share", detail=name, fate=Fate.NOT_SELECTED)
    if draw.note is None:
        return outcome
    note = fates_of(
        rows, pa.array(here & (keys == np.uint64(draw.note))), reason="fewer_than_asked", detail=name,
        value=float(draw.available), threshold=float(draw.asked), fate=Fate.NOTED,
    )  # fmt: skip
    return Outcome(outcome.rows, pa.concat_tables([outcome.fates, note]))
