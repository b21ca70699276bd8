"""`text.normalize`: white space and character width, in vectorised passes over the whole column.

Spaces of every kind become one space, trailing spaces and more than `max_blank_lines` blank lines go, fullwidth
letters, digits and punctuation of the ASCII range become ASCII (CCNet's rule). Idempotent.
Source: Wenzek et al., "CCNet" (2020), section 3.
"""

import polars as pl
import pyarrow as pa
from pydantic import Field

from datamill.operators.declaration import Context, Effect, Need, OnNull, Params, operator, text_need
from datamill.operators.outcomes import text_column, then, with_column, without_nulls
from datamill.operators.parameters import Columns
from datamill.services.engines.protocol import Outcome

_SPACE = r"[^\S\n]+"
_CJK_STOPS = "，。！？：；（）"
_FULLWIDTH = [chr(code) for code in range(0xFF01, 0xFF5F)]
_HALFWIDTH = [chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)]


class NormalizeParams(Params):
    """Parameters of `text.normalize`."""

    columns: Columns = Field(("text",), description="text columns to normalise")
    whitespace: bool = Field(True, description="one space for a run, no space at line ends, text stripped")
    width: bool = Field(True, description="fullwidth Latin letters, digits and signs to ASCII")
    cjk_punctuation: bool = Field(False, description="with `width`: fullwidth ，。！？：；（） to ASCII as well")
    lowercase: bool = Field(False, description="lower-case the text")
    max_blank_lines: int = Field(1, ge=0, description="blank lines in a row that are kept")
    on_null: OnNull = "keep"


def _reads(params: NormalizeParams) -> list[Need]:
    return [text_need(column, params.on_null) for column in params.columns]


def normalized(text: pl.Expr, params: NormalizeParams) -> pl.Expr:
    """The normal form of each text; null stays null."""
    if params.width:
        pairs = zip(_FULLWIDTH, _HALFWIDTH, strict=True)
        chosen = {full: half for full, half in pairs if params.cjk_punctuation or full not in _CJK_STOPS}
        if params.cjk_punctuation:
            chosen["。"] = "."
        text = text.str.replace_many(list(chosen), list(chosen.values()))
    if params.whitespace:
        text = text.str.replace_all(r"\r\n?", "\n").str.replace_all(_SPACE, " ").str.replace_all(r" *\n *", "\n")
        keep = "\n" * (params.max_blank_lines + 1)
        text = text.str.replace_all(rf"\n{{{params.max_blank_lines + 1},}}", keep).str.strip_chars()
    return text.str.to_lowercase() if params.lowercase else text


@operator(
    "text.normalize",
    "Normalises white space and character width.",
    effect=Effect.MAP,
    params=NormalizeParams,
    reads=_reads,
    reference="CCNet (Wenzek 2020)",
    keywords=(
        "normalise", "normalize", "whitespace", "extra spaces", "full width", "half width", "lowercase", "trim",
        "规范化", "空格", "全角", "半角", "小写", "normalizar", "espaços", "minúsculas", "espacios", "normalizar texto",
    ),
    reasons=("null_*",),
)  # fmt: skip
def normalize(batch: pa.Table, params: NormalizeParams, _ctx: Context) -> Outcome:
    """Normalise every column of `params.columns`."""
    return then(without_nulls(batch, params.columns, params.on_null), lambda rows: _normalize(rows, params))


def _normalize(rows: pa.Table, params: NormalizeParams) -> Outcome:
    for column in params.columns:
        frame = pl.DataFrame({"text": text_column(rows, column)})
        done = frame.select(normalized(pl.col("text"), params)).to_series()
        rows = with_column(rows, column, done, pa.string())
    return Outcome(rows)
