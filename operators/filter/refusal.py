"""`filter.refusal`: leave out rows whose answer is a model's refusal or talk about being a model.

A phrase list per language is looked for near the beginning of the text, where refusals stand; a text that mentions
such a phrase later (a story, a quotation) stays. One vectorised multi-pattern pass (Aho-Corasick).
"""

from typing import Final, Literal

import polars as pl
import pyarrow as pa
from pydantic import Field

from datamill.operators.declaration import Context, Effect, Need, OnNull, Params, operator, text_need
from datamill.operators.outcomes import keep_where, text_column, then, without_nulls
from datamill.operators.parameters import Columns
from datamill.services.engines.protocol import Outcome

Language = Literal["en", "zh", "pt", "es"]
PHRASES: Final[dict[Language, tuple[str, ...]]] = {
    "en": (
        "as an ai language model", "as a language model", "as an ai assistant", "as an artificial intelligence",
        "i'm just an ai", "i am just an ai", "i'm sorry, but i can't", "i'm sorry, but i cannot",
        "i am sorry, but i cannot", "i'm sorry, i can't", "sorry, but i can't", "sorry, i can't help",
        "i cannot assist with", "i can't assist with", "i cannot help with", "i can't help with",
        "i'm unable to assist", "i am unable to assist", "i'm unable to help", "i am not able to help",
        "i cannot fulfill", "i can't fulfill", "i cannot comply", "i can't comply with", "i must decline",
        "i cannot provide", "i can't provide", "i won't be able to help", "i'm not able to provide",
        "it is against my guidelines", "goes against my guidelines",
    ),
    "zh": (
        "作为一个人工智能", "作为人工智能", "作为一个ai", "作为ai", "作为一个语言模型",
        "作为语言模型", "我是一个人工智能",
        "我只是一个ai", "很抱歉，我无法", "很抱歉,我无法", "抱歉，我不能", "抱歉,我不能",
        "抱歉，我无法", "抱歉,我无法", "对不起，我不能",
        "对不起，我无法", "我无法提供", "我不能提供", "我无法协助", "我无法帮助您", "我无法回答", "我不能回答",
    ),
    "pt": (
        "como um modelo de linguagem", "como modelo de linguagem", "como uma inteligência artificial",
        "como inteligência artificial", "como uma ia", "sou apenas um modelo", "desculpe, mas não posso",
        "desculpe, não posso", "sinto muito, mas não posso", "lamento, mas não posso", "não posso ajudar com",
        "não posso atender", "não posso fornecer", "não sou capaz de ajudar", "não consigo ajudar com",
    ),
    "es": (
        "como modelo de lenguaje", "como un modelo de lenguaje", "como inteligencia artificial",
        "como una inteligencia artificial", "como una ia", "solo soy un modelo", "lo siento, pero no puedo",
        "lo siento, no puedo", "lamento no poder", "lo lamento, pero no puedo", "no puedo ayudarte con",
        "no puedo ayudarle con", "no puedo proporcionar", "no puedo cumplir", "no me es posible ayudar",
    ),
}  # fmt: skip
"""Lower-case phrases; straight apostrophes, to which typographic ones are folded."""


class RefusalParams(Params):
    """Parameters of `filter.refusal`."""

    columns: Columns = Field(("output",), description="columns with the model's answers")
    languages: tuple[Language, ...] = Field(("en", "zh", "pt", "es"), min_length=1, description="phrase lists to use")
    phrases: tuple[str, ...] = Field((), description="further phrases, matched without case")
    window: int = Field(200, ge=1, description="characters at the beginning that are searched")
    on_null: OnNull = "keep"


def _reads(params: RefusalParams) -> list[Need]:
    return [text_need(column, params.on_null) for column in params.columns]


def refusal_phrase(text: pl.Series, params: RefusalParams) -> pl.Series:
    """The first refusal phrase found in each text, null where there is none."""
    phrases = [phrase for language in params.languages for phrase in PHRASES[language]]
    phrases += [phrase.lower().replace("’", "'") for phrase in params.phrases]
    frame = pl.DataFrame({"text": text})
    head = pl.col("text").str.strip_chars().str.head(params.window).str.to_lowercase().str.replace_all("’", "'")
    return frame.select(head.str.extract_many(phrases).list.first()).to_series()


@operator(
    "filter.refusal",
    "Leaves out rows whose answer looks like a model's refusal.",
    effect=Effect.FILTER,
    params=RefusalParams,
    reads=_reads,
    keywords=(
        "refusal", "model refusal", "refusals", "as an ai", "sorry i can't", "i cannot help", "decline",
        "拒绝", "拒答", "模型拒绝", "作为ai", "recusa", "recusas",
        "não posso ajudar", "rechazo", "negativa", "rechazos",
    ),
    reasons=("refusal", "null_*"),
)  # fmt: skip
def refusal(batch: pa.Table, params: RefusalParams, _ctx: Context) -> Outcome:
    """Search every column; the first phrase found is the detail of the fate."""
    outcome = without_nulls(batch, params.columns, params.on_null)
    return then(outcome, lambda rows: _without_refusals(rows, params))


def _without_refusals(rows: pa.Table, params: RefusalParams) -> Outcome:
    found = [refusal_phrase(text_column(rows, column), params) for column in params.columns]
    frame = pl.DataFrame({str(index): series for index, series in enumerate(found)})
    phrase = frame.select(pl.coalesce(pl.all())).to_series()
    return keep_where(rows, phrase.is_null(), reason="refusal", detail=phrase)
