"""Estimates come from running the cheap part on a sample; here against the rows of the run itself."""

from pathlib import Path

import pytest
from support.project import approved_run, compiled, make_project, write_rows

from datamill.workflows import estimate
from datamill.workflows.estimate import estimate_plan
from datamill.workflows.plan import Plan

HEAD = "version: 1\nname: est\ninputs:\n  load: {path: rows.jsonl}\nsteps:\n"


def wide(folder: Path, count: int = 4000) -> Path:
    """Rows in ten groups of unequal size; every fourth has no score; one in five texts is short."""
    rows = [
        {"text": "tiny" if i % 5 == 0 else f"a text of some length, number {i}", "group": f"g{min(i % 40, 9)}",
         "score": None if i % 4 == 0 else (i * 37) % 1000}
        for i in range(count)
    ]  # fmt: skip
    write_rows(folder / "rows.jsonl", rows)
    return folder


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wide(tmp_path_factory.mktemp("estimate"))


def sampled(plan: Plan, folder: Path, monkeypatch: pytest.MonkeyPatch, rows: int = 800) -> dict[str, int]:
    """Estimated rows by step, with the input treated as a large one."""
    monkeypatch.setattr(estimate, "WHOLE_ROWS", 100)
    return {step.step: step.rows for step in estimate_plan(plan, folder, sample=rows).steps}


def test_a_small_project_is_estimated_exactly(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    plan = compiled(folder)
    found = estimate_plan(plan, folder)
    result = approved_run(folder, plan)
    assert {step.step: step.rows for step in found.steps} == {
        name: books["out"] for name, books in result.steps.items()
    }
    assert all(step.measured for step in found.steps)
    assert found.seconds > 0
    assert found.rows("pick") == 40
    assert found.rows("absent") is None


def test_a_sampled_project_is_within_fifteen_percent(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = """\
  - {id: size, operator: filter.length, needs: load, params: {columns: [text], unit: chars, min: 12}}
  - {id: score, operator: filter.score, needs: size, params: {column: score, min: 300}}
  - {id: some, operator: sample.random, needs: score, params: {fraction: 0.25}}
"""
    plan = compiled(project, HEAD.replace("steps:", "run: {shard_rows: 250}\nsteps:") + body)
    found = sampled(plan, project, monkeypatch)
    result = approved_run(project, plan)
    assert found["load"] != 800, "the sample is scaled to the whole"
    for name, books in result.steps.items():
        assert found[name] == pytest.approx(books["out"], rel=0.15), name


@pytest.mark.parametrize(
    "step",
    [
        "sample.random, params: {n: 1500}",
        "sample.random, params: {n: 100}",
        "sample.random, params: {n: 99999}",
        "sample.stratified, params: {by: group, n: 1500}",
        "sample.stratified, params: {by: group, max_per_group: 70}",
        "filter.topk, params: {column: score, n: 1500}",
        "filter.topk, params: {column: score, n: 10}",
        "filter.topk, params: {column: score, n: 99999}",
        "filter.topk, params: {column: score, n: 60, by: group}",
        "filter.topk, params: {column: score, fraction: 0.5}",
    ],
)
def test_a_fixed_number_of_rows_is_not_scaled_up(
    step: str, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = HEAD.replace("steps:", "run: {shard_rows: 250}\nsteps:")
    plan = compiled(project, head + f"  - {{id: pick, needs: load, operator: {step}}}\n")
    found = sampled(plan, project, monkeypatch)
    monkeypatch.undo()
    exact = {s.step: s.rows for s in estimate_plan(plan, project).steps}
    assert found["pick"] == pytest.approx(exact["pick"], rel=0.15)


def test_llm_steps_are_counted_and_not_run(project: Path) -> None:
    body = "  - {id: para, operator: augment.paraphrase, needs: load, params: {column: text, n: 2}}\n"
    found = estimate_plan(compiled(project, HEAD + body), project)
    para = found.steps[-1]
    assert (para.llm_calls > 0, para.measured) == (True, False)
    assert para.rows > 4000


def test_a_step_that_cannot_be_run_on_the_sample_says_so(tmp_path: Path) -> None:
    folder = make_project(tmp_path, count=20)
    (folder / "bench.jsonl").write_text('{"text": "a question nobody has asked in this place before"}\n')
    step = "  - {id: decon, operator: decon.ngram, needs: exact, params: {columns: [text], against: [bench.jsonl]}}\n"
    plan = compiled(folder, (folder / "plan.yaml").read_text().replace("  - {id: pick", step + "  - {id: pick"))
    (folder / "bench.jsonl").unlink()
    found = estimate_plan(plan, folder)
    decon = next(item for item in found.steps if item.step == "decon")
    assert (decon.measured, decon.rows) == (False, found.rows("exact"))
    assert decon.note
