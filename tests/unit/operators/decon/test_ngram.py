"""decon.ngram: files, registered names, workflow inputs, actions, rules, details, partition independence."""

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from datamill.operators.declaration import Context, registered
from datamill.operators.decon.ngram import NgramParams, ngram
from datamill.services.engines.protocol import Outcome
from datamill.services.engines.tables import TableDataset

QUESTION = "Lena picks 14 baskets of 23 plums on each of 5 days; how many plums does she pick altogether in that time?"
SIBLING = QUESTION.replace("14", "11").replace("23", "31").replace("5 days", "6 days")
GSM8K = Path(__file__).parents[4].parent / "shared" / "data" / "gsm8k"
OPERATOR = registered()["decon.ngram"]


def batch(**columns: Any) -> pa.Table:
    size = len(next(iter(columns.values())))
    system = {
        "_id": [f"{i:032x}" for i in range(size)],
        "_ord": list(range(size)),
        "_src": [f"f:{i}" for i in range(size)],
    }
    return pa.table({**system, **columns})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    rows = [{"id": "t1", "question": "An unrelated question about rivers and mountains of the world, long enough."}]
    rows.append({"id": "t2", "question": QUESTION})
    (tmp_path / "eval.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def run(table: pa.Table, project: Path, inputs: dict[str, Any] | None = None, **params: Any) -> Outcome:
    checked = NgramParams(**params)
    ctx = Context(step="decon", project=project, inputs=inputs or {})
    assert OPERATOR.prepare is not None
    ready = OPERATOR.prepare(checked, ctx)
    outcome: Outcome = ngram(table, checked, Context(step="decon", project=project, resources=ready))
    return outcome


def test_a_copy_is_dropped_and_named_a_sibling_stays(project: Path) -> None:
    table = batch(text=["clean row", f"Q: {QUESTION.lower()}", SIBLING])
    outcome = run(table, project, against=("eval.jsonl",))
    assert outcome.rows["text"].to_pylist() == ["clean row", SIBLING]
    fate = outcome.fates.to_pylist()[0]
    assert (fate["reason"], fate["value"], fate["threshold"]) == ("contaminated", 1.0, 0.6)
    assert fate["detail"].startswith("eval.jsonl t2: 10 n-grams")
    assert outcome.rows["decon_hits"].to_pylist()[0] == 0


def test_rule_any_takes_a_single_shared_ngram(project: Path) -> None:
    shared = "Nobody knows: of 5 days; how many plums does she pick altogether in that time?"
    table = batch(text=[shared, "She has 5 days; how many plums does she pick altogether in that short time?"])
    assert run(table, project, against=("eval.jsonl",)).rows.num_rows == 2
    assert run(table, project, against=("eval.jsonl",), rule="any").rows["text"].to_pylist() == [
        table["text"][1].as_py()
    ]


def test_tag_keeps_rows_and_counts_hits(project: Path) -> None:
    outcome = run(batch(text=["clean", QUESTION]), project, against=("eval.jsonl",), action="tag")
    assert outcome.rows["decon_hits"].to_pylist() == [0, 10]
    assert outcome.fates.num_rows == 0


def test_every_column_is_looked_through_and_nulls_follow_the_policy(project: Path) -> None:
    table = batch(q=["a", None, "b"], a=[QUESTION, "x", "y"])
    kept = run(table, project, against=("eval.jsonl",), columns=("q", "a"))
    assert kept.rows["a"].to_pylist() == ["x", "y"]
    dropped = run(table, project, against=("eval.jsonl",), columns=("q", "a"), on_null="drop")
    assert sorted(dropped.fates["reason"].to_pylist()) == ["contaminated", "null_q"]


def test_registered_names_and_workflow_inputs(project: Path) -> None:
    table = batch(text=[QUESTION])
    assert run(table, project, against=("gsm8k:test",)).rows.num_rows == 1
    held_out = {"val": TableDataset.of(batch(text=[QUESTION, None]))}
    assert run(table, project, held_out, against_inputs=("val",)).rows.num_rows == 0


def test_result_is_the_same_for_any_partitioning(project: Path) -> None:
    texts = [QUESTION if i % 7 == 3 else f"row {i} " + "pad " * i for i in range(60)]
    table = batch(text=texts)
    whole = run(table, project, against=("eval.jsonl",))
    cuts = [run(table.slice(at, 8), project, against=("eval.jsonl",)) for at in range(0, 60, 8)]
    assert pa.concat_tables([cut.rows for cut in cuts]).equals(whole.rows)
    assert sum(cut.fates.num_rows for cut in cuts) == whole.fates.num_rows == 9


def test_declared_files_cover_paths_and_own_names_only() -> None:
    params = NgramParams(against=("eval/test.jsonl", "gsm8k:test", "mine:test"))
    assert list(OPERATOR.files(params)) == ["eval/test.jsonl", ".datamill/benchmarks/mine__test.npz"]


def test_hopeless_parameters_are_found_before_the_run() -> None:
    assert [field for _, field, _ in OPERATOR.check(NgramParams())] == ["params.against"]
    assert [field for _, field, _ in OPERATOR.check(NgramParams(against=("gsm8k:test",), n=8))] == ["params.n"]
    assert not list(OPERATOR.check(NgramParams(against=("gsm8k:test",))))


@pytest.mark.skipif(not GSM8K.is_dir(), reason="needs ../shared")
@pytest.mark.parametrize("against", ["gsm8k:test", "example_model_solutions.jsonl"])
def test_planted_gsm8k_test_questions_are_found_and_no_train_row_is_lost(against: str) -> None:
    def questions(name: str) -> list[str]:
        return [json.loads(line)["question"] for line in (GSM8K / name).read_text().splitlines()]

    rng = random.Random(8)
    edits = (
        str.upper,
        lambda q: f"Solve: {q} Show your work.",
        lambda q: q.replace(",", ""),
        lambda q: q.replace("How", "So how"),
    )
    planted = [rng.choice(edits)(question) for question in rng.sample(questions("example_model_solutions.jsonl"), 50)]
    train = questions("train.jsonl")
    outcome = run(batch(text=train + planted), GSM8K, against=(against,))
    assert outcome.rows["text"].to_pylist() == train
    assert outcome.fates.num_rows == 50
