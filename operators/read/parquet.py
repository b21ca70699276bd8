"""`read.parquet`: Parquet files, row group by row group; see `services.reading.parquetrows`."""

from datamill.operators.declaration import Bound, Context, Effect, operator
from datamill.operators.read.source_params import ReadParams, declared_schema, make_source, read_files
from datamill.services.reading.source import REASONS, SourceSpec


class ReadParquet(ReadParams):
    """Parameters of `read.parquet`."""


@operator(
    "read.parquet",
    "Read Parquet files with any types, nested ones included.",
    effect=Effect.SOURCE,
    bound=Bound.IO,
    params=ReadParquet,
    writes=declared_schema,
    files=read_files,
    reference="Apache Parquet",
    keywords=("read", "load", "parquet", "读取"),
    reasons=REASONS,
)
def read_parquet(params: ReadParquet, ctx: Context) -> SourceSpec:
    """Describe the source; the runner reads it chunk by chunk."""
    return make_source(params, ctx, "parquet")
