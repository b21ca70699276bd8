"""`read.jsonl`: JSON Lines, also gzip and zstd; see `services.reading.jsonrows` for what happens to odd records."""

from datamill.operators.declaration import Bound, Context, Effect, operator
from datamill.operators.read.source_params import TextReadParams, declared_schema, make_source, read_files
from datamill.services.reading.source import REASONS, SourceSpec


class ReadJsonl(TextReadParams):
    """Parameters of `read.jsonl`."""


@operator(
    "read.jsonl",
    "Read JSON Lines files: one object a line, plain, gzip or zstd.",
    effect=Effect.SOURCE,
    bound=Bound.IO,
    params=ReadJsonl,
    writes=declared_schema,
    files=read_files,
    reference="JSON Lines; RFC 8259",
    keywords=("read", "load", "jsonl", "ndjson", "json lines", "读取", "leer", "ler", "charger"),
    reasons=REASONS,
)
def read_jsonl(params: ReadJsonl, ctx: Context) -> SourceSpec:
    """Describe the source; the runner reads it chunk by chunk."""
    return make_source(params, ctx, "jsonl")
