"""A run killed at a step and resumed from its last checkpoint goes on as if nothing had happened."""

import json
import shutil
from typing import Any

import pytest

from datamill.errors import DatamillError
from datamill.training.config import from_mapping
from datamill.training.launch import prepare, train, whole_checkpoints
from datamill.training.plan_ledger import fate_of, read_entries

pytestmark = [pytest.mark.train, pytest.mark.slow]

SECTION = {
    "train_type": "dynamic_select",
    "component_name": "less",
    "component_params": {"proj_dim": 256, "checkpoints": 2},
    "warmup_step": 4,
    "update_step": 4,
    "update_times": 3,
    "target_dataset": "val_d",
}
CHANGES = {"lora_dropout": 0.1, "save_strategy": "steps", "save_steps": 3, "gradient_accumulation_steps": 2}


@pytest.fixture(scope="module")
def runs(workbench: Any, tmp_path_factory: Any) -> Any:
    """One run to the end; one killed at step 11 (checkpoint 9, in the middle of a plan) and resumed."""
    root = tmp_path_factory.mktemp("resume")
    whole = workbench.spec(root / "whole", SECTION, **CHANGES)
    cut = workbench.spec(root / "cut", SECTION, **CHANGES)
    done = workbench.run("ours", [whole, cut], env={"KILL_AT": "14"})
    assert done.returncode == -9, done.stderr[-3000:]
    before = [json.loads(line) for line in (root / "cut" / "plan_ledger.jsonl").read_text().splitlines()]
    events = []
    for name in ("checkpoint-12", "checkpoint-15"):  # the last whole one is then 9, two plans back
        shutil.rmtree(root / "cut" / "model" / name, ignore_errors=True)
    config = from_mapping(workbench.arguments(**CHANGES) | {"dataflex": SECTION}, base_dir=workbench.root)
    result = train(config, root / "cut", resume=True, on_event=events.append)
    return root, before, events, result


def test_the_kill_left_a_later_plan_that_the_resume_decides_anew(runs: Any) -> None:
    root, before, _, result = runs
    assert [plan["start"] for plan in before] == [0, 4, 8, 12]
    assert result.resumed_from == 9
    assert len(read_entries(root / "cut" / "plan_ledger.jsonl")) == 4


def test_index_stream_is_identical(runs: Any) -> None:
    root = runs[0]
    whole, cut = (read_entries(root / name / "plan_ledger.jsonl") for name in ("whole", "cut"))
    assert [(p.start, p.end, p.ids, p.windows) for p in whole] == [(p.start, p.end, p.ids, p.windows) for p in cut]
    assert [p.scores_digest for p in whole] == [p.scores_digest for p in cut]
    assert whole[1].scores_digest != whole[2].scores_digest


def test_losses_and_parameters_are_identical(runs: Any, read_losses: Any, read_weights: Any) -> None:
    root = runs[0]
    assert read_losses(root / "whole") == read_losses(root / "cut")
    assert read_weights(root / "whole") == read_weights(root / "cut")


def test_events_tell_the_story(runs: Any) -> None:
    _, _, events, result = runs
    plans = [event for event in events if event["event"] == "plan"]
    assert [event["step"] for event in plans] == [12]
    assert 0 <= plans[0]["overlap"] <= 1
    assert len(plans[0]["score_quantiles"]) == 7
    assert plans[0]["score_quantiles"] == sorted(plans[0]["score_quantiles"])
    assert 0 < plans[0]["selection_share"] < 1
    assert [event["step"] for event in events if event["event"] == "log" and "loss" in event] == list(range(10, 17))
    assert events[-1]["event"] == "done"
    assert result.steps == 16


def test_fate_of_every_row(runs: Any) -> None:
    root = runs[0]
    entries = read_entries(root / "cut" / "plan_ledger.jsonl")
    trained = [0] * 16
    for number in range(41):
        fate = fate_of(root / "cut", f"r{number:03d}")
        assert not fate.dropped
        for step in fate.trained_steps:
            trained[step] += 1
        for plan in fate.plans:
            assert plan.selected == (plan.kind == "selected" and plan.score is not None and plan.steps != ())
    assert trained == [sum(len(rank) for micro in window for rank in micro) for e in entries for window in e.windows]
    scored = [plan for plan in fate_of(root / "cut", entries[2].ids[0]).plans if plan.plan == 2]
    assert scored[0].selected
    assert -1 <= scored[0].score <= 1
    with pytest.raises(DatamillError, match="no row `nobody`"):
        fate_of(root / "cut", "nobody")


def test_budget_is_what_the_steps_take(runs: Any) -> None:
    entries = read_entries(runs[0] / "whole" / "plan_ledger.jsonl")
    assert [entry.candidates for entry in entries] == [41, 41, 41, 41]
    assert [entry.chosen for entry in entries[1:]] == [16, 14, 16]  # step 10 is the short end of a stock epoch
    for entry in entries[1:]:
        assert sorted(entry.ids) == sorted(set(entry.ids))
        assert len(entry.ids) == entry.chosen


def test_finished_run_has_nothing_to_do(runs: Any, workbench: Any) -> None:
    root = runs[0]
    config = from_mapping(workbench.arguments(**CHANGES) | {"dataflex": SECTION}, base_dir=workbench.root)
    last = whole_checkpoints(root / "cut")[-1]
    assert last.name == "checkpoint-16"
    with pytest.raises(DatamillError) as caught:
        prepare(config, root / "cut", resume=True)
    assert caught.value.code == "DM-TRAIN-010"
    assert "nothing to do" in str(caught.value)


def test_resume_with_other_data_names_the_two_choices(runs: Any, workbench: Any) -> None:
    config = from_mapping(workbench.arguments(**CHANGES, lora_alpha=5) | {"dataflex": SECTION}, base_dir=workbench.root)
    with pytest.raises(DatamillError) as caught:
        prepare(config, runs[0] / "cut", resume=True)
    assert caught.value.code == "DM-TRAIN-009"
    assert "another config" in str(caught.value)
    assert "continue with the old settings, or start a new run" in str(caught.value)


def test_checkpoint_cut_short_is_not_used(runs: Any) -> None:
    root = runs[0]
    before = whole_checkpoints(root / "whole")
    (before[-1] / "trainer_state.json").write_text('{"half')
    assert whole_checkpoints(root / "whole") == before[:-1]
