"""`read.txt`: plain text cut into lines, paragraphs or whole files; see `services.reading.textrows`."""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from datamill.operators.declaration import Bound, ColumnType, Context, Effect, Schema, operator
from datamill.operators.read.source_params import TextReadParams, make_source, read_files
from datamill.services.reading.source import REASONS, SourceSpec
from datamill.services.reading.textrows import COLUMN


class ReadTxt(TextReadParams):
    """Parameters of `read.txt`."""

    unit: Literal["line", "paragraph", "whole"] = Field(
        "line", description="what one row is: a line, a run of lines between blank lines, or a whole file"
    )


def _text_schema(_params: ReadTxt, _schema: Schema) -> Schema:
    return {COLUMN: ColumnType("string", nullable=False, semantic="text")}


def _check(params: ReadTxt) -> Sequence[tuple[str, str, str]]:
    unknown = sorted((set(params.columns or ()) | set(params.cast)) - {COLUMN})
    return [("error", "columns", f"a text file has only the column `{COLUMN}`, not {name}") for name in unknown]


@operator(
    "read.txt",
    "Read plain text files into the column `text`: a line, a paragraph or a whole file a row.",
    effect=Effect.SOURCE,
    bound=Bound.IO,
    params=ReadTxt,
    writes=_text_schema,
    files=read_files,
    check=_check,
    reference="line ends \\n and \\r\\n only",
    keywords=("read", "load", "txt", "text", "plain text", "book", "读取", "文本"),
    reasons=REASONS,
)
def read_txt(params: ReadTxt, ctx: Context) -> SourceSpec:
    """Describe the source; the runner reads it chunk by chunk."""
    return make_source(params, ctx, "txt")
