"""Case 25: pairs by an explicit rule, ties and one-sided rows counted, ranking set, SFT refused."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from datamill.errors import DatamillError
from datamill.operators.declaration import Context
from datamill.operators.format.preference import PreferenceParams, preference
from datamill.services.reading.reader import infer_schema, plan_chunks, read_chunk
from datamill.services.reading.source import SourceSpec
from datamill.services.writing import write_rows
from datamill.workflows.llamafactory_dataset import register_output
from datamill.workflows.spec import RegistrySpec

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "25-preference-pairs"
COLUMNS = {"chosen": "chosen", "rejected": "rejected", "answers": "answers", "scores": "scores"}
pytestmark = pytest.mark.skipif(not CASE.is_dir(), reason="needs ../shared")


def read(path: Path, **options: Any) -> tuple[pa.Table, pa.Table]:
    spec = SourceSpec("in", path.name, root=path.parent, max_bad=1.0, **options)
    schema, _ = infer_schema(spec)
    batches = [batch for chunk in plan_chunks(spec) for batch in read_chunk(spec, chunk, schema)]
    rows = pa.concat_tables([batch.rows for batch in batches])
    return rows, pa.concat_tables([batch.fates for batch in batches])


def test_best_vs_worst_gives_two_pairs(tmp_path: Path) -> None:
    rows, _ = read(CASE / "in.jsonl")
    params = PreferenceParams(**COLUMNS)
    outcome = preference(rows, params, Context(step="pairs"))
    made = outcome.rows.select(["id", "instruction", "chosen", "rejected"]).to_pylist()
    assert made == [
        {"id": "p1", "instruction": "q1", "chosen": "A", "rejected": "D"},
        {"id": "p2", "instruction": "q2", "chosen": "good", "rejected": "bad"},
    ]
    names = dict(zip(rows["_id"].to_pylist(), rows["id"].to_pylist(), strict=True))
    fates = {names[fate["id"]]: fate["reason"] for fate in outcome.fates.to_pylist()}
    assert fates == {"p3": "tie", "p4": "one_sided"}

    data = outcome.rows.drop_columns(["_id", "_ord", "_src"])
    file = write_rows([data], tmp_path / "pairs.jsonl", "jsonl")
    spec = RegistrySpec(name="pairs", formatting="alpaca")
    with pytest.raises(DatamillError, match="stage sft cannot train on them"):
        register_output(file.path, spec, rows=file.rows, stage="sft")
    registry = register_output(file.path, spec, rows=file.rows, stage="dpo")
    assert json.loads(registry.read_text())["pairs"]["ranking"] is True


def test_all_pairs_and_threshold() -> None:
    rows, _ = read(CASE / "in.jsonl")
    counts = {}
    for rule, gap in (("all_pairs", 0.0), ("threshold", 5.0)):
        params = PreferenceParams(**COLUMNS, rule=rule, min_gap=gap)
        counts[rule] = preference(rows, params, Context(step="pairs")).rows.num_rows
    assert counts == {"all_pairs": 6 + 1, "threshold": 3 + 1}
