"""What accompanies an output file: its entry for LLaMA-Factory and its data card."""

from collections import Counter
from collections.abc import Mapping, Sequence

import polars as pl

from datamill.services.engines.shards import read_shard
from datamill.services.storage.atomic import write_bytes
from datamill.workflows.card import LICENCE_COLUMNS, Card, CardColumn, CardSource, CardStep, find_licences, render_card
from datamill.workflows.llamafactory_dataset import register_output
from datamill.workflows.outputs import WrittenOutput
from datamill.workflows.paths import PathPolicy
from datamill.workflows.plan import Plan
from datamill.workflows.runner import StepResult

LIMITS = ("Filters and deduplication follow stated rules; they do not establish that what is left is true.",)


def register_outputs(
    policy: PathPolicy, plan: Plan, written: Sequence[WrittenOutput], results: Mapping[str, StepResult], command: str
) -> None:
    """Register outputs in `dataset_info.json` and write their cards.

    Raises:
        DatamillError: when an entry would not fit its file, or the file holds no row; nothing is registered then.
    """
    for file in written:
        output = plan.outputs[file.name]
        target = policy.resolve(output.path)
        reasons = sum((Counter(result.books.reasons) for result in results.values()), Counter[str]())
        if output.llamafactory is not None:
            stage = plan.train.llamafactory.get("stage") if plan.train and plan.train.dataset == file.name else None
            register_output(target, output.llamafactory, rows=file.rows, reasons=reasons, stage=stage)
        if output.card:
            text = render_card(make_card(policy, plan, file, results, command))
            write_bytes(target.with_name(f"{target.stem}.card.md"), text.encode("utf-8", "replace"), "output.card")


def make_card(
    policy: PathPolicy, plan: Plan, file: WrittenOutput, results: Mapping[str, StepResult], command: str
) -> Card:
    """The card of one output."""
    output = plan.outputs[file.name]
    schema = plan.step(output.source).schema
    nulls, pii, licences = _look(results[output.source])
    sources = [step for step in plan.steps if step.is_source and step.id in results]
    steps = [
        CardStep(
            s.id, s.operator, results[s.id].books.rows_in, results[s.id].books.rows_out, results[s.id].books.reasons
        )
        for s in plan.steps
        if not s.is_source and s.id in results
    ]
    return Card(
        name=file.name, rows=file.rows, command=command, plan_digest=plan.digest, data_sha256=file.sha256,
        description=plan.description, seed=plan.seed, steps=steps, limits=LIMITS, pii=pii,
        columns=[CardColumn(name, k.dtype, k.semantic, nulls.get(name, 0.0)) for name, k in schema.items()],
        sources=[CardSource(str(s.params["path"]), results[s.id].books.rows_out) for s in sources],
        licences=find_licences([policy.resolve(str(s.params["path"])) for s in sources], licences),
    )  # fmt: skip


def _look(result: StepResult) -> tuple[dict[str, float], dict[str, int], list[str]]:
    """Null shares, finds of personal data, and licence values of the rows of a step, a shard at a time."""
    nulls: dict[str, int] = {}
    pii: dict[str, int] = {}
    licences: set[str] = set()
    rows = 0
    for shard in result.shards:
        frame = pl.from_arrow(read_shard(shard.path))
        assert isinstance(frame, pl.DataFrame)
        rows += frame.height
        for name in frame.columns:
            nulls[name] = nulls.get(name, 0) + frame.get_column(name).null_count()
        for name in (column for column in LICENCE_COLUMNS if column in frame.columns):
            licences.update(str(value) for value in frame.get_column(name).drop_nulls().unique().to_list()[:20])
        for kind, count in _pii(frame).items():
            pii[kind] = pii.get(kind, 0) + count
    return {name: count / rows for name, count in nulls.items()} if rows else {}, pii, sorted(licences)


def _pii(frame: pl.DataFrame) -> dict[str, int]:
    if "pii_counts" not in frame.columns or not isinstance(frame.schema["pii_counts"], pl.Struct):
        return {}
    fields = frame.select(pl.col("pii_counts").struct.unnest())
    return {name: int(fields.get_column(name).sum() or 0) for name in fields.columns}
