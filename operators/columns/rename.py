"""`columns.rename`: give columns other names; values, order and types stay. Costs nothing: no value is read."""

from typing import Self

import pyarrow as pa
from pydantic import Field, model_validator

from datamill.errors import DatamillError, ExitCode
from datamill.operators.declaration import Bound, Context, Effect, Need, Params, Schema, operator
from datamill.services.engines.protocol import Outcome
from datamill.services.records import SYSTEM_COLUMNS


class RenameParams(Params):
    """Parameters of `columns.rename`."""

    mapping: dict[str, str] = Field(min_length=1, description="old name to new name; swapping two names is allowed")

    @model_validator(mode="after")
    def _names(self) -> Self:
        for name in (*self.mapping, *self.mapping.values()):
            if name in SYSTEM_COLUMNS or not name:
                raise ValueError(f"`{name}` cannot be renamed or taken as a name")
        if len(set(self.mapping.values())) < len(self.mapping):
            raise ValueError("two columns would get the same name")
        return self


def _reads(params: RenameParams) -> list[Need]:
    return [Need(column, field=f"params.mapping.{column}") for column in params.mapping]


def _writes(params: RenameParams, schema: Schema) -> Schema:
    names = _renamed(params, list(schema))
    return dict(zip(names, schema.values(), strict=True))


def _renamed(params: RenameParams, names: list[str]) -> list[str]:
    renamed = [params.mapping.get(name, name) for name in names]
    taken = sorted({name for name in renamed if renamed.count(name) > 1})
    if taken:
        raise DatamillError(
            "DM-OPA-020",
            f"columns.rename would make two columns called {', '.join(f'`{name}`' for name in taken)}",
            exit_code=ExitCode.INVALID,
            field="params.mapping",
            fix="rename or drop the other column first",
        )
    return renamed


@operator(
    "columns.rename",
    "Renames columns.",
    effect=Effect.MAP,
    params=RenameParams,
    bound=Bound.IO,
    reads=_reads,
    writes=_writes,
    keywords=(
        "rename", "rename column", "call the column", "重命名", "改名", "列名", "renomear", "renomear coluna",
        "renombrar", "cambiar nombre", "renombrar columna",
    ),
)  # fmt: skip
def rename(batch: pa.Table, params: RenameParams, _ctx: Context) -> Outcome:
    """The same rows under the new names."""
    return Outcome(batch.rename_columns(_renamed(params, batch.column_names)))
