"""What is settled before a training process starts, and what is told when one fails."""

import json
from pathlib import Path
from typing import Any

import pytest

from datamill.errors import DatamillError, ExitCode
from datamill.training.config import from_mapping
from datamill.training.events import EventReader, EventWriter
from datamill.training.launch import _command, _failure, _run, prepare, whole_checkpoints
from datamill.training.run_spec import RunSpec, jsonable, restored


@pytest.fixture
def config(tmp_path: Path) -> Any:
    (tmp_path / "d.json").write_text(json.dumps([{"instruction": "a", "output": "b"}]))
    (tmp_path / "dataset_info.json").write_text(json.dumps({"d": {"file_name": "d.json"}}))
    data = {"model_name_or_path": str(tmp_path / "m"), "dataset": "d", "dataset_dir": str(tmp_path)}

    def make(**changes: Any) -> Any:
        section = changes.pop("section", {"train_type": "static"})
        return from_mapping({**data, **changes, "dataflex": section}, base_dir=tmp_path)

    return make


def test_spec_survives_the_file(config: Any, tmp_path: Path) -> None:
    spec, notes = prepare(config(output_dir="elsewhere"), tmp_path / "run")
    assert RunSpec.read(spec.write()) == spec
    assert spec.llamafactory["output_dir"] == str(tmp_path / "run" / "model")
    assert spec.llamafactory["report_to"] == "none"
    assert "elsewhere" in notes[0]
    assert set(spec.fingerprints) == {"config", "model", "dataset", "processes"}


def test_steps_of_a_selection_are_handed_on(config: Any, tmp_path: Path) -> None:
    section = {"train_type": "dynamic_select", "component_name": "random", "update_step": 3, "update_times": 2}
    (tmp_path / "t.json").write_text(json.dumps([{"instruction": "c", "output": "d"}]))
    info = {"d": {"file_name": "d.json"}, "t": {"file_name": "t.json"}}
    (tmp_path / "dataset_info.json").write_text(json.dumps(info))
    spec, _ = prepare(config(section=section, eval_dataset="t"), tmp_path / "run")
    assert spec.llamafactory["max_steps"] == 6


def test_fingerprint_of_the_data_is_of_its_content(config: Any, tmp_path: Path) -> None:
    before = prepare(config(), tmp_path / "run")[0].fingerprints
    (tmp_path / "d.json").write_text(json.dumps([{"instruction": "a", "output": "c"}]))
    after = prepare(config(), tmp_path / "run")[0].fingerprints
    assert {name for name in before if before[name] != after[name]} == {"dataset"}


def test_fresh_start_removes_only_what_a_run_wrote(config: Any, tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "model" / "checkpoint-3").mkdir(parents=True)
    (run / "mine.txt").write_text("keep")
    (run / "plan_ledger.jsonl").write_text("old")
    prepare(config(), run)
    assert sorted(path.name for path in run.iterdir()) == ["mine.txt"]


def test_resume_without_a_checkpoint_starts_over_and_says_so(config: Any, tmp_path: Path) -> None:
    half = tmp_path / "run" / "model" / "checkpoint-3"
    half.mkdir(parents=True)
    (half / "trainer_state.json").write_text("{}")
    assert whole_checkpoints(tmp_path / "run") == []
    spec, notes = prepare(config(), tmp_path / "run", resume=True)
    assert spec.resume is None
    assert "started at step 0" in notes[-1]


def test_unregistered_data_set_is_refused_with_the_nearest(config: Any, tmp_path: Path) -> None:
    with pytest.raises(DatamillError) as caught:
        prepare(config(dataset="e"), tmp_path / "run")
    assert caught.value.code == "DM-TRAIN-014"


def test_one_process_or_torchrun(config: Any, tmp_path: Path) -> None:
    path = prepare(config(), tmp_path / "run")[0].write()
    assert _command(path, 1)[1:] == ["-m", "datamill.training.worker", str(path)]
    assert _command(path, 2)[1:5] == ["-m", "torch.distributed.run", "--nproc_per_node", "2"]
    sharded = prepare(config(deepspeed="z.json"), tmp_path / "run")[0].write()
    assert "torch.distributed.run" in _command(sharded, 1)


def test_failed_process_ends_in_its_own_words(tmp_path: Path) -> None:
    seen: list[Any] = []
    script = (
        "import sys; from pathlib import Path; from datamill.training.events import EventWriter\n"
        f"EventWriter(Path({str(tmp_path)!r})).emit('failed', issues=[dict(code='DM-X-1', message='because')])\n"
        "sys.exit(3)"
    )
    import os
    import sys

    with pytest.raises(DatamillError, match="DM-X-1 because") as caught:
        _run([sys.executable, "-c", script], os.environ, tmp_path, tmp_path, EventReader(tmp_path), seen.append)
    assert caught.value.exit_code == ExitCode.STEP_FAILED
    assert [event["event"] for event in seen] == ["failed"]


def test_crash_points_at_the_log(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("one\nMemoryError: much\n")
    error = _failure(-9, [], tmp_path / "log.txt")
    assert error.code == "DM-TRAIN-012"
    assert "code -9: MemoryError: much" in str(error)
    assert "--resume" in str(error)


def test_events_are_read_once_and_only_when_whole(tmp_path: Path) -> None:
    writer, reader = EventWriter(tmp_path), EventReader(tmp_path)
    assert list(reader.new()) == []
    writer.emit("log", loss=1.5)
    with (tmp_path / "events.jsonl").open("a") as stream:
        stream.write('{"event": "ha')
    assert [event["loss"] for event in reader.new()] == [1.5]
    with (tmp_path / "events.jsonl").open("a") as stream:
        stream.write('lf"}\n')
    assert [event["event"] for event in reader.new()] == ["half"]
    EventWriter(tmp_path, active=False).emit("silent")
    assert list(reader.new()) == []


def test_policy_state_survives_json() -> None:
    import numpy as np

    state = {"a": np.array([[1.5, 2.0]]), "b": [np.int64(3), {"c": (1, None)}], "empty": np.empty((0, 2))}
    back = restored(json.loads(json.dumps(jsonable(state))))
    assert back["a"].dtype == np.float64
    assert back["a"].tolist() == [[1.5, 2.0]]
    assert back["b"] == [3, {"c": [1, None]}]
    assert back["empty"].shape == (0, 2)
