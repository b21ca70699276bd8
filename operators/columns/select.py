"""`columns.select`: keep or drop columns; system columns always stay. Costs nothing: no value is read."""

from typing import Self

import pyarrow as pa
from pydantic import model_validator

from datamill.operators.declaration import Bound, Context, Effect, Need, Params, Schema, operator
from datamill.operators.parameters import Columns
from datamill.services.engines.protocol import Outcome
from datamill.services.records import SYSTEM_COLUMNS


class SelectParams(Params):
    """Parameters of `columns.select`: exactly one of `columns` and `drop`."""

    columns: Columns | None = None
    drop: Columns | None = None

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if (self.columns is None) == (self.drop is None):
            raise ValueError("give exactly one of `columns` (to keep) and `drop`")
        return self


def _reads(params: SelectParams) -> list[Need]:
    if params.columns is not None:
        return [Need(column, field="params.columns") for column in params.columns]
    return [Need(column, field="params.drop") for column in params.drop or ()]


def _kept(params: SelectParams, names: list[str]) -> list[str]:
    if params.columns is not None:
        return [*(name for name in SYSTEM_COLUMNS if name in names), *params.columns]
    return [name for name in names if name in SYSTEM_COLUMNS or name not in (params.drop or ())]


def _writes(params: SelectParams, schema: Schema) -> Schema:
    return {name: schema[name] for name in _kept(params, list(schema)) if name in schema}


@operator(
    "columns.select",
    "Keeps or drops columns.",
    effect=Effect.MAP,
    params=SelectParams,
    bound=Bound.IO,
    reads=_reads,
    writes=_writes,
    keywords=(
        "select columns", "keep columns", "drop columns", "remove column", "only the columns",
        "选择列", "保留列", "删除列", "字段", "selecionar colunas", "manter colunas", "remover colunas",
        "seleccionar columnas", "columnas", "quitar columna",
    ),
)  # fmt: skip
def select(batch: pa.Table, params: SelectParams, _ctx: Context) -> Outcome:
    """Columns in the order of `params.columns`, or in their own order with `drop`."""
    return Outcome(batch.select(_kept(params, batch.column_names)))
