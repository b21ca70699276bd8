"""Case 21: a misspelt key of dataset_info.json is found when it is handed to training, not minutes later."""

import json
import shutil
from pathlib import Path

import pytest

from datamill.errors import DatamillError
from datamill.workflows.llamafactory_dataset import check_entry, read_registry, register_output, require_entry
from datamill.workflows.spec import RegistrySpec

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "21-registry-key-typo"
pytestmark = pytest.mark.skipif(not CASE.is_dir(), reason="needs ../shared")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path in CASE.glob("*.json"):
        shutil.copy(path, tmp_path)
    return tmp_path


def test_the_key_and_the_column_are_named(folder: Path) -> None:
    entry = read_registry(folder / "dataset_info.json")["mine"]
    issues = check_entry("mine", entry, folder)
    assert [(issue.code, issue.nearest) for issue in issues if "`format`" in issue.message] == [
        ("DM-OPB-021", "formatting")
    ]
    assert any("column `instruction`" in issue.message and "does not exist" in issue.message for issue in issues)


def test_training_is_refused_until_it_is_fixed_and_others_stay(folder: Path) -> None:
    before = json.loads((folder / "dataset_info.json").read_text())
    with pytest.raises(DatamillError) as refused:
        require_entry(folder, "mine", "sft")
    assert refused.value.exit_code == 3
    assert json.loads((folder / "dataset_info.json").read_text()) == before
    register_output(folder / "mine.json", RegistrySpec(name="mine", formatting="sharegpt"), rows=1, stage="sft")
    assert require_entry(folder, "mine", "sft")["formatting"] == "sharegpt"
    assert read_registry(folder / "dataset_info.json")["other"] == before["other"]
