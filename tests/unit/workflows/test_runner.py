import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.project import approved_run, compiled, make_project, tree_digest, write_rows

from datamill.errors import DatamillError, ExitCode
from datamill.workflows.approval import approve
from datamill.workflows.events import read_events
from datamill.workflows.execute import RunRequest, run_plan
from datamill.workflows.ledger import Books
from datamill.workflows.lookup import RunData
from datamill.workflows.run_record import RunRecord, find_run, list_runs
from datamill.workflows.runner import RunOptions


def test_books_of_every_step_balance_and_reasons_add_up(tmp_path: Path) -> None:
    result = approved_run(make_project(tmp_path))
    books = {step: Books.from_flat(counts) for step, counts in result.steps.items()}
    assert all(book.balance == 0 for book in books.values())
    assert books["load"].gone == {"quarantined": 1}
    assert books["load"].rows_in == 101
    assert books["size"].reasons == {"dropped:too_short": 14}
    assert books["exact"].reasons["merged:exact_duplicate"] == books["exact"].rows_in - books["exact"].rows_out > 0
    assert books["pick"].rows_out == 40
    assert books["pick"].gone == {"not_selected": books["exact"].rows_out - 40}


def test_the_result_does_not_depend_on_workers_or_shards(tmp_path: Path) -> None:
    outputs = []
    for number, (workers, shard_rows) in enumerate([(1, 20), (2, 20), (1, 1000), (1, 7)]):
        folder = make_project(tmp_path / str(number))
        text = (folder / "plan.yaml").read_text().replace("shard_rows: 20", f"shard_rows: {shard_rows}")
        approved_run(folder, compiled(folder, text), workers=workers)
        outputs.append((folder / "out" / "clean.jsonl").read_bytes())
    assert len(set(outputs)) == 1


def test_a_second_run_computes_nothing_and_writes_the_same_bytes(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    first = approved_run(folder)
    before = tree_digest(folder / "out")
    second = approved_run(folder)
    events = read_events(second.folder / "events.jsonl")
    done = [event for event in events if event["event"] == "step_done"]
    assert [event["step"] for event in done] == ["load", "fix", "size", "exact", "pick", "chat"]
    assert all(event["reused"] == event["shards"] for event in done)
    assert all(output.reused for output in second.outputs)
    assert tree_digest(folder / "out") == before
    assert second.run_id != first.run_id


def test_changing_one_parameter_repeats_exactly_the_steps_below(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    approved_run(folder)
    changed = compiled(folder, overrides={"steps.exact.params.normalise": False})
    result = approved_run(folder, changed)
    events = read_events(result.folder / "events.jsonl")
    reused = {e["step"]: e["reused"] == e["shards"] for e in events if e["event"] == "step_done"}
    assert reused["load"]
    assert reused["fix"]
    assert reused["size"]
    assert not reused["exact"]


def test_unapproved_and_changed_plans_are_refused_with_the_difference(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    plan = compiled(folder)
    with pytest.raises(DatamillError) as refused:
        run_plan(plan, RunRequest(folder))
    assert refused.value.code == "DM-AGENT-002"
    assert refused.value.exit_code is ExitCode.NEEDS_APPROVAL
    approve(folder, plan, "test")
    changed = compiled(folder, overrides={"steps.size.params.min": 3})
    with pytest.raises(DatamillError) as stale:
        run_plan(changed, RunRequest(folder))
    assert stale.value.code == "DM-AGENT-004"
    assert "size.min  12 -> 3" in str(stale.value)
    assert not list_runs(folder)


def test_an_input_that_changes_after_approval_stops_the_run(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    plan = compiled(folder)
    approve(folder, plan, "test")
    write_rows(folder / "rows.jsonl", [{"text": "something else entirely", "answer": "x"}])
    with pytest.raises(DatamillError) as stopped:
        run_plan(plan, RunRequest(folder))
    assert stopped.value.code == "DM-RUN-010"
    assert compiled(folder).digest != plan.digest


def test_too_many_broken_records_stop_the_run_with_places(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    text = (folder / "plan.yaml").read_text().replace("max_bad: 0.5", "max_bad: 0.001")
    with pytest.raises(DatamillError) as stopped:
        approved_run(folder, compiled(folder, text))
    assert stopped.value.code == "DM-READ-004"
    assert stopped.value.exit_code is ExitCode.STEP_FAILED
    assert "rows.jsonl:51" in str(stopped.value)
    assert list_runs(folder)[0].state()["status"] == "failed"


def test_a_failed_run_is_resumed_under_its_own_id(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    (folder / "out").mkdir()
    (folder / "out" / "dataset_info.json").write_text("not json")
    with pytest.raises(DatamillError) as stopped:
        approved_run(folder)
    failed = list_runs(folder)[0]
    assert failed.state()["error"][0]["code"] == stopped.value.code
    (folder / "out" / "dataset_info.json").unlink()
    result = approved_run(folder)
    assert result.resumed
    assert result.run_id == failed.id
    assert json.loads((folder / "out" / "dataset_info.json").read_text())["small"]["file_name"] == "clean.jsonl"


def test_a_foreign_file_is_not_overwritten_without_a_specific_yes(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    (folder / "out").mkdir()
    (folder / "out" / "clean.jsonl").write_text("precious\n")
    with pytest.raises(DatamillError) as refused:
        approved_run(folder)
    assert refused.value.code == "DM-PATH-006"
    assert (folder / "out" / "clean.jsonl").read_text() == "precious\n"
    run_plan(compiled(folder), RunRequest(folder, overwrite=True, workers=1))
    assert (folder / "out" / "clean.jsonl").read_text() != "precious\n"


def test_until_and_limit_run_less(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    result = approved_run(folder, until="size", limit=30)
    assert list(result.steps) == ["load", "fix", "size"]
    assert result.steps["load"]["out"] <= 60
    assert result.status == "partial"
    assert not (folder / "out").exists()


def test_gates_fail_with_their_own_exit_code(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    gates = "checks:\n  - {on: clean, metric: rows, min: 41}\n  - {on: clean, metric: duplicate_rate, max: 0.0}\n"
    result = approved_run(folder, compiled(folder, (folder / "plan.yaml").read_text() + gates))
    assert result.exit_code is ExitCode.GATE_FAILED
    assert [gate.passed for gate in result.gates] == [False, True]
    assert result.gates[0].text() == "clean rows 40 < min 41"


def test_dropped_rows_can_be_looked_up_with_reason_value_and_text(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    result = approved_run(folder)
    data = RunData(folder, RunRecord(result.folder))
    short = data.dropped("size", "too_short", k=3)
    assert len(short) == 3
    assert all(record["row"]["text"] == "tiny" for record in short)
    assert all(record["value"] == 4.0 and record["threshold"] == 12.0 for record in short)
    copies = data.dropped("exact", None, k=100)
    assert all(data.row("exact", record["into"]) is not None for record in copies)
    broken = data.dropped("load", None, k=1)[0]
    assert broken["fate"] == "quarantined"
    assert broken["src"] == "rows.jsonl:51"
    assert broken["offset"] > 0
    way = data.why(short[0]["id"])
    assert [(stop["step"], stop["present"]) for stop in way] == [("load", True), ("fix", True), ("size", False)]
    with pytest.raises(DatamillError) as unknown:
        data.fates("sise")
    assert unknown.value.issues[0].nearest == "size"


def test_run_files_are_readable_by_other_tools(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    result = approved_run(folder)
    assert pq.read_table(result.folder / "drops" / "size.parquet").num_rows == 14
    metrics = pq.read_table(result.folder / "metrics.parquet").to_pylist()
    assert [row["step"] for row in metrics] == ["load", "fix", "size", "exact", "pick", "chat"]
    assert (folder / "runs" / "latest").resolve() == result.folder
    assert find_run(folder, "@last").id == result.run_id
    lock = json.loads((result.folder / "plan.lock.json").read_text())
    assert lock["digest"] == compiled(folder).digest


def test_a_deadline_stops_the_run_and_it_can_be_resumed(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    with pytest.raises(DatamillError) as stopped:
        approved_run(folder, deadline=0.0)
    assert stopped.value.exit_code is ExitCode.BUDGET_EXCEEDED
    assert approved_run(folder).resumed


def test_two_runs_of_one_plan_at_once_are_refused(tmp_path: Path) -> None:
    from datamill.workflows.lock import run_lock

    folder = make_project(tmp_path)
    plan = compiled(folder)
    approve(folder, plan, "test")
    with run_lock(folder, plan.digest), pytest.raises(DatamillError) as refused:
        run_plan(plan, RunRequest(folder))
    assert refused.value.code == "DM-RUN-021"
    assert run_plan(plan, RunRequest(folder, workers=1, options=RunOptions())).status == "done"


def test_paths_are_checked_again_when_the_run_starts(tmp_path: Path) -> None:
    folder = make_project(tmp_path / "project")
    plan = compiled(folder)
    approve(folder, plan, "test")
    outside = tmp_path / "outside"
    outside.mkdir()
    (folder / "out").symlink_to(outside)
    with pytest.raises(DatamillError) as refused:
        run_plan(plan, RunRequest(folder))
    assert refused.value.code == "DM-PATH-002"
    assert list(outside.iterdir()) == []


def test_a_file_among_the_parameters_that_changes_stops_the_run(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    write_rows(
        folder / "tests.jsonl", [{"question": "which sentence number comes after the last one that we saw here"}]
    )
    text = (folder / "plan.yaml").read_text()
    decon = "  - {id: decon, operator: decon.ngram, needs: fix, params: {columns: [text], against: [tests.jsonl]}}\n"
    text = text.replace("  - {id: size", decon + "  - {id: size").replace(
        "needs: fix, params: {columns: [text], unit", "needs: decon, params: {columns: [text], unit"
    )
    plan = compiled(folder, text)
    approve(folder, plan, "test")
    write_rows(folder / "tests.jsonl", [{"question": "another question that nobody approved for this plan at all"}])
    with pytest.raises(DatamillError) as stopped:
        run_plan(plan, RunRequest(folder))
    assert stopped.value.code == "DM-RUN-010"
