from pathlib import Path

import pytest
from support.branches import SOUND, WORKFLOW, computed, make_branches
from support.project import approved_run, compiled, tree_digest

from datamill.errors import DatamillError, ExitCode
from datamill.workflows import chain
from datamill.workflows.events import read_events
from datamill.workflows.run_record import list_runs
from datamill.workflows.runner import RunOptions
from datamill.workflows.span import check_span

ALL = ["load", "fix", "size", "exact", "ratio", "later", "both"]


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    return make_branches(tmp_path / "sound", SOUND)


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    return make_branches(tmp_path / "faulty", WORKFLOW)


def kept_going(folder: Path) -> DatamillError:
    with pytest.raises(DatamillError) as stopped:
        approved_run(folder, keep_going=True)
    return stopped.value


@pytest.mark.parametrize(
    ("step", "above", "below"),
    [
        ("load", {"load"}, set(ALL)), ("fix", {"load", "fix"}, set(ALL) - {"load"}),
        ("exact", {"load", "fix", "size", "exact"}, {"exact", "both"}),
        ("ratio", {"load", "fix", "ratio"}, {"ratio", "later", "both"}), ("both", set(ALL), {"both"}),
    ],
)  # fmt: skip
def test_what_stands_above_and_below_a_step(sound: Path, step: str, above: set[str], below: set[str]) -> None:
    plan = compiled(sound)
    assert plan.upstream(step) == above
    assert plan.downstream(step) == below


def test_a_side_input_counts_as_above(sound: Path) -> None:
    against = SOUND.replace("inputs:\n", "inputs:\n  known: {path: rows.jsonl}\n").replace(
        "dedup.exact, needs: ratio, params: {columns: [text]}", "dedup.minhash, needs: ratio, params: {against: known}"
    )
    plan = compiled(sound, against)
    assert plan.step("later").sides == ("known",)
    assert plan.upstream("later") == {"known", "load", "fix", "ratio", "later"}
    assert plan.downstream("known") == {"known", "later", "both"}
    approved_run(sound, plan)
    result = approved_run(sound, plan, from_step="known")
    assert {name for name, value in computed(result.folder).items() if value} == {"known", "later", "both"}


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        ({"from_step": "exat"}, "DM-CLI-003", "did you mean `exact`?"), ({"until": "lad"}, "DM-CLI-003", "did you mean `load`?"),
        ({"from_step": "exact", "reuse": False}, "DM-CLI-008", "--fresh reuses nothing"),
        ({"from_step": "exact", "until": "ratio"}, "DM-CLI-008", "`ratio` does not depend on `exact`"),
        ({"from_step": "both", "until": "size"}, "DM-CLI-008", "`size` does not depend on `both`"),
    ],
)  # fmt: skip
def test_contradictions_are_usage_errors(sound: Path, options: dict[str, object], code: str, said: str) -> None:
    with pytest.raises(DatamillError) as refused:
        approved_run(sound, **options)
    assert (refused.value.code, refused.value.exit_code) == (code, ExitCode.USAGE)
    assert said in str(refused.value)
    assert list_runs(sound) == []


def test_spans_that_fit_together_are_accepted(sound: Path) -> None:
    plan = compiled(sound)
    for name in ALL:
        check_span(plan, RunOptions(from_step=name, until="both"))
        check_span(plan, RunOptions(reuse=False, until=name))
    check_span(plan, RunOptions(from_step="size", until="exact"))


@pytest.mark.parametrize("step", ALL)
def test_from_computes_the_step_and_all_below_it_and_nothing_else(sound: Path, step: str) -> None:
    first = approved_run(sound)
    assert set(computed(first.folder)) == set(ALL)
    again = approved_run(sound)
    assert not any(computed(again.folder).values())
    before = tree_digest(sound / "out", without=("card",))
    result = approved_run(sound, from_step=step)
    anew = {name for name, value in computed(result.folder).items() if value}
    assert anew == compiled(sound).downstream(step)
    assert set(computed(result.folder)) == set(ALL)
    assert tree_digest(sound / "out", without=("card",)) == before
    assert result.status == "done"
    assert result.run_id not in {first.run_id, again.run_id}


def test_from_decides_again_in_a_global_step(sound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from datamill.workflows import runner

    approved_run(sound)
    decided: list[str] = []
    real = runner.decide

    def counting(operator_id: str, params: object, data: object, context: object) -> object:
        decided.append(context.step)  # type: ignore[attr-defined]  # a Context
        return real(operator_id, params, data, context)  # type: ignore[arg-type]  # passed on as they are

    monkeypatch.setattr(runner, "decide", counting)
    approved_run(sound, from_step="both")
    assert decided == []
    approved_run(sound, from_step="later")
    assert decided == ["later"]
    approved_run(sound, from_step="load")
    assert decided == ["later", "exact", "later"]


def test_from_within_a_chain_reuses_the_first_part_of_the_chain(sound: Path) -> None:
    approved_run(sound)
    result = approved_run(sound, from_step="size", until="exact")
    assert computed(result.folder) == {"load": False, "fix": False, "size": True, "exact": True}
    assert result.status == "partial"
    assert result.exit_code is ExitCode.OK


def test_without_keep_going_the_first_failure_stops_the_run(faulty: Path) -> None:
    with pytest.raises(DatamillError) as stopped:
        approved_run(faulty)
    assert stopped.value.code == "DM-OPA-001"
    assert not (faulty / "out").exists()


def test_a_run_keeps_going_past_a_failed_step(faulty: Path, tmp_path: Path) -> None:
    error = kept_going(faulty)
    assert (error.code, error.exit_code) == ("DM-RUN-002", ExitCode.STEP_FAILED)
    summary, cause = error.issues
    assert summary.message == "1 of 7 steps failed: `ratio`; not run for want of them: later, both"
    assert summary.context == {
        "failed": ["ratio"], "not_run": ["later", "both"], "outputs": ["out/good.jsonl", "out/side.jsonl"],
    }  # fmt: skip
    assert (cause.code, cause.step) == ("DM-OPA-001", "ratio")
    assert {path.name for path in (faulty / "out").iterdir()} == {"good.jsonl", "good.card.md", "side.jsonl"}
    whole = make_branches(tmp_path / "whole", SOUND)
    approved_run(whole)
    for name in ("good.jsonl", "side.jsonl"):
        assert (faulty / "out" / name).read_bytes() == (whole / "out" / name).read_bytes()
    card = (faulty / "out" / "good.card.md").read_text()
    assert "exact" in card
    assert "later" not in card


def test_a_run_that_kept_going_is_recorded_as_failed_with_everything_it_did(faulty: Path) -> None:
    kept_going(faulty)
    run = list_runs(faulty)[-1]
    state = run.state()
    assert state["status"] == "failed"
    assert [issue["code"] for issue in state["error"]] == ["DM-RUN-002", "DM-OPA-001"]
    assert list(state["steps"]) == ["load", "fix", "size", "exact"]
    assert [output["name"] for output in state["outputs"]] == ["good", "side"]
    events = read_events(run.folder / "events.jsonl")
    assert [event["step"] for event in events if event["event"] == "step_failed"] == ["ratio"]
    skipped = [(event["step"], event["needs"]) for event in events if event["event"] == "step_skipped"]
    assert skipped == [("later", ["ratio"]), ("both", ["later"])]
    assert events[-1]["event"] == "run_stopped"
    page = (run.folder / "report.html").read_text()
    assert "DM-RUN-002" in page
    assert "DM-OPA-001" in page
    assert (run.folder / "drops" / "exact.parquet").is_file()


def test_a_run_that_kept_going_is_resumed_under_its_own_id(sound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = chain.run_operator

    def broken(operator: object, *rest: object) -> object:
        if operator.id in {"filter.expr", "text.fix_unicode"} and operator.id in failing:  # type: ignore[attr-defined]  # an Operator
            raise RuntimeError("the disk of the dictionary is gone")
        return real(operator, *rest)  # type: ignore[arg-type]  # passed on as they are

    failing = {"filter.expr"}
    monkeypatch.setattr(chain, "run_operator", broken)
    error = kept_going(sound)
    assert "the disk of the dictionary is gone" in str(error)
    failed = list_runs(sound)[-1]
    failing.clear()
    result = approved_run(sound)
    assert (result.resumed, result.run_id, result.status) == (True, failed.id, "done")
    assert computed(result.folder) == {
        "load": False, "fix": False, "size": False, "exact": False, "ratio": True, "later": True, "both": True,
    }  # fmt: skip
    assert {output.name: output.reused for output in result.outputs} == {
        "good": True, "side": True, "late": False, "joined": False,
    }  # fmt: skip
    assert failed.state()["error"] == []


def test_every_failed_step_is_named(sound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = chain.run_operator

    def broken(operator: object, *rest: object) -> object:
        if operator.id in {"filter.expr", "filter.length"}:  # type: ignore[attr-defined]  # an Operator
            raise ValueError(f"no luck with {operator.id}")  # type: ignore[attr-defined]  # an Operator
        return real(operator, *rest)  # type: ignore[arg-type]  # passed on as they are

    monkeypatch.setattr(chain, "run_operator", broken)
    error = kept_going(sound)
    assert [(issue.code, issue.step) for issue in error.issues[1:]] == [("DM-RUN-001", "size"), ("DM-RUN-001", "ratio")]
    assert error.issues[0].context["not_run"] == ["exact", "later", "both"]
    assert error.issues[0].context["outputs"] == ["out/side.jsonl"]


def test_an_input_that_fails_takes_everything_below_with_it(tmp_path: Path) -> None:
    extra = "  more: {path: more.jsonl}\nsteps:\n  - {id: tail, operator: dedup.exact, needs: more, params: {columns: [text]}}\n"
    text = SOUND.replace("steps:\n", extra, 1).replace(
        "outputs:\n", "outputs:\n  tail: {from: tail, path: out/tail.jsonl}\n", 1
    )
    folder = make_branches(tmp_path, text)
    (folder / "more.jsonl").write_text("{broken\n" * 50 + '{"text": "one good row among many broken ones"}\n')
    error = kept_going(folder)
    assert error.issues[0].context["failed"] == ["more"]
    assert error.issues[0].context["not_run"] == ["tail"]
    assert "more" not in list_runs(folder)[-1].state()["steps"]
    assert not (folder / "out" / "tail.jsonl").exists()
    assert (folder / "out" / "joined.jsonl").exists()


def test_a_spent_budget_stops_a_run_that_keeps_going(sound: Path) -> None:
    with pytest.raises(DatamillError) as stopped:
        approved_run(sound, keep_going=True, deadline=0.0)
    assert (stopped.value.code, stopped.value.exit_code) == ("DM-RUN-007", ExitCode.BUDGET_EXCEEDED)


def test_nothing_failing_keep_going_changes_nothing(sound: Path, tmp_path: Path) -> None:
    other = make_branches(tmp_path / "other", SOUND)
    assert approved_run(sound, keep_going=True).status == "done"
    approved_run(other)
    assert tree_digest(sound / "out") == tree_digest(other / "out")
    assert not any(computed(approved_run(sound).folder).values())


def test_a_gate_is_measured_on_what_was_done_and_the_run_is_still_failed(tmp_path: Path) -> None:
    gates = "checks: [{on: good, metric: rows, min: 999}, {on: late, metric: rows, min: 1}]\n"
    folder = make_branches(tmp_path, WORKFLOW.replace("run: {", gates + "run: {"))
    assert kept_going(folder).exit_code is ExitCode.STEP_FAILED
    state = list_runs(folder)[-1].state()
    assert state["status"] == "failed"
    assert [(gate["on"], gate["passed"]) for gate in state["gates"]] == [("good", False)]


def test_a_global_operator_that_raises_is_a_failed_step(sound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from datamill.operators.registry import find
    from datamill.workflows import decisions

    def raising(*_: object) -> object:
        raise ZeroDivisionError("of nothing by nothing")

    monkeypatch.setattr(decisions, "find", lambda name: replace(find(name), run=raising))
    with pytest.raises(DatamillError) as stopped:
        approved_run(sound)
    assert stopped.value.code == "DM-RUN-001"
    assert stopped.value.issues[0].step == "exact"
    assert "dedup.exact raised ZeroDivisionError: of nothing by nothing" in str(stopped.value)
    assert list_runs(sound)[-1].state()["status"] == "failed"
