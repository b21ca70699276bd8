"""`format.pt`: one text column for continued pre-training; rows without text leave."""

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from datamill.operators.declaration import (
    ColumnType,
    Context,
    Effect,
    Need,
    OnNull,
    Params,
    Schema,
    operator,
    text_need,
)
from datamill.operators.outcomes import keep_where, then, with_column, without_nulls
from datamill.services.engines.protocol import Outcome


class PtParams(Params):
    """Parameters of `format.pt`."""

    columns: tuple[str, ...] = Field(("text",), min_length=1, description="text columns, joined in this order")
    separator: str = Field("\n\n", description="text between the columns")
    output: str = Field("text", description="output column")
    keep_source: bool = Field(False, description="keep the columns the text was made of")
    on_null: OnNull = "drop"


def _reads(params: PtParams) -> list[Need]:
    return [text_need(column, params.on_null) for column in params.columns]


def _writes(params: PtParams, schema: Schema) -> Schema:
    gone = set() if params.keep_source else set(params.columns)
    kept = {name: kind for name, kind in schema.items() if name not in gone}
    return {**kept, params.output: ColumnType("string", nullable=False, semantic="text")}


@operator(
    "format.pt",
    "Joins text columns into one column for continued pre-training.",
    effect=Effect.FILTER,
    params=PtParams,
    reads=_reads,
    writes=_writes,
    reference="LLaMA-Factory data/README (pre-training data)",
    keywords=(
        "pretrain", "pre-training", "continued pretraining", "corpus", "plain text", "预训练", "继续预训练", "语料",
        "pré-treino", "preentrenamiento",
    ),
    reasons=("empty_text", "null_*"),
)  # fmt: skip
def pt(batch: pa.Table, params: PtParams, ctx: Context) -> Outcome:
    """Join the columns; a null counts as empty under `on_null: keep`."""
    return then(without_nulls(batch, params.columns, params.on_null), lambda rows: _join(rows, params))


def _join(batch: pa.Table, params: PtParams) -> Outcome:
    parts = [pc.fill_null(batch[column].cast(pa.string()), "") for column in params.columns]
    rows = [params.separator.join(filter(None, row)) for row in zip(*(part.to_pylist() for part in parts), strict=True)]
    made = batch if params.keep_source else batch.drop_columns(list(dict.fromkeys(params.columns)))
    filled = with_column(made, params.output, rows, pa.string())
    return keep_where(filled, [bool(text.strip()) for text in rows], reason="empty_text")
