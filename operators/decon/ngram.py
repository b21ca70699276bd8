"""`decon.ngram`: rows that contain a question of a test set are dropped or tagged.

A question is known by the hashes of its 13-grams (see `services.benchmarks`). With `rule: question` a row counts as
contaminated when it holds `min_overlap` of a question's n-grams, or a single one while all the question's numbers
recur in the row: copies and light edits are found, siblings from the same template with other numbers are not.
`rule: any` is the classical test: one shared n-gram is enough.

Source: Brown et al. 2020, appendix C. Cost: one pass per run length, memory about 10 bytes per benchmark n-gram.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pyarrow as pa
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
from datamill.services.benchmarks import Fingerprint, Match, build_fingerprint, find_benchmark, strongest
from datamill.services.benchmarks.questions import read_questions
from datamill.services.benchmarks.registry import PROJECT_FOLDER, file_name, is_shipped
from datamill.services.engines.protocol import Outcome

NUM_WORDS = 13
FILE_SUFFIXES = (".jsonl", ".json", ".csv", ".tsv", ".parquet", ".txt")
REASON = "contaminated"


class NgramParams(Params):
    """Parameters of `decon.ngram`."""

    columns: tuple[str, ...] = Field(("text",), min_length=1, description="text columns to look through")
    against: tuple[str, ...] = Field(
        (), description="files with questions, or names of registered test sets such as gsm8k:test"
    )
    against_columns: tuple[str, ...] = Field(
        (), description="fields of the files that hold the question; question, text, problem, ... when empty"
    )
    against_inputs: tuple[str, ...] = Field((), description="inputs or steps of the workflow that hold the questions")
    n: int = Field(NUM_WORDS, ge=3, le=50, description="words of an n-gram")
    rule: Literal["question", "any"] = Field(
        "question", description="question: evidence for the question itself; any: one shared n-gram"
    )
    min_overlap: float = Field(
        0.6, gt=0, le=1, description="share of a question's n-grams, when not all its numbers recur in the row"
    )
    action: Literal["drop", "tag"] = Field("drop", description="tag keeps the rows and fills the hits column only")
    hits_column: str = Field("decon_hits", description="output: n-grams shared with the closest question")
    on_null: OnNull = "keep"


def is_file(entry: str) -> bool:
    """Whether an entry of `against` is a path and not the name of a registered test set."""
    return "/" in entry or entry.lower().endswith(FILE_SUFFIXES)


def _reads(params: NgramParams) -> list[Need]:
    return [text_need(column, params.on_null) for column in params.columns]


def _writes(params: NgramParams, schema: Schema) -> Schema:
    return {**schema, params.hits_column: ColumnType("int64", nullable=False, semantic="number")}


def _files(params: NgramParams) -> list[str]:
    own = [entry for entry in params.against if not is_file(entry) and not is_shipped(entry)]
    paths = [entry for entry in params.against if is_file(entry)]
    return paths + [str(PROJECT_FOLDER / file_name(entry)) for entry in own]


def _check(params: NgramParams) -> list[tuple[str, str, str]]:
    found = []
    if not params.against and not params.against_inputs:
        found.append(("error", "params.against", "nothing to check against: name a test set or a file"))
    if params.n != NUM_WORDS and any(not is_file(entry) for entry in params.against):
        found.append(("error", "params.n", f"registered test sets hold {NUM_WORDS}-grams; give a file for another n"))
    return found


def _prepare(params: NgramParams, ctx: Context) -> tuple[tuple[Fingerprint, tuple[str, ...]], ...]:
    return tuple(_sources(params, ctx))


def _sources(params: NgramParams, ctx: Context) -> Iterator[tuple[Fingerprint, tuple[str, ...]]]:
    """Fingerprints and, where known, what each question is called."""
    for entry in params.against:
        if not is_file(entry):
            yield find_benchmark(entry, ctx.project), ()
            continue
        questions = read_questions(ctx.project / entry, params.against_columns)
        fingerprint = build_fingerprint(Path(entry).name, (question.text for question in questions), params.n)
        yield fingerprint, tuple(question.label for question in questions)
    for name in params.against_inputs:
        columns = params.against_columns or params.columns
        rows = (row for table in ctx.inputs[name].tables(columns) for row in table.to_pylist())
        texts = [" ".join(str(value) for value in row.values() if value is not None) for row in rows]
        yield build_fingerprint(name, texts, params.n), ()


@operator(
    "decon.ngram",
    "Drops or tags rows that contain a question of a test set (13-gram overlap, numbers preserved).",
    effect=Effect.FILTER,
    params=NgramParams,
    reads=_reads,
    writes=_writes,
    files=_files,
    prepare=_prepare,
    check=_check,
    side_inputs=lambda params: params.against_inputs,
    reference="Brown et al. 2020, Language Models are Few-Shot Learners, appendix C",
    keywords=(
        "decontaminate", "decontamination", "contamination", "test set leak", "leakage", "benchmark", "13-gram",
        "n-gram overlap", "gsm8k", "mmlu", "eval set", "held out",
        "去污染", "污染", "测试集", "泄漏", "泄露", "评测集",
        "descontaminar", "contaminação", "vazamento", "conjunto de teste",
        "contaminación", "conjunto de prueba", "fuga",
    ),
    reasons=(REASON, "null_*"),
)  # fmt: skip
def ngram(batch: pa.Table, params: NgramParams, ctx: Context) -> Outcome:
    """Look every row up in the prepared fingerprints."""
    return then(without_nulls(batch, params.columns, params.on_null), lambda rows: _judge(rows, params, ctx))


def _judge(batch: pa.Table, params: NgramParams, ctx: Context) -> Outcome:
    matches = _matches(batch, params, ctx.resources)
    hits = [match.hits if match else 0 for match in matches]
    tagged = with_column(batch, params.hits_column, hits, pa.int64())
    if params.action == "tag":
        return Outcome(tagged)
    labels = {fingerprint.name: names for fingerprint, names in ctx.resources}
    return keep_where(
        tagged,
        [not _is_hit(match, params) for match in matches],
        reason=REASON,
        value=[match.overlap if match else None for match in matches],
        threshold=params.min_overlap if params.rule == "question" else None,
        detail=[_describe(match, labels) if match else None for match in matches],
    )


def _matches(
    batch: pa.Table, params: NgramParams, sources: tuple[tuple[Fingerprint, tuple[str, ...]], ...]
) -> list[Match | None]:
    per_source: list[list[Match | None]] = []
    for column in params.columns:
        texts = [text or "" for text in batch[column].to_pylist()]
        per_source.extend(fingerprint.match_batch(texts) for fingerprint, _ in sources)
    return [strongest(found, params.min_overlap) for found in zip(*per_source, strict=True)]


def _is_hit(match: Match | None, params: NgramParams) -> bool:
    return match is not None and (params.rule == "any" or match.is_contaminated(params.min_overlap))


def _describe(match: Match, labels: dict[str, tuple[str, ...]]) -> str:
    names = labels[match.benchmark]
    label = names[match.question] if names else f"question {match.question + 1}"
    return f"{match.benchmark} {label}: {match.hits} n-grams shared, {match.overlap:.0%} of the question"
