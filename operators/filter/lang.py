"""`filter.lang`: keep texts in a set of languages, by the labels of `lang.detect`.

One filter takes the whole set: two filters in a row, each with one language, keep nothing but mixed text. In order:

1. `unknown` text (numbers, too short) leaves with `unknown_language`, or stays with `unknown: keep`.
2. Mixed text is judged by `mixed`: `all` its languages have to be allowed (default), `any` one of them, or the `main`.
3. A language outside `allow` leaves with `not_allowed`.
4. A confidence below `min_score` leaves with `low_score`; FineWeb uses 0.65.

Source: Penedo et al., "FineWeb" (2024). One vectorised pass.
"""

import re
from typing import Any, Literal

import polars as pl
import pyarrow as pa
from pydantic import Field, field_validator

from datamill.operators.declaration import Context, Effect, Need, OnNull, Params, operator
from datamill.operators.lang.names import LANGUAGE_NAMES
from datamill.operators.outcomes import keep_where, then, without_nulls
from datamill.operators.parameters import Columns
from datamill.services.engines.protocol import Outcome

_CODE = re.compile(r"[a-z]{2,3}")
UNKNOWN = "unknown"


class LangFilterParams(Params):
    """Parameters of `filter.lang`."""

    allow: Columns = Field(description="ISO 639-1 codes of the languages to keep, e.g. [en, zh]")
    min_score: float = Field(0.65, ge=0, le=1, description="smallest confidence kept")
    unknown: Literal["drop", "keep"] = Field("drop", description="texts whose language cannot be told")
    mixed: Literal["all", "any", "main"] = Field(
        "all", description="mixed text: all its languages, any of them, or the main one has to be allowed"
    )
    column: str = Field("lang", description="column with the language code")
    score_column: str = Field("lang_score", description="column with the confidence")
    mix_column: str = Field("lang_mix", description="column with the codes of mixed text; may be absent")
    on_null: OnNull = "drop"

    @field_validator("allow", mode="after")
    @classmethod
    def _codes(cls, codes: tuple[str, ...]) -> tuple[str, ...]:
        """Codes in lower case without region (`zh-CN` is `zh`); a language's name is answered with its code."""
        known = []
        for given in codes:
            code = given.strip().lower().replace("_", "-").split("-")[0]
            if code in LANGUAGE_NAMES:
                raise ValueError(f"`{given}` is a name; its ISO 639-1 code is `{LANGUAGE_NAMES[code]}`")
            if not _CODE.fullmatch(code):
                raise ValueError(f"`{given}` is not an ISO 639 code such as `en` or `zh`")
            known.append(code)
        return tuple(dict.fromkeys(known))


def _reads(params: LangFilterParams) -> list[Need]:
    nullable = params.on_null != "error"
    return [
        Need(params.column, dtypes=("string",), nullable=nullable, field="params.column"),
        Need(params.score_column, dtypes=("double",), field="params.score_column"),
    ]


@operator(
    "filter.lang",
    "Keeps texts in a set of languages, by the labels of lang.detect.",
    effect=Effect.FILTER,
    params=LangFilterParams,
    reads=_reads,
    reference="FineWeb (Penedo 2024): score >= 0.65",
    keywords=(
        "only english", "english only", "language filter", "keep languages", "english and chinese", "non-english",
        "not english", "remove other languages",
        "只保留中文", "只要英文", "保留语言", "语言过滤", "中文", "英文", "非中文",
        "só português", "apenas inglês", "somente português", "filtrar idioma", "fique só com",
        "solo español", "solo inglés", "únicamente español", "quedarse con",
    ),
    reasons=("unknown_language", "not_allowed", "low_score", "null_*"),
)  # fmt: skip
def lang_filter(batch: pa.Table, params: LangFilterParams, _ctx: Context) -> Outcome:
    """Judge each row; see the module's text for the order of the rules."""
    return then(without_nulls(batch, [params.column], params.on_null), lambda rows: _judge(rows, params))


def _judge(rows: pa.Table, params: LangFilterParams) -> Outcome:
    frame = _labels(rows, params)
    allow = list(params.allow)
    parts = pl.col("mix").str.split("+")
    fits: dict[str, pl.Expr] = {
        "all": parts.list.eval(pl.element().is_in(allow)).list.all(),
        "any": parts.list.eval(pl.element().is_in(allow)).list.any(),
        "main": pl.col("lang").is_in(allow),
    }
    keeps_unknown = params.unknown == "keep"
    verdict = (
        pl.when(pl.col("lang").is_null())
        .then(None)
        .when(pl.col("lang") == UNKNOWN)
        .then(None if keeps_unknown else pl.lit("unknown_language"))
        .when(~fits[params.mixed])
        .then(pl.lit("not_allowed"))
        .when(pl.col("score") < params.min_score)
        .then(pl.lit("low_score"))
    )
    frame = frame.with_columns(reason=verdict)
    low = pl.col("reason") == "low_score"
    shown = frame.select(
        reason=pl.col("reason"),
        kept=pl.col("reason").is_null(),
        value=pl.when(low).then("score"),
        threshold=pl.when(low).then(pl.lit(params.min_score)),
        detail=pl.col("mix"),
    )
    columns: dict[str, Any] = {name: shown[name] for name in ("reason", "value", "threshold", "detail")}
    return keep_where(rows, shown["kept"], **columns)


def _labels(rows: pa.Table, params: LangFilterParams) -> pl.DataFrame:
    """Code, score and mixture of every row; a text that is not mixed is a mixture of one."""
    names = [params.column, params.score_column]
    frame = pl.DataFrame(
        {
            "lang": pl.Series(pl.from_arrow(rows[names[0]]), dtype=pl.String),
            "score": pl.Series(pl.from_arrow(rows[names[1]]), dtype=pl.Float64),
        }
    )
    if params.mix_column not in rows.column_names:
        return frame.with_columns(mix=pl.col("lang"))
    mix = pl.Series(pl.from_arrow(rows[params.mix_column]), dtype=pl.String)
    return frame.with_columns(mix=pl.coalesce(mix, "lang"))
