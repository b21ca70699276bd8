"""Every operator gives on every engine, however the rows are cut and ordered, what it gives in one table in memory."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.parity_rows import parity_rows, shuffled_parts
from support.tables import apply, decide, table

from datamill.errors import DatamillError
from datamill.operators.declaration import Bound, Context, Effect
from datamill.operators.dedup import minhash
from datamill.operators.registry import catalogue, find
from datamill.services.engines.protocol import Dataset, Engine
from datamill.services.engines.shards import write_shard
from datamill.services.records import ID
from datamill.services.storage.units import UnitStore
from datamill.workflows.chain import ChainTask, StepCall

BATCH: list[tuple[str, dict[str, Any]]] = [
    ("columns.cast", {"types": {"gold": "int64", "n": "string"}}),
    ("columns.map", {"column": "m", "expr": "coalesce(n, 0) + len(question)"}),
    ("columns.rename", {"mapping": {"kind": "sort"}}),
    ("columns.select", {"columns": ["text", "n"]}),
    ("decon.ngram", {"columns": ["question"], "against": ["eval.jsonl"], "n": 8}),
    ("filter.expr", {"expr": "n > 3 and kind != 'code'"}),
    ("filter.gopher_quality", {"min_words": 5}),
    ("filter.length", {"columns": ["text"], "unit": "words", "min": 20}),
    ("filter.refusal", {"columns": ["solution"]}),
    ("filter.score", {"column": "score", "min": 1.5}),
    ("format.alpaca", {"instruction": "question", "output": "solution"}),
    ("format.chat", {"user": "question", "assistant": "solution"}),
    ("format.preference", {"prompt": "question", "chosen": "solution", "rejected": "rejected"}),
    ("format.pt", {"columns": ["question", "solution"]}),
    ("lang.detect", {"column": "text"}),
    ("math.verify", {"prediction": "solution", "gold": "gold", "annotations": True}),
    ("pii.redact", {"columns": ["text"], "mode": "replace"}),
    ("text.fix_unicode", {"columns": ["text"]}),
    ("text.normalize", {"columns": ["text"]}),
]
GLOBAL: list[tuple[str, dict[str, Any]]] = [
    ("dedup.exact", {"columns": ["text"]}),
    ("dedup.exact", {"columns": ["text", "kind"], "keep": "best:score", "on_null": "drop"}),
    ("dedup.minhash", {"threshold": 0.6}),
    ("dedup.minhash", {"threshold": 0.7, "keep": "best:score", "action": "drop_all"}),
    ("dedup.minhash", {"threshold": 0.8, "verify": "none", "keep": "longest", "on_empty": "drop"}),
    ("filter.topk", {"column": "score", "n": 5, "by": "kind"}),
    ("report.stats", {"by": ["kind"]}),
    ("sample.random", {"n": 20}),
    ("sample.stratified", {"by": ["kind"], "n": 15}),
    ("split", {"ratios": [0.8, 0.1, 0.1], "group_by": "n"}),
    ("split", {"ratios": [0.7, 0.3], "stratify_by": ["n"]}),
]
ELSEWHERE = {
    "mix.concat",
    "filter.lang",
    "augment.paraphrase",
}  # in test_workflows: they need a step before, or a model
ROWS = parity_rows()


def test_no_operator_is_left_out() -> None:
    named = {operator_id for operator_id, _ in (*BATCH, *GLOBAL)} | ELSEWHERE
    sources = {name for name, operator in catalogue().items() if operator.effect is Effect.SOURCE}
    assert named | sources == set(catalogue())
    assert all(find(name).effect in {Effect.GLOBAL, Effect.AGGREGATE} for name, _ in GLOBAL)
    assert all(find(name).bound is not Bound.LLM for name, _ in BATCH)


@pytest.mark.parametrize(("operator_id", "params"), BATCH, ids=[name for name, _ in BATCH])
def test_batch_operators(engine: Engine, tmp_path: Path, operator_id: str, params: dict[str, Any]) -> None:
    (tmp_path / "eval.jsonl").write_text('{"text": "' + ROWS["question"][5].as_py() + '"}\n', encoding="utf-8")
    operator = find(operator_id)
    checked = operator.params.model_validate(params)
    context = Context("step", seed=7, project=tmp_path)
    value = operator.prepare(checked, context) if operator.prepare else None
    wanted = apply(operator_id, ROWS, Context("step", 7, tmp_path, value), **params)
    path = engine.broadcast(value, f"{operator_id}-{tmp_path.name}") if operator.prepare else None
    call = StepCall("step", operator_id, params, "key", 7, "fail", tmp_path, path)
    parts = [write_shard(part, tmp_path / f"{i}.arrow") for i, part in enumerate(shuffled_parts(ROWS, 8))]
    parts = [as_unit(tmp_path, number, part) for number, part in enumerate(parts)]
    units = [
        report.unit
        for _, reports in engine.map_units(ChainTask(UnitStore(tmp_path / "store"), (call,)), list(enumerate(parts)))
        for report in reports
    ]
    rows = pa.concat_tables([unit.rows() for unit in units if unit.num_rows] or [wanted.rows.slice(0, 0)])
    fates = pa.concat_tables([unit.fates() for unit in units])
    assert listed(rows) == listed(wanted.rows)
    assert rows.schema.remove_metadata() == wanted.rows.schema.remove_metadata()
    assert listed(fates.drop_columns(["src"])) == listed(wanted.fates.drop_columns(["src"]))


def as_unit(folder: Path, number: int, shard: Any) -> Any:
    """The shard as the runner hands it on: rows of a committed unit."""
    from datamill.services.engines.protocol import Shard
    from datamill.services.engines.shards import read_shard
    from datamill.services.records import FATE_SCHEMA

    rows = read_shard(shard.path)
    counts = {"in": rows.num_rows, "out": rows.num_rows, "expanded": 0}
    unit = UnitStore(folder / "before").commit(f"{number:040d}", rows, FATE_SCHEMA.empty_table(), counts, 0.0)
    return Shard(unit.rows_path, unit.num_rows, unit.digest)


def listed(table: pa.Table) -> list[str]:
    return sorted(repr(row) for row in table.to_pylist())


@pytest.mark.parametrize("count", [1, 2, 8])
@pytest.mark.parametrize(("operator_id", "params"), GLOBAL, ids=[f"{name}-{i}" for i, (name, _) in enumerate(GLOBAL)])
def test_global_operators(spread: Any, count: int, operator_id: str, params: dict[str, Any]) -> None:
    operator = find(operator_id)
    data: Dataset = spread(shuffled_parts(ROWS, count))
    decided = operator.run([data], operator.params.model_validate(params), Context("step", seed=7))
    made, wanted = decided.collect(), decide(operator_id, ROWS, **params)
    assert made.sort_by(ID).to_pylist() == wanted.to_pylist()
    assert decided.schema.metadata == wanted.schema.metadata
    if operator_id == "split":
        assert len({row["split"] for row in wanted.to_pylist()}) == len(params["ratios"])
    elif operator_id != "report.stats":
        assert {row["fate"] for row in wanted.to_pylist()} > {None}, "the rows give it nothing to do"


def test_near_duplicates_without_the_driver(spread: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is done when pairs are too many for one machine: components and clusters by shuffles alone."""
    monkeypatch.setattr(minhash, "DRIVER_PAIRS", -1)
    params = find("dedup.minhash").params.model_validate({"threshold": 0.6})
    made = find("dedup.minhash").run([spread(shuffled_parts(ROWS, 3))], params, Context("step", seed=7)).collect()
    monkeypatch.undo()
    assert made.sort_by(ID).to_pylist() == decide("dedup.minhash", ROWS, threshold=0.6).to_pylist()


def test_near_duplicates_against_an_older_set(spread: Any) -> None:
    params = find("dedup.minhash").params.model_validate({"against": "old", "threshold": 0.7})
    answers = []
    for old, new in (
        ([ROWS.slice(0, 30)], [ROWS.slice(30)]),
        (shuffled_parts(ROWS.slice(0, 30), 3), shuffled_parts(ROWS.slice(30), 8)),
    ):
        context = Context("step", 7, Path(), None, {"old": spread(old)})
        answers.append(find("dedup.minhash").run([spread(new)], params, context).collect().sort_by(ID).to_pylist())
    assert answers[0] == answers[1]
    assert any(row["reason"] == "near_duplicate_of_older" or row["into"] for row in answers[0])


def test_a_repeated_id_is_an_error_everywhere(spread: Any) -> None:
    twice = table(text=["the same words in a row of ten words or more here"] * 2)
    doubled = [twice, twice]
    with pytest.raises(DatamillError, match="two rows carry the same `_id`") as caught:
        find("dedup.minhash").run([spread(doubled)], find("dedup.minhash").params(), Context("s", 1)).collect()
    assert caught.value.code == "DM-DEDUP-005"
