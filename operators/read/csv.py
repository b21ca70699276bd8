"""`read.csv` and `read.tsv`: delimited text without type guessing; see `services.reading.csvrows`."""

from pydantic import Field

from datamill.operators.declaration import Bound, Context, Effect, operator
from datamill.operators.read.source_params import TextReadParams, declared_schema, make_source, read_files
from datamill.services.reading.source import REASONS, SourceSpec


class ReadTsv(TextReadParams):
    """Parameters of `read.tsv`."""

    quote: str = Field('"', min_length=1, max_length=1, description="quote character")
    header: bool = Field(True, description="whether the first record names the columns")


class ReadCsv(ReadTsv):
    """Parameters of `read.csv`."""

    delimiter: str | None = Field(
        None, min_length=1, max_length=1, description="field separator; found from the header line when left out"
    )


@operator(
    "read.csv",
    "Read CSV files after RFC 4180; every column is text unless cast, an empty field is null.",
    effect=Effect.SOURCE,
    bound=Bound.IO,
    params=ReadCsv,
    writes=declared_schema,
    files=read_files,
    reference="RFC 4180",
    keywords=("read", "load", "csv", "spreadsheet", "table", "读取", "表格", "planilha"),
    reasons=REASONS,
)
def read_csv(params: ReadCsv, ctx: Context) -> SourceSpec:
    """Describe the source; the runner reads it chunk by chunk."""
    return make_source(params, ctx, "csv")


@operator(
    "read.tsv",
    "Read tab-separated files; every column is text unless cast, an empty field is null.",
    effect=Effect.SOURCE,
    bound=Bound.IO,
    params=ReadTsv,
    writes=declared_schema,
    files=read_files,
    reference="IANA text/tab-separated-values; quotes as in RFC 4180",
    keywords=("read", "load", "tsv", "tab", "读取"),
    reasons=REASONS,
)
def read_tsv(params: ReadTsv, ctx: Context) -> SourceSpec:
    """Describe the source; the runner reads it chunk by chunk."""
    return make_source(params, ctx, "tsv")
