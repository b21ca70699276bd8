"""Registration for LLaMA-Factory: entries found from files, every misfit named, other entries untouched."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamill.errors import DatamillError
from datamill.workflows.llamafactory_dataset import (
    OPENAI_TAGS,
    build_entry,
    check_entry,
    read_registry,
    reason_table,
    register_output,
    require_entry,
)
from datamill.workflows.spec import RegistrySpec

CHAT = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]}
SHAREGPT = {"conversations": [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "yo"}]}
ALPACA = {"instruction": "a", "input": "", "output": "b", "system": "s", "history": []}
PAIR = {"instruction": "q", "chosen": "a", "rejected": "b"}


def written(folder: Path, *rows: dict[str, Any], name: str = "data.jsonl") -> Path:
    path = folder / name
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(list(rows)), path)
    elif path.suffix == ".json":
        path.write_text(json.dumps(list(rows)))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("name", ["d.jsonl", "d.json", "d.parquet"])
@pytest.mark.parametrize(
    ("row", "formatting", "entry"),
    [
        (CHAT, "sharegpt", {"formatting": "sharegpt", "columns": {"messages": "messages"}, "tags": OPENAI_TAGS}),
        (SHAREGPT, "sharegpt", {"formatting": "sharegpt", "columns": {"messages": "conversations"}}),
        (
            {key: ALPACA[key] for key in ("instruction", "input", "output", "system")},
            "alpaca",
            {"columns": {"prompt": "instruction", "response": "output", "query": "input", "system": "system"}},
        ),
        ({"text": "corpus"}, "alpaca", {"columns": {"prompt": "text"}}),
        (
            PAIR,
            "alpaca",
            {"ranking": True, "columns": {"prompt": "instruction", "chosen": "chosen", "rejected": "rejected"}},
        ),
    ],
)
def test_entries_are_found_from_the_file(
    tmp_path: Path, name: str, row: dict[str, Any], formatting: Any, entry: dict[str, Any]
) -> None:
    file = written(tmp_path, row, name=name)
    built = build_entry(file, RegistrySpec(name="d", formatting=formatting))
    assert built == {"file_name": name, **entry}
    assert check_entry("d", built, tmp_path) == []


LOAD = """
import json, sys
from datamill.training.llamafactory import torchaudio_placeholder
torchaudio_placeholder.install()
from llamafactory.data.parser import get_dataset_list
(attr,) = get_dataset_list(["d"], sys.argv[1])
names = ("load_from", "dataset_name", "formatting", "messages", "role_tag", "user_tag", "assistant_tag", "ranking")
print("ENTRY" + json.dumps([getattr(attr, name) for name in names]))
"""


@pytest.mark.slow
@pytest.mark.train
def test_what_we_write_is_what_llamafactory_reads(tmp_path: Path) -> None:
    register_output(written(tmp_path, CHAT), RegistrySpec(name="d"), rows=1)
    command = [sys.executable, "-c", LOAD, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    read = json.loads(done.stdout.split("ENTRY", 1)[1].splitlines()[0])
    assert read == ["file", "data.jsonl", "sharegpt", "messages", "role", "user", "assistant", False]


def test_other_entries_keep_their_place_and_content(tmp_path: Path) -> None:
    before = {"z": {"hf_hub_url": "x/y", "odd": 1}, "a": {"file_name": "é.json"}}
    (tmp_path / "dataset_info.json").write_text(json.dumps(before))
    register_output(written(tmp_path, CHAT), RegistrySpec(name="mine"), rows=1)
    after = read_registry(tmp_path / "dataset_info.json")
    assert list(after) == ["z", "a", "mine"]
    assert {key: after[key] for key in before} == before


def test_registering_again_changes_nothing(tmp_path: Path) -> None:
    file = written(tmp_path, CHAT)
    path = register_output(file, RegistrySpec(name="mine"), rows=1)
    stamp, content = path.stat().st_mtime_ns, path.read_bytes()
    register_output(file, RegistrySpec(name="mine"), rows=1)
    assert (path.stat().st_mtime_ns, path.read_bytes()) == (stamp, content)


@pytest.mark.parametrize(
    ("entry", "code", "text"),
    [
        ({"file_name": "data.jsonl", "format": "sharegpt"}, "DM-OPB-021", "did you mean `formatting`"),
        ({"file_name": "data.jsonl", "columns": {"promt": "x"}}, "DM-OPB-021", "did you mean `prompt`"),
        ({"file_name": "data.jsonl", "tags": {"roletag": "x"}}, "DM-OPB-021", "did you mean `role_tag`"),
        ({"file_name": "data.jsonl"}, "DM-OPB-023", "`instruction` (prompt) does not exist"),
        ({"file_name": "data.jsonl", "formatting": "sharegpt"}, "DM-OPB-023", "did you mean"),
        (
            {"file_name": "data.jsonl", "formatting": "sharegpt", "columns": {"messages": "messages"}},
            "DM-OPB-024",
            "no message has the key `from`",
        ),
        (
            {
                "file_name": "data.jsonl",
                "formatting": "sharegpt",
                "columns": {"messages": "messages"},
                "tags": {**OPENAI_TAGS, "user_tag": "human"},
            },
            "DM-OPB-024",
            "the role `human` (user_tag) does not occur",
        ),
        ({"file_name": "absent.jsonl"}, "DM-OPB-028", "not there"),
        ({"file_name": "empty.jsonl"}, "DM-OPB-025", "no rows"),
    ],
)
def test_every_misfit_is_named(tmp_path: Path, entry: dict[str, Any], code: str, text: str) -> None:
    row = {"messages": CHAT["messages"], "conversation": []}
    written(tmp_path, row)
    (tmp_path / "empty.jsonl").write_text("")
    issues = check_entry("d", entry, tmp_path)
    assert any(issue.code == code and text in issue.render() for issue in issues), issues


def test_stage_and_ranking_must_fit(tmp_path: Path) -> None:
    file = written(tmp_path, PAIR)
    spec = RegistrySpec(name="p", formatting="alpaca", ranking=True)
    with pytest.raises(DatamillError, match="DM-OPB-026"):
        register_output(file, spec, rows=1, stage="sft")
    assert not (tmp_path / "dataset_info.json").exists()
    register_output(file, spec, rows=1, stage="dpo")
    assert require_entry(tmp_path, "p", "rm")["ranking"] is True
    with pytest.raises(DatamillError, match="DM-OPB-026"):
        require_entry(tmp_path, "p", "sft")
    chat = written(tmp_path, CHAT, name="c.jsonl")
    with pytest.raises(DatamillError, match="holds no preference pairs"):
        register_output(chat, RegistrySpec(name="c"), rows=1, stage="dpo")


def test_names_of_others_are_not_taken(tmp_path: Path) -> None:
    (tmp_path / "dataset_info.json").write_text('{"mine": {"hf_hub_url": "x/y"}}')
    with pytest.raises(DatamillError, match="DM-OPB-029"):
        register_output(written(tmp_path, CHAT), RegistrySpec(name="mine"), rows=1)


def test_a_broken_registry_is_not_replaced(tmp_path: Path) -> None:
    for content in ("{broken", "[1]"):
        (tmp_path / "dataset_info.json").write_text(content)
        with pytest.raises(DatamillError, match="DM-OPB-027"):
            register_output(written(tmp_path, CHAT), RegistrySpec(name="d"), rows=1)
        assert (tmp_path / "dataset_info.json").read_text() == content


def test_unknown_names_get_the_nearest(tmp_path: Path) -> None:
    register_output(written(tmp_path, CHAT), RegistrySpec(name="mine"), rows=1)
    with pytest.raises(DatamillError, match="did you mean `mine`"):
        require_entry(tmp_path, "mien")


def test_reason_table() -> None:
    assert reason_table({"no_user_turn": 1, "empty_answer": 2}) == "2 empty answer, 1 no user turn"
    assert (
        reason_table({"dropped:empty_answer": 1, "failed:empty_answer": 2, "dropped:tie": 1}) == "3 empty answer, 1 tie"
    )
    assert reason_table({}) == "no row came in"
