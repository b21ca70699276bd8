"""`math.verify`: is the answer right? `true`, `false` or `unknown`, never a guess.

A prediction is compared with a gold answer, exactly where both are numbers, intervals, tuples or sets, by math-verify
(sympy) in a worker that is killed when it overruns, otherwise. With `annotations` every calculator annotation
`<<48/2=24>>` of a worked solution is recomputed in exact rational arithmetic and the number after `####` is held
against the solution. Without gold and annotations the verdict is `unknown`.

Source: Kydlíček 2025, Math-Verify; Cobbe et al. 2021 (annotations). Cost: about 30 µs a row on the exact path, some
milliseconds a formula on the symbolic one.
"""

from typing import Literal

import pyarrow as pa
from pydantic import Field

from datamill.operators.declaration import ColumnType, Context, Effect, Need, OnNull, Params, Schema, operator
from datamill.operators.outcomes import then, without_nulls
from datamill.services.engines.protocol import Outcome

OUTCOMES = ("true", "false", "unknown")


class VerifyParams(Params):
    """Parameters of `math.verify`."""

    prediction: str = Field("answer", description="column with the answer or worked solution to check")
    gold: str | None = Field(None, description="column with the right answer; null values give unknown")
    annotations: bool = Field(False, description="check `<<expr=value>>` and the number after #### in the prediction")
    extract: Literal["auto", "hash", "boxed", "last_number", "whole"] = Field(
        "auto", description="where the answer stands in a text: after ####, in \\boxed{}, the last number, all of it"
    )
    on_wrong: Literal["drop", "tag"] = Field("drop", description="what happens to a wrong row")
    on_unknown: Literal["keep", "drop"] = Field("keep", description="what happens when nothing can be decided")
    outcome_column: str = Field("math_ok", description="output: true, false or unknown")
    symbolic: bool = Field(True, description="use math-verify where exact comparison does not decide")
    timeout_s: float = Field(5.0, gt=0, le=600, description="seconds before a symbolic comparison is given up")
    on_null: OnNull = "keep"


def _reads(params: VerifyParams) -> list[Need]:
    nullable = params.on_null != "error"
    needs = [Need(params.prediction, nullable=nullable, field="params.prediction")]
    return needs + ([Need(params.gold, nullable=nullable, field="params.gold")] if params.gold else [])


def _writes(params: VerifyParams, schema: Schema) -> Schema:
    return {**schema, params.outcome_column: ColumnType("string", nullable=False, semantic="label")}


def _check(params: VerifyParams) -> list[tuple[str, str, str]]:
    if params.gold is None and not params.annotations:
        message = "without `gold` and with `annotations: false` every row is unknown"
        return [("warning", "params.gold", message)]
    return []


@operator(
    "math.verify",
    "Checks answers against gold answers, and calculator annotations and final numbers inside worked solutions.",
    effect=Effect.FILTER,
    params=VerifyParams,
    reads=_reads,
    writes=_writes,
    check=_check,
    reference="Kydlíček 2025, Math-Verify; Cobbe et al. 2021, Training Verifiers to Solve Math Word Problems",
    keywords=(
        "math", "verify", "check answers", "wrong answers", "correct answers", "equivalent answers", "calculator",
        "annotation", "gold answer", "reasoning",
        "数学", "答案", "校验", "验证", "标准答案", "推理",
        "matemática", "verificar", "respostas erradas", "conferir respostas", "gabarito",
        "matemáticas", "respuestas incorrectas", "comprobar respuestas",
    ),
    reasons=("wrong_answer", "wrong_annotation", "wrong_final", "unknown_answer", "null_*"),
)  # fmt: skip
def verify(batch: pa.Table, params: VerifyParams, ctx: Context) -> Outcome:
    """Fill the outcome column; drop by `on_wrong` and `on_unknown`."""
    from datamill.operators.math.verdicts import judge_batch

    columns = [params.prediction, *([params.gold] if params.gold else [])]
    return then(without_nulls(batch, columns, params.on_null), lambda rows: judge_batch(rows, params))
