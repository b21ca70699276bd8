"""Parameter types shared by operators.

`Columns` accepts one name or a list of names in a workflow file and is always a tuple in code.
"""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from datamill.operators.declaration import ColumnType, Schema

COUNT = ColumnType("int64", nullable=True, semantic="number")
SCORE = ColumnType("double", nullable=True, semantic="number")
LABEL = ColumnType("string", nullable=True, semantic="label")


def _as_names(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Columns = Annotated[
    tuple[str, ...],
    BeforeValidator(_as_names, json_schema_input_type=str | list[str]),
    Field(min_length=1),
]
"""One or more column names."""


def with_columns(schema: Schema, **columns: ColumnType) -> Schema:
    """`schema` with columns added or replaced."""
    return {**schema, **columns}
