from pathlib import Path
from typing import Any

import pytest

from datamill.errors import DatamillError
from datamill.training.config import RESERVED, TrainConfig, from_mapping
from datamill.training.yaml_text import dump_yaml, load_yaml

SHARED = Path(__file__).parents[4] / "shared"
BASE = {"model_name_or_path": "tiny", "stage": "sft", "do_train": True, "dataset": "d", "dataset_dir": "data"}
LESS = {"train_type": "dynamic_select", "component_name": "less", "update_step": 4}


def check(section: Any, base_dir: Any = Path(), **changes: Any) -> Any:
    return from_mapping({**BASE, **changes, "dataflex": section}, base_dir=base_dir)


def refused(section: Any = None, **changes: Any) -> Any:
    with pytest.raises(DatamillError) as caught:
        check(section if section is not None else {}, **changes)
    return caught.value


def test_section_is_read() -> None:
    config = check(LESS | {"component_params": {"proj_dim": 16}, "warmup_step": 2, "update_times": 3})
    assert config.section.component_params == {"proj_dim": 16}
    assert config.step_rule().total == 14
    assert "dataflex" not in config.render()


def test_flat_keys_of_dataflex_mean_the_same() -> None:
    flat = from_mapping({**BASE, **LESS, "warmup_step": 2}, base_dir=Path())
    assert flat.section == check(LESS | {"warmup_step": 2}).section
    assert flat.llamafactory == BASE


def test_without_any_key_of_ours_llamafactory_runs_as_it_is() -> None:
    assert from_mapping({**BASE, "stage": "dpo"}, base_dir=Path()).section is None


@pytest.mark.skipif(not SHARED.is_dir(), reason="../shared is absent")
def test_dataflex_file_is_accepted_unchanged() -> None:
    path = SHARED / "bench" / "dataflex_baseline" / "less.yaml"
    config = TrainConfig.from_yaml(path, base_dir=path.parent)
    assert config.section.component_name == "less"
    assert config.section.component_params == {"gradient_type": "adam", "proj_dim": 4096, "seed": 123}
    assert (config.section.warmup_step, config.section.update_step, config.section.update_times) == (4, 4, 1)
    assert config.step_rule().total == 8
    assert len(config.notes) == 2
    assert "cache_dir" in config.notes[0]
    assert config.llamafactory["save_strategy"] == "no"


@pytest.mark.parametrize(
    ("section", "changes", "key", "near"),
    [
        ({}, {"lora_rnk": 3}, "lora_rnk", "lora_rank"),
        ({}, {"learning_rat": 3}, "learning_rat", "learning_rate"),
        ({"warmup_stp": 3}, {}, "warmup_stp", "warmup_step"),
        ({}, {"update_tims": 3}, "update_tims", "update_times"),
    ],
)
def test_unknown_keys_are_errors_with_the_nearest(section: Any, changes: Any, key: Any, near: Any) -> None:
    error = refused(section, **changes)
    assert error.code == "DM-TRAIN-001"
    assert key in str(error)
    assert error.issues[0].nearest == near


def test_every_unknown_key_is_reported_at_once() -> None:
    assert [issue.field for issue in refused(lora_rnk=1, cutof_len=2).issues] == ["lora_rnk", "cutof_len"]


def test_unknown_parameter_of_the_method() -> None:
    error = refused(LESS | {"component_params": {"proj_dmi": 4}})
    assert error.code == "DM-SIG-011"
    assert error.issues[0].nearest == "proj_dim"


def test_unknown_method() -> None:
    error = refused(LESS | {"component_name": "lesss"})
    assert error.code == "DM-SIG-010"
    assert error.issues[0].nearest == "less"


@pytest.mark.parametrize("kind", ["dynamic_mix", "dynamic_weight", "dynamic_reorder", "dynamic_selekt"])
def test_other_train_types_name_what_exists(kind: Any) -> None:
    error = refused({"train_type": kind})
    assert error.code == "DM-TRAIN-003"
    assert "static or dynamic_select" in str(error)


@pytest.mark.parametrize("stage", ["dpo", "kto", "rm", "ppo"])
def test_other_stages_are_refused(stage: Any) -> None:
    error = refused(LESS, stage=stage)
    assert error.code == "DM-TRAIN-005"
    assert "sft or pt" in str(error)


def test_mixture_keys_are_refused_unless_off() -> None:
    assert refused({"init_mixture_proportions": [0.5, 0.5]}).code == "DM-TRAIN-003"
    assert check({"static_mix": False}).section.train_type == "static"


def test_key_in_both_spellings() -> None:
    error = refused({"warmup_step": 3}, warmup_step=3)
    assert error.code == "DM-TRAIN-002"
    assert "warmup_step" in str(error)


@pytest.mark.parametrize("section", [{"train_type": "dynamic_select"}, LESS | {"update_step": 0}, {"warmup_step": -1}])
def test_bad_values(section: Any) -> None:
    assert refused(section).code == "DM-TRAIN-004"


def test_static_with_parameters_is_refused() -> None:
    assert "reads no component_params" in str(refused({"component_params": {"seed": 1}}))


def test_memory_of_past_rounds_needs_the_whole_pool() -> None:
    assert check(LESS | {"component_params": {"checkpoints": 2}}).section is not None
    error = refused(LESS | {"component_params": {"checkpoints": 2}, "candidate_window": 8})
    assert "another candidate window" in str(error)


@pytest.mark.parametrize(
    ("section", "changes"),
    [(LESS, {"packing": True}), (LESS, {"neat_packing": True}), ({}, {"streaming": True}), (LESS, {"stage": "pt"})],
)
def test_pipelines_that_cannot_be_planned(section: Any, changes: Any) -> None:
    assert refused(section, **changes).code == "DM-TRAIN-013"


def test_packing_is_fine_in_natural_order() -> None:
    assert check({}, packing=True).section.train_type == "static"


def block(**changes: Any) -> Any:
    inner = {"model_name_or_path": "tiny", "stage": "sft", **changes.pop("llamafactory", {})}
    return {"engine": "llamafactory", "dataset": "clean", "dataflex": LESS, "llamafactory": inner, **changes}


def test_workflow_block() -> None:
    config = TrainConfig.from_workflow(
        block(target_dataset="val", eval_dataset="val", gates=[{"metric": "eval_loss", "max": 2}]),
        dataset_dir=Path("out"),
        names={"clean": "clean_sft"},
        base_dir=Path(),
    )
    assert config.llamafactory["dataset"] == "clean_sft"
    assert config.llamafactory["dataset_dir"] == "out"
    assert config.section.targets == ("val",)
    assert config.gates[0]["max"] == 2


@pytest.mark.parametrize("key", RESERVED)
def test_reserved_keys_of_a_workflow_twice(key: Any) -> None:
    with pytest.raises(DatamillError) as caught:
        TrainConfig.from_workflow(block(llamafactory={key: "x"}), dataset_dir=Path("out"), base_dir=Path())
    assert caught.value.code == "DM-TRAIN-002"
    assert key in str(caught.value)


def test_unknown_key_of_a_workflow_block() -> None:
    with pytest.raises(DatamillError, match="did you mean `dataset`"):
        TrainConfig.from_workflow(block(datset="x"), dataset_dir=Path("out"), base_dir=Path())


def test_line_and_override(tmp_path: Any) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("stage: sft\nmodel_name_or_path: tiny\nlora_rnk: 3\n")
    with pytest.raises(DatamillError) as caught:
        TrainConfig.from_yaml(path)
    assert caught.value.issues[0].line == 3
    path.write_text("stage: sft\nmodel_name_or_path: tiny\ndataflex: {train_type: static}\n")
    config = TrainConfig.from_yaml(path, ["learning_rate=1.0e-5", "dataflex.train_step=7", "lora_rank=2"])
    assert config.llamafactory["learning_rate"] == 1e-5
    assert config.llamafactory["lora_rank"] == 2
    assert config.section.train_step == 7
    with pytest.raises(DatamillError, match="key=value"):
        TrainConfig.from_yaml(path, ["learning_rate"])


@pytest.mark.parametrize("text", ["- a\n- b\n", "a: [1\n", "a: 1\na: 2\n", "!!python/object:os.system {}\n"])
def test_files_that_are_no_configuration(tmp_path: Any, text: Any) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(DatamillError, match="DM-TRAIN-014"):
        TrainConfig.from_yaml(path)


def test_report_to_is_none_unless_chosen() -> None:
    assert check({}).render()["report_to"] == "none"
    assert check({}, report_to="tensorboard").render()["report_to"] == "tensorboard"


def test_rendered_yaml_is_read_back(tmp_path: Any) -> None:
    data = {"save_strategy": "no", "learning_rate": 1e-05, "list": [1, "on"], "none": None, "text": "a: b"}
    (tmp_path / "x.yaml").write_text(dump_yaml(data))
    assert dict(load_yaml(tmp_path / "x.yaml")) == data
    assert "'no'" in dump_yaml(data)


def test_fingerprint_feels_what_trains_and_not_where() -> None:
    base = check(LESS)
    assert base.fingerprint() == check(LESS, output_dir="elsewhere").fingerprint()
    assert base.fingerprint() != check(LESS, learning_rate=1.0).fingerprint()
    assert base.fingerprint() != check(LESS | {"seed": 1}).fingerprint()


def test_other_stages_of_a_workflow_run_as_llamafactory_has_them() -> None:
    """A train block without dataflex keys is a plan of ours for sft and pt only."""
    ours = TrainConfig.from_workflow(block(dataflex={}), dataset_dir=Path("out"), base_dir=Path())
    assert ours.section is not None
    assert ours.section.train_type == "static"
    stage = {"stage": "dpo", "model_name_or_path": "tiny", "template": "qwen"}
    plain = TrainConfig.from_workflow(
        {"dataset": "clean", "llamafactory": stage, "dataflex": {}}, dataset_dir=Path("out"), base_dir=Path()
    )
    assert plain.section is None
    with pytest.raises(DatamillError, match="stage `dpo` cannot be trained"):
        TrainConfig.from_workflow(
            {"dataset": "clean", "llamafactory": stage, "dataflex": {"train_type": "static"}},
            dataset_dir=Path("out"),
            base_dir=Path(),
        )
