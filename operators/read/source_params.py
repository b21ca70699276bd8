"""Parameters that all readers share, and how they become a `SourceSpec`."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from datamill.operators.declaration import ColumnType, Context, Params, Schema
from datamill.services.reading.source import Format, SourceSpec

CastType = Literal["string", "int64", "double", "bool", "json"]


class ReadParams(Params):
    """What every reader understands."""

    path: str = Field(description="file, folder or glob, relative to the project; files of a folder come in name order")
    on_bad_row: Literal["quarantine", "fail"] = Field(
        "quarantine", description="put a broken record aside with its place and reason, or stop at the first one"
    )
    max_bad: float = Field(
        0.01, ge=0, le=1, description="share of records that may be broken before the run stops with exit code 1"
    )
    columns: tuple[str, ...] | None = Field(None, description="columns to keep; all when left out")
    cast: Mapping[str, CastType] = Field(
        default_factory=dict, description="column: type, for columns that shall not keep the type found"
    )


class TextReadParams(ReadParams):
    """What readers of text formats understand besides."""

    max_line_mb: float = Field(64, gt=0, le=1024, description="MiB above which one record is quarantined")
    encoding: str = Field("utf-8", description="codec of the files; a UTF-8 or UTF-16 byte order mark wins over it")


def make_source(params: ReadParams, ctx: Context, format_name: Format) -> SourceSpec:
    """The source that a reader step named `ctx.step` describes."""
    values = dict(params.model_dump())
    return SourceSpec(name=ctx.step, root=ctx.project, format=format_name, **values)


def declared_schema(params: Any, schema: Schema) -> Schema:
    """The schema found in the files (`schema`), narrowed to `columns` and with the types of `cast`.

    Before the files were looked at (`schema` empty) only what the parameters name is known.
    """
    wanted = params.columns if params.columns is not None else tuple(schema) or tuple(params.cast)
    return {name: _column(params.cast.get(name), schema.get(name, ColumnType("string"))) for name in wanted}


def _column(cast: str | None, found: ColumnType) -> ColumnType:
    return found if cast is None else ColumnType(cast, found.nullable, found.semantic)


def read_files(params: ReadParams) -> Sequence[str]:
    """Paths whose content belongs to the plan digest."""
    return (params.path,)
