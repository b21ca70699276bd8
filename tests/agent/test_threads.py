"""A thread from request to result, with the offline planner and with a model behind a scripted server."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.agent import (
    ASKED,
    KEY,
    LONGER,
    LONGER_STEPS,
    change_input,
    plan_reply,
    project,
    request,
    services,
    step,
)
from support.project import tree_digest
from support.scripted_server import ScriptedServer, Seen, Step, in_order, reply, status

from datamill.agents.conversation import Request, Turn, answer, go_on, look, start, threads
from datamill.agents.nodes import review_payload
from datamill.agents.services import ThreadServices
from datamill.errors import DatamillError, ExitCode, PlanError
from datamill.workflows.approval import approval_of
from datamill.workflows.run_record import list_runs

CONTRACT = {"kind", "plan_digest", "yaml", "view", "estimate", "warnings", "diff_from_previous", "allowed"}
INBOX = {"action_request", "config", "description"}
QUICK = "[llm]\nmax_retries = 0\nmax_rpm = 100000\nmax_tpm = 100000000\n"


def model(seen: Seen) -> Step:
    """A model that plans, and follows the one change of these tests."""
    return reply(plan_reply(LONGER_STEPS) if LONGER in seen.text else plan_reply())


@pytest.fixture(params=["rules", "llm"])
def at_work(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ThreadServices]:
    """Services over a project, once for each planner."""
    folder = project(tmp_path / "project", settings=QUICK)
    if request.param == "rules":
        yield services(folder)
        return
    with ScriptedServer(model) as server:
        yield services(folder, server.base_url)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return project(tmp_path / "project", settings=QUICK)


def approved(turn: Turn, at_work: ThreadServices, **more: Any) -> Turn:
    decision = {"type": "approve", "digest": turn.payload["plan_digest"], "origin": "test", **more}
    return answer(turn.thread, decision, at_work)


def test_review_then_approve_runs_exactly_that_plan(at_work: ThreadServices) -> None:
    turn = start(request(), at_work)
    assert turn.kind == "review"
    assert set(turn.payload) >= CONTRACT | INBOX
    assert turn.payload["kind"] == "plan_review"
    assert turn.payload["allowed"] == ["approve", "edit", "reject", "respond"]
    assert not list_runs(at_work.project)
    assert not (at_work.project / "out").exists()
    done = approved(turn, at_work)
    assert done.kind == "done"
    run = list_runs(at_work.project)[0].state()
    assert run["digest"] == turn.payload["plan_digest"]
    assert run["request"] == ASKED
    assert run["approval"]["origin"] == "test"
    assert done.state["run"]["rows_out"] < done.state["run"]["rows_in"]
    assert [who for who, _ in done.state["turns"]] == ["you", "datamill"]


def test_approving_twice_runs_once(at_work: ThreadServices) -> None:
    turn = start(request(), at_work)
    first = approved(turn, at_work)
    second = approved(turn, at_work)
    assert second.state["run"] == first.state["run"]
    assert len(list_runs(at_work.project)) == 1
    with pytest.raises(DatamillError) as caught:
        answer(turn.thread, {"type": "approve", "digest": "f" * 64}, at_work)
    assert caught.value.code == "DM-AGENT-011"


def test_a_response_changes_the_plan_and_shows_how(at_work: ThreadServices) -> None:
    before = start(request(), at_work)
    after = answer(before.thread, {"type": "respond", "text": LONGER}, at_work)
    assert after.kind == "review"
    assert after.payload["plan_digest"] != before.payload["plan_digest"]
    assert any(line.startswith("+ ") and "filter.length" in line for line in after.payload["diff_from_previous"])
    assert after.plan(at_work).step("exact").needs != before.plan(at_work).step("exact").needs
    assert [text for _, text in after.state["turns"]] == [ASKED, LONGER]


def test_a_valid_edit_is_shown_as_a_difference_and_runs(at_work: ThreadServices) -> None:
    turn = start(request(), at_work)
    edited = turn.state["yaml"].replace("dedup.exact", "dedup.minhash").replace("columns:", "column:")
    edited = edited.replace("column:\n        - text", "column: text").replace("column: [text]", "column: text")
    if "params" not in edited:
        edited = edited.replace("operator: dedup.minhash", "operator: dedup.minhash\n    params: {column: text}")
    after = answer(turn.thread, {"type": "edit", "yaml": edited}, at_work)
    assert after.kind == "review", after.state.get("notice")
    assert not after.payload["notice"]
    assert any("dedup.minhash" in line for line in after.payload["diff_from_previous"])
    assert approved(after, at_work).kind == "done"


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("dedup.exact", "dedup.exakt", "DM-OP-001"),
        ("version: 1", "version: !!python/object/apply:os.system [ls]", "DM-PLAN-002"),
        ("version: 1", "version: [", "DM-PLAN-001"),
        ("path: out/", "path: ../out/", "DM-PATH-002"),
    ],
)
def test_an_invalid_edit_changes_nothing_and_says_why(old: str, new: str, code: str, folder: Path) -> None:
    at_work = services(folder)
    turn = start(request(), at_work)
    assert old in turn.state["yaml"]
    after = answer(turn.thread, {"type": "edit", "yaml": turn.state["yaml"].replace(old, new, 1)}, at_work)
    assert after.kind == "review"
    assert code in after.payload["notice"]
    assert after.payload["plan_digest"] == turn.payload["plan_digest"]
    assert after.state["yaml"] == turn.state["yaml"]
    assert approved(after, at_work).kind == "done"


def test_rejecting_ends_the_thread_and_runs_nothing(at_work: ThreadServices) -> None:
    turn = start(request(), at_work)
    after = answer(turn.thread, {"type": "reject", "reason": "not today"}, at_work)
    assert after.kind == "rejected"
    assert list(after.state["turns"][-1]) == ["you", "rejected: not today"]
    assert list_runs(at_work.project) == []
    assert approval_of(at_work.project, turn.payload["plan_digest"]) is None


def test_a_changed_input_makes_an_approval_stale(at_work: ThreadServices) -> None:
    turn = start(request(), at_work)
    change_input(at_work.project)
    stale = approved(turn, at_work)
    assert stale.kind == "review"
    assert "changed since it was shown" in stale.payload["notice"]
    assert "the content of the input changed" in stale.payload["notice"]
    assert stale.payload["plan_digest"] != turn.payload["plan_digest"]
    assert stale.payload["estimate"] != turn.payload["estimate"]
    assert list_runs(at_work.project) == []
    assert approved(stale, at_work).state["run"]["rows_in"] == 111


def test_a_wrong_digest_approves_nothing(folder: Path) -> None:
    at_work = services(folder)
    turn = start(request(), at_work)
    after = answer(turn.thread, {"type": "approve", "digest": "0" * 64}, at_work)
    assert after.kind == "review"
    assert "is not this plan" in after.payload["notice"]
    assert list_runs(folder) == []


def test_an_unknown_decision_goes_back_to_review(folder: Path) -> None:
    at_work = services(folder)
    turn = start(request(), at_work)
    after = answer(turn.thread, {"type": "launch"}, at_work)
    assert after.kind == "review"
    assert "`launch` is not one of approve, edit" in after.payload["notice"]


def test_the_review_is_pure(folder: Path) -> None:
    at_work = services(folder)
    turn = start(request(), at_work)
    files = tree_digest(folder, without=("threads.sqlite",))
    assert review_payload(turn.state, at_work) == dict(turn.payload)
    assert look(turn.thread, at_work).payload == turn.payload
    assert tree_digest(folder, without=("threads.sqlite",)) == files


def test_a_question_comes_before_a_plan_and_its_answer_makes_one(folder: Path) -> None:
    at_work = services(folder)
    asked = start(Request("remove exact duplicates"), at_work)
    assert asked.kind == "question"
    assert asked.payload["topic"] == "input"
    after = answer(asked.thread, {"type": "respond", "text": "rows.jsonl"}, at_work)
    assert after.kind == "review"
    assert "rows.jsonl" in after.state["yaml"]


def test_a_models_question_is_answered_too(folder: Path) -> None:
    asks = {"verdict": "clarify", "question": {"topic": "columns", "text": "Which column?"}}
    with ScriptedServer(in_order([reply(asks), reply(plan_reply())])) as server:
        at_work = services(folder, server.base_url)
        asked = start(request(), at_work)
        assert asked.kind == "question"
        assert asked.payload["text"] == "Which column?"
        after = answer(asked.thread, {"type": "respond", "text": "text"}, at_work)
        assert "Which column?" in server.seen[1].text
    assert after.kind == "review"


def test_a_refusal_ends_the_turn_but_not_the_thread(folder: Path) -> None:
    at_work = services(folder)
    refused = start(request("read /etc/passwd and clean it"), at_work)
    assert refused.kind == "refused"
    assert refused.draft is not None
    assert refused.draft.refusals[0].code == "DM-AGENT-102"
    assert list_runs(folder) == []
    again = start(request(), at_work, refused.thread)
    assert again.kind == "review"
    assert [text for who, text in again.state["turns"] if who == "you"] == ["read /etc/passwd and clean it", ASKED]


def test_secrets_are_not_kept_anywhere(folder: Path) -> None:
    at_work = services(folder)
    refused = start(request(f"{ASKED} with api key {KEY}"), at_work)
    assert refused.kind == "refused"
    assert "DM-AGENT-106" in {refusal.code for refusal in refused.draft.refusals} if refused.draft else False
    turn = start(request(), at_work)
    answer(turn.thread, {"type": "respond", "text": f"my password is {KEY}"}, at_work)
    kept = b"".join(path.read_bytes() for path in (folder / ".datamill").rglob("*") if path.is_file())
    assert ASKED.encode() in kept
    assert KEY.encode() not in kept


def test_bad_operators_and_parameters_are_repaired(folder: Path) -> None:
    wrong = [step("exact", "dedup.exakt", "load", columns=["text"])]
    worse = [step("exact", "dedup.exact", "load", colums=["text"])]
    with ScriptedServer(in_order([reply(plan_reply(wrong)), reply(plan_reply(worse)), reply(plan_reply())])) as server:
        turn = start(request(), services(folder, server.base_url))
        assert len(server.seen) == 3
        assert "DM-OP-001" in server.seen[1].text
        assert "DM-PLAN-007" in server.seen[2].text
    assert turn.kind == "review"
    assert not turn.payload["notice"]
    assert turn.state["planner_cost"]["calls"] == 3


def test_repairs_are_bounded_and_end_with_the_nearest_valid_plan(folder: Path) -> None:
    wrong = [
        step("size", "filter.lenth", "load", columns=["text"], min=12, unit="chars"),
        step("exact", "dedup.exact", "size", colums=["text"], keep="first", shine=3),
        step("magic", "make.better", "exact", much=1),
    ]
    with ScriptedServer(lambda _seen: reply(plan_reply(wrong))) as server:
        at_work = services(folder, server.base_url)
        turn = start(request(), at_work)
        assert len(server.seen) == 3
    assert turn.kind == "review"
    notice = turn.payload["notice"]
    for told in (
        "DM-AGENT-024",
        "make.better",
        "`filter.lenth` -> `filter.length`",
        "renamed `columns`",
        "exact.shine",
    ):
        assert told in notice
    plan = turn.plan(at_work)
    assert [s.operator for s in plan.steps] == ["read.jsonl", "filter.length", "dedup.exact"]
    assert plan.outputs["clean"].source == "exact"
    assert turn.payload["salvaged"]


@pytest.mark.parametrize("path", ["../secret.jsonl", "/etc/passwd", "https://example.com/x.jsonl", "none.jsonl"])
def test_inputs_a_model_may_not_read_never_become_a_plan(path: str, folder: Path) -> None:
    made = plan_reply()
    made["workflow"]["inputs"]["load"]["path"] = path
    with ScriptedServer(lambda _seen: reply(made)) as server:
        turn = start(request(), services(folder, server.base_url))
    assert turn.kind == "failed"
    assert turn.issues[0].code.startswith(("DM-PATH", "DM-READ"))
    assert list_runs(folder) == []


def test_code_in_parameters_of_a_model_is_refused(folder: Path) -> None:
    evil = [step("map", "columns.map", "load", column="x", expr="__import__('os').system('touch gone')")]
    with ScriptedServer(lambda _seen: reply(plan_reply(evil))) as server:
        turn = start(request(), services(folder, server.base_url))
    operators = [s["operator"] for s in turn.draft.workflow["steps"]] if turn.draft and turn.draft.workflow else []
    assert operators == ["columns.map"]
    assert turn.kind == "failed" or "columns.map" not in turn.state["yaml"]
    assert not (folder / "gone").exists()


def test_when_the_endpoint_fails_the_thread_says_so_and_rules_go_on(folder: Path) -> None:
    with ScriptedServer(in_order([status(500)])) as server:
        at_work = services(folder, server.base_url)
        failed = start(request(), at_work)
        again = go_on(failed.thread, Request("", planner="rules"), at_work)
    assert failed.kind == "failed"
    assert failed.issues[0].code == "DM-AGENT-020"
    assert "-m rules" in str(failed.issues[0].fix)
    assert failed.state["exit"] == ExitCode.STEP_FAILED
    assert again.kind == "review"
    assert again.state["planner"] == "rules"
    assert again.state["inputs"] == ["rows.jsonl"]


def test_a_plan_under_review_survives_an_endpoint_that_fails(folder: Path) -> None:
    with ScriptedServer(in_order([reply(plan_reply()), status(500)])) as server:
        at_work = services(folder, server.base_url)
        turn = start(request(), at_work)
        after = answer(turn.thread, {"type": "respond", "text": LONGER}, at_work)
    assert after.kind == "review"
    assert "the plan is as it was" in after.payload["notice"]
    assert "-m rules" in after.payload["notice"]
    assert after.payload["plan_digest"] == turn.payload["plan_digest"]


def test_no_sample_reaches_the_planner(folder: Path) -> None:
    with ScriptedServer(model) as server:
        at_work = services(folder, server.base_url)
        start(request(sampled=False), at_work)
        start(request(sampled=True), at_work)
        hidden, shown = (seen.text for seen in server.seen)
    assert "mean_chars" not in hidden
    assert '"name": "text"' in hidden
    assert "mean_chars" in shown
    assert "sentence number" not in hidden + shown


def test_llm_steps_are_left_out_without_an_endpoint_and_said(folder: Path) -> None:
    at_work = services(folder)
    turn = start(request("paraphrase the text column of rows.jsonl, then remove exact duplicates"), at_work)
    assert turn.kind == "review"
    assert "augment.paraphrase" not in turn.state["yaml"]
    assert any("augment.paraphrase" in hazard and "no LLM endpoint" in hazard for hazard in turn.payload["hazards"])
    with ScriptedServer(model) as server:
        online = services(folder, server.base_url)
        there = start(request("paraphrase the text column of rows.jsonl", planner="rules"), online)
    assert any("no model is configured" in hazard for hazard in there.payload["hazards"])
    (folder / "datamill.toml").write_text('[llm]\nmodel = "m"\n')
    with_model = start(request("paraphrase the text column of rows.jsonl", planner="rules"), online)
    assert "augment.paraphrase" in with_model.state["yaml"]


def test_two_threads_at_once_do_not_mix(folder: Path) -> None:
    at_work = services(folder)
    wishes = {"a": ASKED, "b": "take a random sample of 10 rows from rows.jsonl"}
    turns: dict[str, Turn] = {}

    def talk(name: str) -> None:
        turn = start(request(wishes[name], out=f"out_{name}"), at_work)
        turns[name] = approved(turn, at_work)

    workers = [threading.Thread(target=talk, args=(name,)) for name in wishes]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert {name: turn.kind for name, turn in turns.items()} == {"a": "done", "b": "done"}
    assert turns["b"].state["run"]["rows_out"] == 10
    assert turns["a"].state["run"]["rows_out"] > 10
    assert len(list_runs(folder)) == 2
    assert set(threads(at_work)) == {turn.thread for turn in turns.values()}


def test_unknown_threads_and_threads_of_another_project(folder: Path, tmp_path: Path) -> None:
    turn = start(request(), services(folder))
    elsewhere = services(project(tmp_path / "other"))
    for call in (lambda: look(turn.thread, elsewhere), lambda: answer(turn.thread, {"type": "reject"}, elsewhere)):
        with pytest.raises(DatamillError) as caught:
            call()
        assert caught.value.code == "DM-AGENT-010"


def test_an_input_that_is_gone_at_approval_is_an_error_not_a_run(folder: Path) -> None:
    at_work = services(folder)
    turn = start(request(), at_work)
    (folder / "rows.jsonl").unlink()
    with pytest.raises(PlanError):
        approved(turn, at_work)
    assert list_runs(folder) == []
