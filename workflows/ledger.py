"""The row ledger: what went in, what came out, and a reason for every difference.

For each step and shard: `in = out - expanded + dropped + not_selected + quarantined + merged + failed`. The check
goes by ids and not only by counts: every id that is gone has exactly one fate, and every id that is new is a child
of a row that was there. A step whose books do not balance fails the run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from datamill.errors import DatamillError
from datamill.services.records import ID, Fate

LEAVING = (Fate.DROPPED, Fate.NOT_SELECTED, Fate.QUARANTINED, Fate.MERGED, Fate.FAILED)


@dataclass(frozen=True)
class Books:
    """Counters of one step (or of one shard of it).

    Attributes:
        rows_in: rows of all parents.
        rows_out: rows that go on.
        expanded: rows that were made here.
        gone: rows that left, by fate.
        reasons: rows that left, by `fate:reason`.
        noted: remarks on rows that stayed, by reason (`failed:...` for failures of rows that stay).
    """

    rows_in: int = 0
    rows_out: int = 0
    expanded: int = 0
    gone: Mapping[str, int] = field(default_factory=dict)
    reasons: Mapping[str, int] = field(default_factory=dict)
    noted: Mapping[str, int] = field(default_factory=dict)

    @property
    def balance(self) -> int:
        """Zero when the books balance."""
        return self.rows_in - self.rows_out + self.expanded - sum(self.gone.values())

    def flat(self) -> dict[str, int]:
        """Counters as one flat mapping, for manifests and events."""
        counts = {"in": self.rows_in, "out": self.rows_out, "expanded": self.expanded}
        counts |= {f"gone.{k}": v for k, v in self.gone.items()}
        counts |= {f"reason.{k}": v for k, v in self.reasons.items()}
        return counts | {f"noted.{k}": v for k, v in self.noted.items()}

    @classmethod
    def from_flat(cls, counts: Mapping[str, int]) -> "Books":
        """Inverse of `flat`."""

        def part(prefix: str) -> dict[str, int]:
            return {k.removeprefix(prefix): v for k, v in counts.items() if k.startswith(prefix)}

        return cls(
            counts["in"], counts["out"], counts["expanded"], part("gone."), part("reason."), part("noted.")
        )  # fmt: skip

    def __add__(self, other: "Books") -> "Books":
        """Counters of two shards together."""
        return Books(
            self.rows_in + other.rows_in,
            self.rows_out + other.rows_out,
            self.expanded + other.expanded,
            _sum(self.gone, other.gone),
            _sum(self.reasons, other.reasons),
            _sum(self.noted, other.noted),
        )


def _sum(left: Mapping[str, int], right: Mapping[str, int]) -> dict[str, int]:
    return {key: left.get(key, 0) + right.get(key, 0) for key in sorted({*left, *right})}


def balance_books(step: str, before: pa.Table, after: pa.Table, fates: pa.Table) -> Books:
    """Books of one shard, checked id by id.

    Args:
        step: step id, for the message.
        before: rows that went in (only `_id` is read).
        after: rows that came out (only `_id` is read).
        fates: fates of the shard.

    Raises:
        DatamillError: `DM-LEDGER-001` with examples when an id has no fate, two fates, or came out of nowhere.
    """
    ids_in, ids_out = before[ID], after[ID]
    gone = before.select([ID]).filter(pc.invert(pc.is_in(ids_in, value_set=_values(ids_out))))[ID]
    fresh = after.select([ID]).filter(pc.invert(pc.is_in(ids_out, value_set=_values(ids_in))))[ID]
    frame = pl.DataFrame({"id": pl.Series(fates["id"]), "fate": pl.Series(fates["fate"])})
    frame = frame.with_columns(reason=pl.Series(fates["reason"]).fill_null("unknown"))
    gone_ids = pl.Series("id", gone.to_pylist(), dtype=pl.String)
    left = frame.filter(pl.col("id").is_in(gone_ids.implode()) & pl.col("fate").is_in(list(LEAVING)))
    made = frame.filter(pl.col("fate") == Fate.EXPANDED)
    problem = _problem(gone_ids, left, fresh, made, after.num_rows - len(_values(ids_out)))
    if problem:
        raise DatamillError("DM-LEDGER-001", f"the books of `{step}` do not balance: {problem}", step=step)
    stayed = frame.filter(~pl.col("id").is_in(gone_ids.implode()) & (pl.col("fate") != Fate.EXPANDED))
    books = Books(
        before.num_rows, after.num_rows, len(fresh), _count(left, "fate"), _count(left, "fate", "reason"),
        _count(stayed, "fate", "reason"),
    )  # fmt: skip
    if books.balance:
        message = f"the books of `{step}` do not balance: off by {books.balance} (an id occurs twice)"
        raise DatamillError("DM-LEDGER-001", message, step=step)
    return books


def _values(column: pa.ChunkedArray) -> pa.Array:
    return pc.unique(column)


def _problem(gone: pl.Series, left: pl.DataFrame, fresh: pa.ChunkedArray, made: pl.DataFrame, doubled: int) -> str:
    if doubled:
        return f"{doubled} ids came out more than once"
    without = gone.filter(~gone.is_in(left["id"].implode()))
    if len(without):
        return f"{len(without)} rows left without a reason, such as {without[0]}"
    if left.height != left["id"].n_unique():
        twice = left.filter(left["id"].is_duplicated())["id"][0]
        return f"row {twice} left with two reasons"
    fresh_ids = pl.Series("id", fresh.to_pylist(), dtype=pl.String)
    unknown = fresh_ids.filter(~fresh_ids.is_in(made["id"].implode()))
    if len(unknown):
        return f"{len(unknown)} rows came out of nowhere, such as {unknown[0]}"
    return ""


def _count(frame: pl.DataFrame, *columns: str) -> dict[str, int]:
    if not frame.height:
        return {}
    grouped = frame.group_by(columns).len().sort(columns)
    return {":".join(str(part) for part in row[:-1]): int(row[-1]) for row in grouped.iter_rows()}


def books_of_source(step: str, rows: pa.Table, fates: pa.Table) -> Books:
    """Books of a reader: records in = rows out + quarantined records."""
    frame = pl.DataFrame({"fate": pl.Series(fates["fate"]), "reason": pl.Series(fates["reason"])})
    bad = frame.filter(pl.col("fate") == Fate.QUARANTINED)
    noted = frame.filter(pl.col("fate") != Fate.QUARANTINED)
    if len(_values(rows[ID])) != rows.num_rows:
        raise DatamillError("DM-LEDGER-001", f"`{step}` read two rows with one id", step=step)
    return Books(
        rows.num_rows + bad.height, rows.num_rows, 0, _count(bad, "fate"), _count(bad, "fate", "reason"),
        _count(noted, "fate", "reason"),
    )  # fmt: skip
