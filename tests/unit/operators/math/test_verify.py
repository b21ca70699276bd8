"""math.verify: outcomes and actions, no gold is unknown, the worker is killed and comes back, partition independence."""

import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from datamill.operators.declaration import Context, registered
from datamill.operators.math.verdicts import answers_equal, worker
from datamill.operators.math.verify import VerifyParams, verify
from datamill.services.engines.protocol import Outcome

TOWER = "5^{5^{5^{5}}} + \\pi"


def batch(**columns: Any) -> pa.Table:
    size = len(next(iter(columns.values())))
    system = {
        "_id": [f"{i:032x}" for i in range(size)],
        "_ord": list(range(size)),
        "_src": [f"f:{i}" for i in range(size)],
    }
    return pa.table({**system, **columns})


def run(table: pa.Table, **params: Any) -> Outcome:
    outcome: Outcome = verify(table, VerifyParams(**params), Context(step="verify"))
    return outcome


@pytest.fixture(scope="module", autouse=True)
def _closed_worker() -> Iterator[None]:
    yield
    worker().close()


def test_gold_decides_true_false_unknown() -> None:
    table = batch(answer=["so\n#### 1,200", "3", "nothing\nhere", "7", None], gold=["1200", "4", "5", None, "1"])
    tagged = run(table, gold="gold", on_wrong="tag")
    assert tagged.rows["math_ok"].to_pylist() == ["true", "false", "unknown", "unknown", "unknown"]
    dropped = run(table, gold="gold")
    assert dropped.rows["math_ok"].to_pylist() == ["true", "unknown", "unknown", "unknown"]
    assert dropped.fates["reason"].to_pylist() == ["wrong_answer"]
    assert dropped.fates["detail"].to_pylist() == ["3, gold 4"]


def test_unknown_can_be_dropped_apart_from_wrong() -> None:
    table = batch(answer=["3", "4", "5"], gold=["4", "4", None])
    outcome = run(table, gold="gold", on_unknown="drop")
    assert outcome.rows["answer"].to_pylist() == ["4"]
    assert outcome.fates["reason"].to_pylist() == ["wrong_answer", "unknown_answer"]


def test_without_gold_and_annotations_nothing_is_false() -> None:
    outcome = run(batch(answer=["<<1+1=3>>3\n#### 9", "x"]))
    assert outcome.rows["math_ok"].to_pylist() == ["unknown", "unknown"]
    assert [severity for severity, *_ in registered()["math.verify"].check(VerifyParams())] == ["warning"]


def test_annotations_give_reasons() -> None:
    good, bad, final = "<<1+1=2>>2\n#### 2", "<<1+1=3>>3\n#### 3", "<<1+1=2>>2\n#### 5"
    outcome = run(batch(answer=[good, bad, final, "plain words"]), annotations=True)
    assert outcome.rows["math_ok"].to_pylist() == ["true", "unknown"]
    assert outcome.fates["reason"].to_pylist() == ["wrong_annotation", "wrong_final"]


def test_a_wrong_annotation_outweighs_a_right_answer() -> None:
    outcome = run(batch(answer=["<<1+1=3>>\n#### 2"], gold=["2"]), annotations=True, gold="gold", on_wrong="tag")
    assert outcome.rows["math_ok"].to_pylist() == ["false"]


def test_numbers_as_numbers() -> None:
    outcome = run(batch(answer=[1200, 5], gold=[1200.0, 5.5]), gold="gold", on_wrong="tag")
    assert outcome.rows["math_ok"].to_pylist() == ["true", "false"]


@pytest.mark.parametrize(
    ("gold", "prediction", "verdict"),
    [
        ("3\\sqrt{5}", "\\sqrt{45}", True), ("x^2+2x+1", "(x+1)^2", True), ("(6, \\frac{\\pi}{5})", "(6,\\pi/5)", True),
        ("2 - \\frac{1}{\\pi}", "2 + \\frac{1}{\\pi}", False), ("2\\pi", "2\\pi r", False), ("\\sqrt{2}+1", "\\sqrt{2}-1", False),
        ("\\sqrt{2}", "1.41421356", None), ("@#\\foo{", "\\pi", None),
    ],
)  # fmt: skip
def test_algebra(gold: str, prediction: str, verdict: bool | None) -> None:
    assert answers_equal(gold, prediction, VerifyParams(gold="g", timeout_s=30)) is verdict


def test_algebra_can_be_switched_off() -> None:
    assert answers_equal("3\\sqrt{5}", "\\sqrt{45}", VerifyParams(gold="g", symbolic=False)) is None


def test_a_runaway_power_is_killed_and_the_next_pair_is_judged() -> None:
    params = VerifyParams(gold="g", timeout_s=1.0)
    answers_equal("\\sqrt{4}", "2", params)
    starts = worker().starts
    began = time.perf_counter()
    assert answers_equal(TOWER, "\\pi", params) is None
    assert time.perf_counter() - began < 10
    assert answers_equal("3\\sqrt{5}", "\\sqrt{45}", VerifyParams(gold="g", timeout_s=60)) is True
    assert worker().starts == starts + 1


def test_result_is_the_same_for_any_partitioning() -> None:
    answers = [f"<<{i}+1={i + 1 + (i % 5 == 2)}>>{i + 1}\n#### {i + 1}" for i in range(40)]
    table = batch(answer=answers)
    whole = run(table, annotations=True)
    cuts = [run(table.slice(at, 7), annotations=True) for at in range(0, 40, 7)]
    assert pa.concat_tables([cut.rows for cut in cuts]).equals(whole.rows)
    assert whole.fates.num_rows + whole.rows.num_rows == 40
    assert whole.fates.num_rows == 8


def test_an_empty_batch_has_the_declared_schema() -> None:
    assert run(batch(answer=["1"]).slice(0, 0)).rows.schema == run(batch(answer=["1"])).rows.schema
