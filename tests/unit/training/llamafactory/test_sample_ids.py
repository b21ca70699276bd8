"""Ids stay with their rows through LLaMA-Factory's loading, whatever it drops."""

import json
import subprocess
import sys
from types import SimpleNamespace
from typing import Any, Never

import pytest

from datamill.services.records import row_id
from datamill.training.llamafactory.sample_ids import (
    IdBook,
    TrackingProcessor,
    content_ids,
    own_ids,
    with_tracking,
)

LOAD = """
import json, sys
from pathlib import Path
from datamill.training.llamafactory.torchaudio_placeholder import install
install()
from llamafactory.data import get_template_and_fix_tokenizer
from llamafactory.hparams import get_train_args
from llamafactory.model import load_tokenizer
from llamafactory.train.sft import workflow
from datamill.training.llamafactory import placement
from datamill.training.llamafactory.sample_ids import take_ids
from datamill.training.run_spec import RunSpec
from datamill.training.section import DynamicSection
arguments = json.loads(Path(sys.argv[1]).read_text())
model_args, data_args, training_args, _, _ = get_train_args(arguments)
module = load_tokenizer(model_args)
template = get_template_and_fix_tokenizer(module["tokenizer"], data_args)
with placement.in_place(RunSpec(Path("."), {}, DynamicSection(), {})):
    placed = workflow.get_dataset(template, model_args, data_args, training_args, stage="sft", **module)
    dropped = workflow.CustomSeq2SeqTrainer.dropped_ids
    rows, ids = take_ids(placed["train_dataset"])
    gone = dropped(ids)
stock = workflow.get_dataset(template, model_args, data_args, training_args, stage="sft", **module)["train_dataset"]
tokenizer = module["tokenizer"]
texts = [tokenizer.decode([t for t in row["labels"] if t >= 0]) for row in rows]
print("FOUND", json.dumps({"ids": ids, "texts": texts, "dropped": gone, "same": list(stock["input_ids"]) == list(rows["input_ids"]),
    "columns": sorted(stock.column_names) == sorted(rows.column_names)}))
"""


@pytest.mark.train
@pytest.mark.slow
def test_drops_do_not_shift_ids(workbench: Any, tmp_path: Any) -> None:
    """Rows without an answer are dropped; two sets are merged, one with ids and one without, and shuffled."""
    with_id = [
        {"_id": f"k{i}", "instruction": f"q{i}", "input": "", "output": None if i in {2, 5} else f"a{i}."}
        for i in range(10)
    ]
    without = [{"instruction": f"p{i}", "input": "", "output": f"b{i}."} for i in range(4)]
    (tmp_path / "one.json").write_text(json.dumps(with_id))
    (tmp_path / "two.json").write_text(json.dumps(without))
    info = {"one": {"file_name": "one.json"}, "two": {"file_name": "two.json"}}
    (tmp_path / "dataset_info.json").write_text(json.dumps(info))
    arguments = workbench.arguments(
        dataset="one,two", dataset_dir=str(tmp_path), output_dir=str(tmp_path / "out"), val_size=0.2
    )
    (tmp_path / "arguments.json").write_text(json.dumps(arguments))
    command = [sys.executable, "-c", LOAD, str(tmp_path / "arguments.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(next(line[6:] for line in done.stdout.splitlines() if line.startswith("FOUND")))
    answer = {f"k{i}": f"a{i}." for i in range(10)} | {row_id("two.json", i): f"b{i}." for i in range(4)}
    assert len(found["ids"]) == len(set(found["ids"])) > 5
    for identity, text in zip(found["ids"], found["texts"], strict=True):
        assert text.startswith(answer[identity])
    assert set(found["dropped"]) <= {"k2", "k5"}
    assert not {"k2", "k5"} & set(found["ids"])
    assert found["same"]
    assert found["columns"]


class Half:
    """A processor that keeps every second value."""

    def preprocess_dataset(self, examples: Any) -> Any:
        kept = [value for value in examples["x"] if value % 2 == 0]
        return {"input_ids": [[value] for value in kept]} if kept else {}

    def print_data_example(self, example: Any) -> Never:
        raise AssertionError(example)


def test_tracking_one_row_at_a_time() -> None:
    rows = {"x": [0, 1, 2, 3, 4], "_id": list("abcde")}
    assert TrackingProcessor(Half()).preprocess_dataset(rows) == {"input_ids": [[0], [2], [4]], "_id": ["a", "c", "e"]}


def test_packing_processors_are_left_alone() -> None:
    inner = Half()
    assert with_tracking(lambda *_: inner)(SimpleNamespace(packing=True)) is inner
    assert isinstance(with_tracking(lambda *_: inner)(SimpleNamespace(packing=False)), TrackingProcessor)


def test_book_counts_repeats() -> None:
    assert IdBook(["a", "b", "a", "c"]).dropped(["a", "c"]) == ["b", "a"]
    assert IdBook([]).dropped(["a"]) == []


def test_ids_of_rows_that_carry_none() -> None:
    assert own_ids("one", 2) != own_ids("two", 2)
    assert len(set(own_ids("one", 5))) == 5
    first = content_ids([[1, 2], [3], [1, 2]])
    assert len(set(first)) == 3
    assert content_ids([[3], [1, 2], [1, 2]]) == [first[1], first[0], first[2]]
