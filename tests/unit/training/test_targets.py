import json
from pathlib import Path
from typing import Any

import pytest

from datamill.errors import DatamillError
from datamill.training.config import from_mapping
from datamill.training.datasets import RowText, normalised
from datamill.training.targets import check_disjoint, check_targets

SHARED = Path(__file__).parents[4] / "shared"
GSM8K = SHARED / "data" / "gsm8k"
LESS = {"train_type": "dynamic_select", "component_name": "less", "update_step": 4}


@pytest.fixture
def check(tmp_path: Any) -> Any:
    def run(train: Any, target: Any, **section: Any) -> Any:
        for name, rows in (("d", train), ("t", target)):
            text = "".join(json.dumps(row) + "\n" for row in rows)
            (tmp_path / f"{name}.jsonl").write_text(text, encoding="utf-8")
        info = {"d": {"file_name": "d.jsonl"}, "t": {"file_name": "t.jsonl"}, "hub": {"hf_hub_url": "a/b"}}
        (tmp_path / "dataset_info.json").write_text(json.dumps(info))
        data = {"model_name_or_path": "tiny", "dataset": "d", "dataset_dir": str(tmp_path), "eval_dataset": "t"}
        return check_targets(from_mapping(data | {"dataflex": {**LESS, **section}}, base_dir=tmp_path))

    return run


def row(question: Any, answer: Any = "it is so") -> Any:
    return {"instruction": question, "input": "", "output": answer}


def test_sets_that_do_not_meet_pass(check: Any) -> None:
    assert check([row("What is one?")], [row("What is two?")]) == []


def test_same_question_in_other_dress_is_found(check: Any) -> None:
    with pytest.raises(DatamillError) as caught:
        check([row("What  IS one?"), row("b")], [row("c"), row("what is one", "another answer")])
    assert caught.value.code == "DM-TRAIN-007"
    assert "1 of 2 rows" in str(caught.value)


def test_sharegpt_rows_are_read_by_their_tags() -> None:
    from datamill.training.datasets import _text

    messages = [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "A"}]
    entry = {
        "formatting": "sharegpt",
        "columns": {"messages": "messages"},
        "tags": {"role_tag": "role", "content_tag": "content", "user_tag": "user", "assistant_tag": "assistant"},
    }
    assert _text({"messages": messages}, entry) == RowText("Q", "Q\nA")


def test_texts_without_a_question_are_compared_whole() -> None:
    with pytest.raises(DatamillError, match="DM-TRAIN-007"):
        check_disjoint("t", [RowText("", "Same text.")], "d", [RowText("", "same text")])
    check_disjoint("t", [RowText("", "Same text.")], "d", [RowText("", "another")])


def test_set_that_is_not_here_is_noted(check: Any) -> None:
    notes = check([row("a")], [row("b")], target_dataset="hub")
    assert "hub" in notes[0]


def test_empty_target_is_refused(check: Any) -> None:
    with pytest.raises(DatamillError, match="no rows"):
        check([row("a")], [])


@pytest.mark.skipif(not GSM8K.is_dir(), reason="../shared is absent")
def test_renamed_copy_of_a_test_set_is_refused_by_content(check: Any) -> None:
    lines = (GSM8K / "example_model_solutions.jsonl").read_text(encoding="utf-8").splitlines()[:40]
    questions = [json.loads(line)["question"] for line in lines]
    with pytest.raises(DatamillError) as caught:
        check([row("a")], [row(question.upper()) for question in questions])
    assert caught.value.code == "DM-TRAIN-008"
    assert "gsm8k:test" in str(caught.value)


@pytest.mark.skipif(not GSM8K.is_dir(), reason="../shared is absent")
def test_training_questions_of_the_same_benchmark_pass(check: Any) -> None:
    lines = (GSM8K / "train.jsonl").read_text(encoding="utf-8").splitlines()[:60]
    assert check([row("a")], [row(json.loads(line)["question"]) for line in lines]) == []


def test_normalised() -> None:
    assert normalised("  Ｗhat—is\tONE? ") == "what is one"
    assert normalised("one") != normalised("two")
