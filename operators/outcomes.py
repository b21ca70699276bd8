"""Building blocks of batch operators: from masks and measurements to an `Outcome` whose books balance.

Everything here is vectorised over Arrow arrays and costs one pass over the columns it names. Masks follow one rule:
a null in a mask means "this test says nothing about the row", so the row stays.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from datamill.errors import DatamillError
from datamill.operators.declaration import OnNull
from datamill.services.engines.protocol import Outcome
from datamill.services.records import FATE_SCHEMA, ID, SRC, Fate

Values: TypeAlias = pa.Array | pa.ChunkedArray | pl.Series | Sequence[object] | str | float | None
"""One value for all rows, or an array with one value per row of the batch."""

NULL_REASON = "null_"
"""Prefix of the reason given when a row leaves because a column it needs is null: `null_<column>`."""


def keep_where(
    batch: pa.Table,
    mask: pa.Array | pa.ChunkedArray | pl.Series | Sequence[bool | None],
    *,
    reason: Values,
    value: Values = None,
    threshold: Values = None,
    detail: Values = None,
    fate: Fate = Fate.DROPPED,
) -> Outcome:
    """Keep the rows whose `mask` is true or null; every other row leaves with a fate.

    Args:
        batch: rows with system columns.
        mask: one boolean per row.
        reason: slug for all rows, or one slug per row (only the entries of leaving rows are read).
        value: measured number, for all rows or per row.
        threshold: bound the number was held against, for all rows or per row.
        detail: text for people, for all rows or per row.
        fate: what became of the leaving rows.

    Returns:
        Surviving rows in their order, and one fate per other row.
    """
    keep = pc.fill_null(_array(mask, pa.bool_(), batch.num_rows), fill_value=True)
    if pc.all(keep).as_py() is not False:
        return Outcome(batch)
    leaving = pc.invert(keep)
    left = fates_of(batch, leaving, reason=reason, value=value, threshold=threshold, detail=detail, fate=fate)
    return Outcome(batch.filter(keep), left)


def keep_within(
    batch: pa.Table,
    value: pl.Series,
    low: float | None,
    high: float | None,
    *,
    reasons: tuple[str, str],
    detail: Values = None,
) -> Outcome:
    """Keep the rows with `low <= value <= high`; a null value says nothing, so its row stays.

    Args:
        batch: rows with system columns.
        value: measured number per row.
        low: smallest value kept; None is no bound.
        high: largest value kept; None is no bound.
        reasons: slugs of values below and above the bounds.
        detail: text for people.
    """
    below = value < low if low is not None else pl.repeat(None, len(value), dtype=pl.Boolean, eager=True)
    above = value > high if high is not None else pl.repeat(None, len(value), dtype=pl.Boolean, eager=True)
    low_side = below.fill_null(value=False)
    choice = pl.DataFrame({"low": low_side}).select(
        reason=pl.when("low").then(pl.lit(reasons[0])).otherwise(pl.lit(reasons[1])),
        threshold=pl.when("low").then(pl.lit(low, pl.Float64)).otherwise(pl.lit(high, pl.Float64)),
    )
    leaving = low_side | above.fill_null(value=False)
    return keep_where(
        batch, ~leaving, reason=choice["reason"], value=value, threshold=choice["threshold"], detail=detail
    )


def fates_of(
    batch: pa.Table,
    mask: pa.Array | pa.ChunkedArray | pl.Series | Sequence[bool | None],
    *,
    reason: Values,
    value: Values = None,
    threshold: Values = None,
    detail: Values = None,
    into: Values = None,
    fate: Fate = Fate.DROPPED,
) -> pa.Table:
    """Fates in `FATE_SCHEMA` for the rows whose `mask` is true; arguments as in `keep_where`.

    Use it with `Fate.NOTED` for remarks on rows that stay.
    """
    rows = batch.num_rows
    columns = {
        "id": batch[ID],
        "fate": _array(str(fate), pa.string(), rows),
        "reason": _array(reason, pa.string(), rows),
        "value": _array(value, pa.float64(), rows),
        "threshold": _array(threshold, pa.float64(), rows),
        "into": _array(into, pa.string(), rows),
        "detail": _array(detail, pa.string(), rows),
        "src": batch[SRC] if SRC in batch.column_names else pa.nulls(rows, pa.string()),
        "offset": pa.nulls(rows, pa.int64()),
    }
    chosen = pc.fill_null(_array(mask, pa.bool_(), rows), fill_value=False)
    return pa.table(columns).filter(chosen).cast(FATE_SCHEMA)


def without_nulls(batch: pa.Table, columns: Sequence[str], on_null: OnNull) -> Outcome:
    """Apply a null policy to `columns`.

    Returns:
        With `drop`, the rows without a null in any of the columns (the others leave with reason `null_<column>`,
        the first null column wins). With `keep`, the batch as it is.

    Raises:
        DatamillError: `DM-OPA-001` with `error`, naming the first row that has a null.
    """
    outcome = Outcome(batch)
    if on_null == "keep":
        return outcome
    for column in columns:
        valid = pc.is_valid(outcome.rows[column])
        if on_null == "error" and pc.all(valid).as_py() is False:
            _refuse_null(outcome.rows.filter(pc.invert(valid)), column)
        step = keep_where(outcome.rows, valid, reason=NULL_REASON + column)
        outcome = Outcome(step.rows, pa.concat_tables([outcome.fates, step.fates]))
    return outcome


def then(outcome: Outcome, function: Callable[[pa.Table], Outcome]) -> Outcome:
    """Apply `function` to the rows that are left and keep the fates of both."""
    following = function(outcome.rows)
    return Outcome(following.rows, pa.concat_tables([outcome.fates, following.fates]))


def with_column(batch: pa.Table, name: str, values: Values, dtype: pa.DataType) -> pa.Table:
    """`batch` with column `name` set (in place when it exists, at the end otherwise).

    The type is stated and never inferred, so that an empty partition has the same schema as a full one.
    """
    column = _array(values, dtype, batch.num_rows)
    if name in batch.column_names:
        return batch.set_column(batch.column_names.index(name), pa.field(name, dtype), column)
    return batch.append_column(pa.field(name, dtype), column)


def text_column(batch: pa.Table, name: str) -> pl.Series:
    """Column `name` as a polars string series; an all-null column of no type counts as text."""
    series = pl.from_arrow(batch[name].combine_chunks(), schema={name: pl.String})
    assert isinstance(series, pl.Series)
    return series


def decisions(
    ids: pa.Array | pa.ChunkedArray,
    *,
    fate: Values = None,
    reason: Values = None,
    value: Values = None,
    threshold: Values = None,
    into: Values = None,
    detail: Values = None,
) -> pa.Table:
    """Decisions of a global operator: `_id` and the fate columns; a null `fate` keeps the row.

    Args:
        ids: `_id` of every row decided on.
        fate: a value of `Fate` for each row that leaves, null for the others (`noted` keeps the row with a remark).
        reason: slug, read where `fate` is not null; the remaining columns are as in `FATE_SCHEMA`.
        value: measured number.
        threshold: bound.
        into: `_id` of the surviving row for `merged`.
        detail: text for people.
    """
    rows = len(ids)
    return pa.table(
        {
            ID: ids,
            "fate": _array(fate, pa.string(), rows),
            "reason": _array(reason, pa.string(), rows),
            "value": _array(value, pa.float64(), rows),
            "threshold": _array(threshold, pa.float64(), rows),
            "into": _array(into, pa.string(), rows),
            "detail": _array(detail, pa.string(), rows),
        }
    )


def _array(values: Values, dtype: pa.DataType, length: int) -> pa.Array | pa.ChunkedArray:
    if isinstance(values, pl.Series):
        values = values.to_arrow()
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values.cast(dtype)
    if values is None:
        return pa.nulls(length, dtype)
    if isinstance(values, str | bool | int | float):
        return pa.repeat(pa.scalar(values, dtype), length)
    return pa.array(values, type=dtype)


def _refuse_null(rows: pa.Table, column: str) -> None:
    place = rows[SRC][0].as_py() if SRC in rows.column_names else rows[ID][0].as_py()
    raise DatamillError(
        "DM-OPA-001",
        f"column `{column}` is null in {rows.num_rows} rows of a batch, first at {place}",
        field="params.on_null",
        expected="no null, as `on_null: error` says",
        fix="set `on_null: drop` or `on_null: keep`, or fill the column with columns.map first",
    )
