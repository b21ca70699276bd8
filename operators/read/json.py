"""`read.json`: JSON documents; see `services.reading.documents` for the shapes that are understood."""

from pydantic import Field

from datamill.operators.declaration import Bound, Context, Effect, operator
from datamill.operators.read.source_params import TextReadParams, declared_schema, make_source, read_files
from datamill.services.reading.source import REASONS, SourceSpec


class ReadJson(TextReadParams):
    """Parameters of `read.json`."""

    records: str | None = Field(None, description="key of the array of records inside a top-level object")


@operator(
    "read.json",
    "Read JSON documents: an array, one object, an array under a key, or a dictionary of columns.",
    effect=Effect.SOURCE,
    bound=Bound.IO,
    params=ReadJson,
    writes=declared_schema,
    files=read_files,
    reference="RFC 8259",
    keywords=("read", "load", "json", "array", "读取", "leer", "ler", "charger"),
    reasons=REASONS,
)
def read_json(params: ReadJson, ctx: Context) -> SourceSpec:
    """Describe the source; the runner reads it chunk by chunk."""
    return make_source(params, ctx, "json")
