"""`format.preference`: rows become pairs of a chosen and a rejected answer for DPO and reward models.

A row has either `chosen` and `rejected`, or a list of `answers` with `scores`. An explicit rule makes pairs of a list;
a pair that carries no signal (equal scores or equal texts) is dropped as `tie`, a row with one side as `one_sided`.
With several pairs the first keeps the id of the row, the others are children of it.
"""

from typing import Literal

import pyarrow as pa
from pydantic import Field

from datamill.operators.declaration import ColumnType, Context, Effect, Need, OnNull, Params, Schema, operator
from datamill.operators.outcomes import then, without_nulls
from datamill.services.engines.protocol import Outcome

REASONS = ("tie", "one_sided", "empty_prompt", "bad_answers")


class PreferenceParams(Params):
    """Parameters of `format.preference`."""

    prompt: str = Field("prompt", description="column with the prompt")
    chosen: str | None = Field(None, description="column with the better answer; `chosen` unless `answers` is given")
    rejected: str | None = Field(None, description="column with the worse answer; `rejected` unless `answers` is given")
    answers: str | None = Field(None, description="column with a list of answers; best first when there are no scores")
    scores: str | None = Field(None, description="column with the scores of `answers`, higher is better")
    rule: Literal["best_vs_worst", "all_pairs", "threshold"] = Field(
        "best_vs_worst", description="which pairs of a list are made; threshold: those at least `min_gap` apart"
    )
    min_gap: float = Field(0.0, ge=0, description="smallest difference of scores under `threshold`")
    output_prompt: str = Field("instruction", description="output column of the prompt")
    keep_source: bool = Field(False, description="keep the columns the pair was made of")
    on_null: OnNull = "drop"


def sources(params: PreferenceParams) -> dict[str, str]:
    """What is read from which column: `prompt`, and those of `chosen`, `rejected`, `answers`, `scores` there are."""
    usual = {} if params.answers or params.chosen or params.rejected else {"chosen": "chosen", "rejected": "rejected"}
    named = {name: getattr(params, name) for name in ("prompt", "chosen", "rejected", "answers", "scores")}
    return usual | {name: column for name, column in named.items() if column}


def _reads(params: PreferenceParams) -> list[Need]:
    must = params.on_null == "error"
    return [
        Need(column, nullable=not (must and name == "prompt"), field=f"params.{name}")
        for name, column in sources(params).items()
    ]


def outputs(params: PreferenceParams) -> tuple[str, str, str]:
    """Names of the three output columns."""
    return params.output_prompt, "chosen", "rejected"


def _writes(params: PreferenceParams, schema: Schema) -> Schema:
    gone = set() if params.keep_source else set(sources(params).values())
    kept = {name: kind for name, kind in schema.items() if name not in gone}
    return {**kept, **{name: ColumnType("string", nullable=False, semantic="preference") for name in outputs(params)}}


def _check(params: PreferenceParams) -> list[tuple[str, str, str]]:
    found = []
    if bool(params.chosen) != bool(params.rejected):
        found.append(("error", "params.chosen", "give both `chosen` and `rejected`"))
    if params.scores and not params.answers:
        found.append(("error", "params.scores", "`scores` belong to `answers`, which is not given"))
    if params.rule == "threshold" and not (params.scores and params.min_gap > 0):
        found.append(("error", "params.min_gap", "`rule: threshold` needs `scores` and a `min_gap` above 0"))
    return found


@operator(
    "format.preference",
    "Makes chosen/rejected pairs for DPO from pairs, ranked lists or scored answers; drops ties and one-sided rows.",
    effect=Effect.EXPAND,
    params=PreferenceParams,
    reads=_reads,
    writes=_writes,
    check=_check,
    reference="Rafailov et al. 2023, Direct Preference Optimization; LLaMA-Factory data/README (preference data)",
    keywords=(
        "dpo", "preference", "chosen", "rejected", "reward model", "rlhf", "pairwise", "ranking", "best vs worst",
        "偏好", "成对", "奖励模型", "优选", "preferência", "preferencia", "pares",
    ),
    reasons=(*REASONS, "pair", "null_*"),
)  # fmt: skip
def preference(batch: pa.Table, params: PreferenceParams, ctx: Context) -> Outcome:
    """Make the pairs of every row."""
    from datamill.operators.format.pairs import preference_batch

    return then(without_nulls(batch, [params.prompt], params.on_null), lambda rows: preference_batch(rows, params))
