"""`augment.paraphrase`: say a text in other words with a language model, facts unchanged.

A reply is refused when a number, the final answer or a protected word got lost or was invented, when its length is
out of proportion, or when it repeats the input. Refused and failed calls never become text: the row keeps its input,
gets status `failed` and the last error, and a `failed` fate; running the step again asks for these alone, because
accepted replies are in the cache. When more than `max_failure_share` of a unit's calls fail the run stops (exit 1).

With `keep_original` the paraphrases are new rows (`expanded` fates), otherwise the first one replaces the text.
`group_column` names the row everything came from, so that a split can keep paraphrases on one side.
Cost: `n` calls a row. Source: Maini et al. 2024 (WRAP); Su et al. 2024 (Nemotron-CC).
"""

import logging
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal

import pyarrow as pa
import xxhash
from pydantic import BaseModel, Field, field_validator

from datamill.errors import DatamillError, ExitCode, nearest
from datamill.operators.augment.facts import changed_fact, protect_pattern
from datamill.operators.augment.prompts import PROMPTS, paraphrase_messages
from datamill.operators.declaration import (
    Bound,
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
from datamill.operators.outcomes import then, with_column, without_nulls
from datamill.operators.parameters import LABEL, Columns, with_columns
from datamill.services.engines.protocol import Outcome
from datamill.services.llm.client import LLMClient
from datamill.services.llm.exchange import Rejection, Reply, Request, Result
from datamill.services.records import ID, MAX_CHILDREN, ORD, Fate, child_id, fates

log = logging.getLogger("datamill.augment")

REPLY_ROOM_TOKENS: Final = 256
MESSAGE: Final = ColumnType("string", nullable=True, semantic="text")


class Paraphrase(BaseModel):
    """The reply asked for."""

    text: str = Field(min_length=1)


class ParaphraseParams(Params):
    """Parameters of `augment.paraphrase`."""

    column: str = Field("text", description="text column to rewrite")
    n: int = Field(1, ge=1, le=16, description="paraphrases per row")
    keep_original: bool = Field(True, description="add paraphrases as new rows; false replaces the text")
    style: Literal["plain", "easy", "formal", "concise"] = Field("plain", description="how to say it")
    prompt: str = Field("paraphrase@1", description="prompt id@version")
    model: str | None = Field(None, description="model for this step; the configured one when unset")
    temperature: float = Field(0.7, ge=0, le=2, description="sampling temperature")
    max_words: int | None = Field(None, ge=1, description="most words of a paraphrase")
    min_ratio: float = Field(0.4, ge=0, description="least length of a paraphrase, as a share of the original's")
    max_ratio: float = Field(2.5, gt=0, description="greatest length of a paraphrase, as a multiple of the original's")
    protect: Columns | None = Field(None, description="words, or /regular expressions/, that must stay as they are")
    answer_column: str | None = Field(None, description="column with the final answer, which must survive")
    max_failure_share: float = Field(0.2, ge=0, le=1, description="share of failed calls that stops the run")
    status_column: str = Field("paraphrase_status", description="original, paraphrased, failed or skipped")
    error_column: str = Field("paraphrase_error", description="last error of a failed row")
    group_column: str = Field("paraphrase_group", description="`_id` of the row that a paraphrase came from")
    on_null: OnNull = "keep"

    @field_validator("protect")
    @classmethod
    def _expressions(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for entry in value or ():
            try:
                protect_pattern(entry)
            except re.error as error:
                raise ValueError(f"{entry} is no regular expression: {error}") from error
        return value


def _reads(params: ParaphraseParams) -> list[Need]:
    needs = [text_need(params.column, params.on_null, "params.column")]
    if params.answer_column:
        needs.append(Need(params.answer_column, field="params.answer_column"))
    return needs


def _writes(params: ParaphraseParams, schema: Schema) -> Schema:
    group = ColumnType("string", nullable=False, semantic="label")
    added = {params.status_column: LABEL, params.error_column: MESSAGE, params.group_column: group}
    return with_columns(schema, **added)


def _check(params: ParaphraseParams) -> list[tuple[str, str, str]]:
    found: list[tuple[str, str, str]] = []
    if params.prompt not in PROMPTS:
        close = nearest(params.prompt, PROMPTS)
        hint = f"; did you mean `{close}`?" if close else f"; known: {', '.join(sorted(PROMPTS))}"
        found.append(("error", "params.prompt", f"there is no prompt `{params.prompt}`{hint}"))
    if params.min_ratio >= params.max_ratio:
        found.append(("error", "params.min_ratio", "min_ratio must be below max_ratio, or no reply can be accepted"))
    if params.n > 1 and params.temperature == 0:
        found.append(("warning", "params.temperature", "several paraphrases at temperature 0 will be the same"))
    return found


@operator(
    "augment.paraphrase",
    "Rewrites a text in other words with a language model; numbers and answers must survive.",
    effect=Effect.EXPAND,
    bound=Bound.LLM,
    params=ParaphraseParams,
    reads=_reads,
    writes=_writes,
    check=_check,
    deterministic=False,
    reference="Maini et al. 2024 (WRAP)",
    keywords=(
        "paraphrase", "rephrase", "reword", "rewrite", "augment", "other words", "more variants", "data augmentation",
        "改写", "复述", "数据增强", "parafrasear", "reescrever", "aumentar os dados", "reescribir", "reformuler",
    ),
    reasons=("paraphrased", "facts_changed", "length", "unchanged", "llm_*", "null_*"),
)  # fmt: skip
def paraphrase(batch: pa.Table, params: ParaphraseParams, ctx: Context) -> Outcome:
    """Ask for `params.n` paraphrases of every row that has a text."""
    outcome = without_nulls(batch, [params.column], params.on_null)
    return then(outcome, lambda rows: _paraphrase_rows(rows, params, ctx))


@dataclass
class _Written:
    """Output rows under construction: which input row each copies, and what differs."""

    source: list[int] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    orders: list[int] = field(default_factory=list)
    texts: list[str | None] = field(default_factory=list)
    statuses: list[str] = field(default_factory=list)
    errors: list[str | None] = field(default_factory=list)
    fates: list[dict[str, Any]] = field(default_factory=list)

    def add(self, source: int, row: str, order: int, text: str | None, status: str, error: str | None = None) -> None:
        for column, value in zip(
            (self.source, self.ids, self.orders, self.texts, self.statuses, self.errors),
            (source, row, order, text, status, error),
            strict=True,
        ):
            column.append(value)  # type: ignore[attr-defined]  # six lists of their own types


def _paraphrase_rows(rows: pa.Table, params: ParaphraseParams, ctx: Context) -> Outcome:
    texts: list[str | None] = rows[params.column].to_pylist()
    asked = [index for index, text in enumerate(texts) if text and text.strip()]
    answers = rows[params.answer_column].to_pylist() if params.answer_column else [None] * rows.num_rows
    requests = (
        _request(str(texts[index]), answers[index], variant, params, ctx)
        for index in asked
        for variant in range(params.n)
    )
    results = iter(_ask(requests, len(asked) * params.n, params, ctx))
    written = _Written()
    has_text = set(asked)
    for index, (row, order) in enumerate(zip(rows[ID].to_pylist(), rows[ORD].to_pylist(), strict=True)):
        if index not in has_text:
            written.add(index, row, order, texts[index], "skipped")
            continue
        _write_row(
            written, index, (row, order, str(texts[index])), [next(results) for _ in range(params.n)], params, ctx
        )
    return _outcome(rows, written, params)


def _request(text: str, answer: Any, variant: int, params: ParaphraseParams, ctx: Context) -> Request:
    limits = f"Use at most {params.max_words} words." if params.max_words else ""
    seed = xxhash.xxh3_64_intdigest(f"{ctx.seed}\0{variant}\0".encode() + text.encode("utf-8", "replace"))
    return Request(
        paraphrase_messages(params.prompt, text, params.style, limits),
        model=params.model,
        temperature=params.temperature,
        max_tokens=REPLY_ROOM_TOKENS + len(text.encode("utf-8", "replace")),
        seed=seed >> 33,
        schema=Paraphrase,
        node=ctx.step,
        check=partial(judge_paraphrase, text=text, answer=None if answer is None else str(answer), params=params),
    )


def judge_paraphrase(reply: Reply, text: str, answer: str | None, params: ParaphraseParams) -> Rejection | None:
    """Why a reply is no acceptable paraphrase of `text`; None when it is one."""
    after = reply.value.text.strip()
    if _squeezed(after) == _squeezed(text):
        return Rejection("unchanged", "the text was not rewritten")
    change = changed_fact(text, after, answer, params.protect or ())
    if change:
        return Rejection("facts_changed", change)
    ratio = len(after) / len(text.strip())
    if not params.min_ratio <= ratio <= params.max_ratio:
        return Rejection("length", f"its length is {ratio:.2f} times the original's")
    if params.max_words and len(after.split()) > params.max_words:
        return Rejection("length", f"it has {len(after.split())} words, more than {params.max_words}")
    return None


def _ask(requests: Iterator[Request], total: int, params: ParaphraseParams, ctx: Context) -> list[Result]:
    """Results in order; stops as soon as more than the tolerated share of `total` has failed."""
    if not total:
        return []
    results: list[Result] = []
    failures: Counter[str] = Counter()
    last = ""
    with closing(LLMClient.from_settings(ctx.settings.get("llm")).run_requests(requests)) as answers:
        for result in answers:
            results.append(result)
            if result.ok:
                continue
            failures[str(result.kind)] += 1
            last = str(result.last_error)
            if failures.total() > params.max_failure_share * total:
                raise _too_many(failures, total, last, params, ctx)
    if failures:
        log.warning(
            "%s: %d of %d calls failed (%s), last: %s", ctx.step, failures.total(), total, _list(failures), last
        )
    return results


def _write_row(
    written: _Written,
    index: int,
    row: tuple[str, int, str],
    results: Sequence[Result],
    params: ParaphraseParams,
    ctx: Context,
) -> None:
    """The row itself, its paraphrases as children, and the fates of both."""
    row_id, order, text = row
    failed = [result for result in results if result.reply is None]
    error = f"{failed[-1].kind}: {failed[-1].last_error}" if failed else None
    good = [result.reply.value.text.strip() for result in results if result.reply is not None]
    replaced = good.pop(0) if good and not params.keep_original else None
    status = "failed" if failed and replaced is None else "original" if replaced is None else "paraphrased"
    written.add(index, row_id, order, text if replaced is None else replaced, status, error)
    for result in failed:
        written.fates.append({"id": row_id, "fate": Fate.FAILED, "reason": result.kind, "detail": result.last_error})
    for number, child in enumerate(good, start=1):
        name = child_id(f"{row_id}/{ctx.step}", number)
        written.add(index, name, _child_order(order, number), child, "paraphrased")
        written.fates.append({"id": name, "fate": Fate.EXPANDED, "reason": "paraphrased", "into": row_id})


def _outcome(rows: pa.Table, written: _Written, params: ParaphraseParams) -> Outcome:
    known = params.group_column in rows.column_names
    groups = rows[params.group_column if known else ID].to_pylist()
    out = rows.take(pa.array(written.source, pa.int64()))
    for name, values in ((ID, written.ids), (ORD, written.orders), (params.column, written.texts)):
        place = rows.column_names.index(name)
        out = out.set_column(place, rows.schema.field(place), pa.array(values, rows.schema.field(place).type))
    for name, strings in (
        (params.status_column, written.statuses),
        (params.error_column, written.errors),
        (params.group_column, [groups[source] for source in written.source]),
    ):
        out = with_column(out, name, strings, pa.string())
    return Outcome(out, fates(written.fates))


def _child_order(order: int, number: int) -> int:
    """Right after the parent, inside the bits reserved for children."""
    place = order % MAX_CHILDREN
    return order - place + min(place + number, MAX_CHILDREN - 1)


def _squeezed(text: str) -> str:
    return " ".join(text.split()).casefold()


def _list(failures: Counter[str]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in sorted(failures.items()))


def _too_many(failures: Counter[str], total: int, last: str, params: ParaphraseParams, ctx: Context) -> DatamillError:
    return DatamillError(
        "DM-LLM-020",
        f"{failures.total()} of {total} calls failed ({_list(failures)}), more than max_failure_share "
        f"{params.max_failure_share:g} allows; last error: {last}",
        exit_code=ExitCode.STEP_FAILED,
        step=ctx.step,
        field="params.max_failure_share",
        fix="answers so far are kept: mend the cause and run the same command again, or raise max_failure_share",
    )
