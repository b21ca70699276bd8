"""`lang.detect`: label each text with its language, a confidence, and the languages of a mixed text.

* A text without letters (numbers, symbols), or with fewer than `min_chars` characters in a script that several
  languages share, is `unknown` and has no score.
* A text is mixed when a second script holds at least `min_share` of its content: `我们的 deadline 是 Friday` is `zh`
  with `lang_mix` `zh+en`. Languages that share a script are not told apart within one text: it gets the main one.
* Equal texts get equal labels on every run; nothing is sampled.
"""

from functools import partial
from typing import Literal

import polars as pl
import pyarrow as pa
from pydantic import Field

from datamill.operators.declaration import Context, Effect, Need, OnNull, Params, Schema, operator, text_need
from datamill.operators.outcomes import text_column, then, with_column, without_nulls
from datamill.operators.parameters import LABEL, SCORE, with_columns
from datamill.services.engines.protocol import Outcome


class DetectParams(Params):
    """Parameters of `lang.detect`."""

    column: str = Field("text", description="text column to look at")
    model: Literal["py3langid"] = Field("py3langid", description="statistical model for scripts with many languages")
    min_chars: int = Field(20, ge=0, description="shorter texts are `unknown` unless their script decides")
    min_share: float = Field(0.2, gt=0, le=0.5, description="content share that makes a second script a language")
    languages: tuple[str, ...] | None = Field(
        None, description="only tell these ISO 639-1 codes apart; other languages then get one of these labels"
    )
    lang_column: str = Field("lang", description="output: code of the main language, or `unknown`")
    score_column: str = Field("lang_score", description="output: confidence in 0..1, null when unknown")
    mix_column: str = Field("lang_mix", description="output: codes of a mixed text, such as `zh+en`; else null")
    on_null: OnNull = "keep"


def _reads(params: DetectParams) -> list[Need]:
    return [text_need(params.column, params.on_null, "params.column")]


def _writes(params: DetectParams, schema: Schema) -> Schema:
    added = {params.lang_column: LABEL, params.score_column: SCORE, params.mix_column: LABEL}
    return with_columns(schema, **added)


@operator(
    "lang.detect",
    "Labels each text with its language and a confidence.",
    effect=Effect.MAP,
    params=DetectParams,
    reads=_reads,
    writes=_writes,
    reference="Lui & Baldwin 2012 (langid.py); CCNet (Wenzek 2020); UAX 24",
    keywords=(
        "language", "detect language", "language identification", "langid", "which language", "tag language",
        "语言", "语种", "识别语言", "语言检测", "idioma", "língua", "detectar idioma", "lengua",
    ),
    reasons=("null_*",),
)  # fmt: skip
def detect(batch: pa.Table, params: DetectParams, _ctx: Context) -> Outcome:
    """Count scripts in one vectorised pass, then decide text by text."""
    return then(without_nulls(batch, [params.column], params.on_null), lambda rows: _label(rows, params))


def _label(rows: pa.Table, params: DetectParams) -> Outcome:
    from datamill.operators.lang.identify import MAX_CHARS, Verdict, identify
    from datamill.operators.lang.scripts import letter_counts, readable

    text = text_column(rows, params.column)
    decide = partial(identify, min_chars=params.min_chars, min_share=params.min_share, languages=params.languages)
    table = zip(text.to_list(), readable(text, MAX_CHARS), letter_counts(text).iter_rows(named=True), strict=True)
    verdicts: list[Verdict | None] = [
        None if value is None else decide(value, part, letters) for value, part, letters in table
    ]
    found = pl.DataFrame(
        [(v.lang, v.score, v.mix) if v else (None, None, None) for v in verdicts],
        schema={"lang": pl.String, "score": pl.Float64, "mix": pl.String},
        orient="row",
    )
    rows = with_column(rows, params.lang_column, found["lang"], pa.string())
    rows = with_column(rows, params.score_column, found["score"], pa.float64())
    return Outcome(with_column(rows, params.mix_column, found["mix"], pa.string()))
