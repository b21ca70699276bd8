"""Tables with system columns, and ways to run operators on them, for operator tests."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from datamill.operators.declaration import Context, Operator
from datamill.operators.registry import find
from datamill.services.engines.protocol import Outcome
from datamill.services.engines.tables import TableDataset
from datamill.services.records import ID, ORD, SRC, row_id

LEAVING = {"dropped", "not_selected", "quarantined", "merged", "failed"}


def table(types: dict[str, pa.DataType] | None = None, /, **columns: Sequence[Any]) -> pa.Table:
    """Rows with stable ids `row_id("test", i)`; `types` states column types that values do not give away."""
    length = len(next(iter(columns.values())))
    system = {
        ID: pa.array([row_id("test", i) for i in range(length)], pa.string()),
        ORD: pa.array(range(length), pa.int64()),
        SRC: pa.array([f"test:{i + 1}" for i in range(length)], pa.string()),
    }
    kinds = types or {}
    return pa.table({**system, **{name: pa.array(values, kinds.get(name)) for name, values in columns.items()}})


def texts(*values: str | None) -> pa.Table:
    """Rows with one string column `text`."""
    return table({"text": pa.string()}, text=values)


def ids(rows: pa.Table) -> list[int]:
    """Positions in the original table of the rows of `table`."""
    return rows[ORD].to_pylist()


def apply(operator_id: str, rows: pa.Table, context: Context | None = None, **params: Any) -> Outcome:
    """Run a batch operator as the runner does: parameters validated, resources prepared."""
    operator: Operator[Any] = find(operator_id)
    outcome = operator.run(rows, operator.params.model_validate(params), context or Context("step", seed=7))
    assert isinstance(outcome, Outcome)
    return outcome


def decide(operator_id: str, rows: pa.Table, partitions: int = 1, step_seed: int = 7, **params: Any) -> pa.Table:
    """Decisions of a global operator over `partitions` partitions, sorted by id."""
    operator: Operator[Any] = find(operator_id)
    data = TableDataset.of(rows, partitions)
    decided = operator.run([data], operator.params.model_validate(params), Context("step", seed=step_seed))
    return decided.collect().sort_by(ID)


def kept(decisions: pa.Table) -> set[str]:
    """Ids that stay."""
    return {row[ID] for row in decisions.to_pylist() if row["fate"] not in LEAVING}


def reasons(outcome: Outcome) -> dict[int, str]:
    """Line (0-based) of every row with a leaving fate to its reason."""
    found = {}
    for fate in outcome.fates.to_pylist():
        if fate["fate"] in LEAVING:
            found[int(fate["src"].split(":")[1]) - 1] = fate["reason"]
    return found


def books_balance(before: pa.Table, outcome: Outcome) -> bool:
    """Whether every row is either among the rows or among the leaving fates, once."""
    left = [fate["id"] for fate in outcome.fates.to_pylist() if fate["fate"] in LEAVING]
    return sorted([*outcome.rows[ID].to_pylist(), *left]) == sorted(before[ID].to_pylist())
