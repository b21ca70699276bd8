"""Global steps: the operator decides, this module applies the decisions shard by shard.

A decision names a row by `_id` and says whether it leaves (`fate`, `reason`, ...; `noted` is a remark on a row that
stays) and which values its new columns get. Rows without a decision stay, with nulls in new columns. The decisions
are a unit of their own, so a run killed while they are applied does not decide again.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from datamill.errors import DatamillError
from datamill.operators.declaration import ColumnType, Context
from datamill.operators.registry import find
from datamill.services.engines.protocol import Dataset, Outcome, Shard
from datamill.services.engines.shards import read_shard
from datamill.services.records import FATE_SCHEMA, ID
from datamill.services.storage.units import Unit, UnitStore, unit_key
from datamill.workflows.chain import UnitReport, with_source
from datamill.workflows.ledger import LEAVING, balance_books

FATE_COLUMNS = ("fate", "reason", "value", "threshold", "into", "detail")
STATS_KEY = b"datamill.stats"
STATS = "stats"


def decide(
    operator_id: str, params: Mapping[str, Any], data: Sequence[Dataset], context: Context
) -> tuple[pa.Table, dict[str, Any]]:
    """Run a global operator; returns its decisions and, where it made any, statistics as JSON text.

    Raises:
        DatamillError: what the operator raised; `DM-RUN-001` when that was an exception of its own.
    """
    operator = find(operator_id)
    try:
        decided: Dataset = operator.run(data, operator.params.model_validate(dict(params)), context)
        table = decided.collect()  # a cluster may compute only now
    except DatamillError as error:
        error.issues = tuple(replace(issue, step=issue.step or context.step) for issue in error.issues)
        raise
    except OSError:  # a full disk is no fault of the operator
        raise
    except Exception as error:
        place = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
        message = f"{operator_id} raised {type(error).__name__}: {str(error)[:300]}{place}"
        raise DatamillError("DM-RUN-001", message, step=context.step) from error
    text = (table.schema.metadata or decided.schema.metadata or {}).get(STATS_KEY)
    return table.replace_schema_metadata(None), {STATS: text.decode()} if text else {}


def apply_decisions(rows: pa.Table, decisions: pa.Table, added: Sequence[str]) -> Outcome:
    """Rows that stay (with their new columns) and fates of those that leave.

    Args:
        rows: one shard.
        decisions: table with `_id`, the columns of `FATE_COLUMNS` and new columns.
        added: names of the new columns.
    """
    if not decisions.num_rows and not added:
        return Outcome(rows)
    frame = pl.from_arrow(rows.select([ID]))
    table = pl.from_arrow(decisions)
    assert isinstance(frame, pl.DataFrame)
    assert isinstance(table, pl.DataFrame)
    joined = frame.join(table, on=ID, how="left", maintain_order="left")
    if "fate" not in joined.columns:
        joined = joined.with_columns(fate=pl.lit(None, pl.String))
    remarked = joined.filter(pl.col("fate").is_not_null())
    leaving = joined.get_column("fate").is_in(list(LEAVING)).fill_null(value=False)
    fate_table = pa.table(
        {
            field.name: remarked.get_column(ID if field.name == "id" else field.name).to_arrow().cast(field.type)
            if field.name == "id" or field.name in remarked.columns
            else pa.nulls(remarked.height, field.type)
            for field in FATE_SCHEMA
        },
        schema=FATE_SCHEMA,
    )
    kept = rows.filter((~leaving).to_arrow())
    staying = joined.filter(~leaving)
    for name in added:
        column = staying.get_column(name).to_arrow().cast(decisions.schema.field(name).type)
        kept = set_column(kept, name, column)
    return Outcome(kept, fate_table)


def set_column(table: pa.Table, name: str, column: pa.Array) -> pa.Table:
    """Add or replace a column, keeping the position of one that is there."""
    if name in table.column_names:
        return table.set_column(table.column_names.index(name), name, column)
    return table.append_column(name, column)


@dataclass(frozen=True)
class DecisionTask:
    """Applies committed decisions to shards; run by workers."""

    store: UnitStore
    step: str
    key: str
    decisions: Path
    added: tuple[str, ...]
    reuse: bool = True

    def __call__(self, item: tuple[int, Shard]) -> list[UnitReport]:
        """The unit of one shard."""
        number, shard = item
        key = unit_key(self.key, shard.digest, str(number))
        unit = self.store.load(key) if self.reuse else None
        if unit is not None:
            return [UnitReport(self.step, number, unit, reused=True)]
        started = time.perf_counter()
        before = read_shard(shard.path)
        outcome = apply_decisions(before, _committed(self.decisions).about(before[ID]), self.added)
        books = balance_books(self.step, before, outcome.rows, outcome.fates)
        fate_rows = with_source(outcome.fates, before)
        unit = self.store.commit(key, outcome.rows, fate_rows, books.flat(), time.perf_counter() - started)
        return [UnitReport(self.step, number, unit, reused=False)]


class DecisionIndex:
    """Decisions found by id, so that a shard costs what it holds and not what the whole step decided.

    Cost: 16 bytes a decision besides the table; a lookup is a binary search per row.
    """

    def __init__(self, decisions: pa.Table) -> None:
        self.decisions = decisions
        hashes = _id_hashes(decisions[ID]) if decisions.num_rows else np.empty(0, np.uint64)
        self._order = np.argsort(hashes, kind="stable")
        self._hashes = hashes[self._order]

    def about(self, ids: pa.ChunkedArray) -> pa.Table:
        """Decisions about the rows `ids`, and perhaps about a row whose id has the hash of one of theirs."""
        wanted = np.unique(_id_hashes(ids)) if len(ids) else np.empty(0, np.uint64)
        low = np.searchsorted(self._hashes, wanted, "left")
        high = np.searchsorted(self._hashes, wanted, "right")
        sizes = high - low
        starts = np.repeat(low - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes) if len(sizes) else low
        found = self._order[starts + np.arange(int(sizes.sum()))]
        return self.decisions.take(pa.array(np.sort(found), pa.int64()))


def _id_hashes(ids: pa.ChunkedArray) -> npt.NDArray[np.uint64]:
    return np.asarray(pl.Series(ids.cast(pa.string())).hash(seed=0).to_numpy(), dtype=np.uint64)


@lru_cache(maxsize=1)
def _committed(path: Path) -> DecisionIndex:
    """Decisions of a step, read once per process and not once per shard; a committed unit never changes."""
    return DecisionIndex(read_shard(path))


def added_columns(
    decisions: pa.Table, schema_before: Mapping[str, ColumnType], schema_after: Mapping[str, ColumnType]
) -> tuple[str, ...]:
    """Columns of the plan's schema that the decisions bring; one that is there already is written anew."""
    decided = {ID, *FATE_COLUMNS}
    return tuple(
        name
        for name in decisions.column_names
        if name in schema_after and (name not in schema_before or name not in decided)
    )


def decision_unit(store: UnitStore, key: str, decisions: pa.Table, stats: Mapping[str, Any], seconds: float) -> Unit:
    """Commit decisions as a unit of their own."""
    return store.commit(key, decisions, FATE_SCHEMA.empty_table(), {"in": 0, "out": 0, "expanded": 0}, seconds, stats)
