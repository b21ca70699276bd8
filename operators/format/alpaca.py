"""`format.alpaca`: rows become `instruction`, `input`, `output`, with `system` and `history` where there are any.

From columns of other names, or from a conversation: its last exchange becomes instruction and output, earlier ones
go into `history` (pairs), the system turn into `system`. Tool calls and their results have no place of their own in
this format; they are written into the text between tags, so that nothing is lost.
"""

import pyarrow as pa
from pydantic import Field

from datamill.operators.declaration import ColumnType, Context, Effect, Need, OnNull, Params, Schema, operator
from datamill.operators.format.chat import REASONS
from datamill.operators.outcomes import then, without_nulls
from datamill.services.engines.protocol import Outcome

HISTORY_TYPE = pa.list_(pa.list_(pa.string()))
OUTPUTS = ("instruction", "input", "output", "system", "history")


class AlpacaParams(Params):
    """Parameters of `format.alpaca`."""

    messages: str | None = Field(None, description="column with a conversation; else the columns below are used")
    instruction: str = Field("instruction", description="column with the instruction")
    input: str | None = Field(None, description="column with further input; may be null")
    output: str = Field("output", description="column with the answer")
    system: str | None = Field(None, description="column with the system prompt; may be null")
    history: str | None = Field(None, description="column with earlier exchanges, a list of pairs; may be null")
    keep_source: bool = Field(False, description="keep the columns the output was made of")
    on_null: OnNull = "drop"


def sources(params: AlpacaParams) -> list[str]:
    """Columns the row is made of."""
    if params.messages:
        return [params.messages, *([params.system] if params.system else [])]
    names = (params.instruction, params.input, params.output, params.system, params.history)
    return [name for name in names if name]


def outputs(params: AlpacaParams) -> dict[str, pa.DataType]:
    """Columns of the result and their types."""
    names = ["instruction", "input", "output"]
    names += ["system"] if params.system or params.messages else []
    names += ["history"] if params.history or params.messages else []
    return {name: HISTORY_TYPE if name == "history" else pa.string() for name in names}


def needed(params: AlpacaParams) -> list[str]:
    """Columns in which a null makes the row unusable."""
    return [params.messages] if params.messages else [params.instruction, params.output]


def _reads(params: AlpacaParams) -> list[Need]:
    fields = {name: field for field in ("messages", *OUTPUTS) if (name := getattr(params, field))}
    must = needed(params)
    nullable = params.on_null != "error"
    return [
        Need(column, nullable=nullable or column not in must, field=f"params.{fields[column]}")
        for column in sources(params)
    ]


def _writes(params: AlpacaParams, schema: Schema) -> Schema:
    gone = set() if params.keep_source else set(sources(params))
    kept = {name: kind for name, kind in schema.items() if name not in gone}
    made = {
        name: ColumnType(str(kind), nullable=False, semantic="text" if kind == pa.string() else "any")
        for name, kind in outputs(params).items()
    }
    return {**kept, **made}


@operator(
    "format.alpaca",
    "Turns columns or conversations into instruction, input, output (Alpaca), multi-turn chats into history.",
    effect=Effect.FILTER,
    params=AlpacaParams,
    reads=_reads,
    writes=_writes,
    reference="Taori et al. 2023, Stanford Alpaca; LLaMA-Factory data/README (alpaca format)",
    keywords=(
        "alpaca", "instruction format", "instruction input output", "sharegpt to alpaca", "history", "convert",
        "指令", "转换", "alpaca 格式", "formato alpaca", "converter", "convertir",
    ),
    reasons=(*REASONS, "null_*"),
)  # fmt: skip
def alpaca(batch: pa.Table, params: AlpacaParams, ctx: Context) -> Outcome:
    """Build and check one instruction row per row."""
    from datamill.operators.format.instructions import alpaca_batch

    return then(without_nulls(batch, needed(params), params.on_null), lambda rows: alpaca_batch(rows, params))
