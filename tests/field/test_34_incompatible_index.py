"""Case 34: an index made under other settings is refused, naming the setting."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.case_rows import load_rows

from datamill.errors import DatamillError
from datamill.operators.declaration import Context
from datamill.operators.dedup.minhash import MinHashParams, run
from datamill.services.minhash.index import require_equal_settings

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "34-incompatible-index"
pytestmark = pytest.mark.skipif(not CASE.exists(), reason="../shared/cases is not there")


CASE_KEYS = ("num_perm", "seed", "ngram", "lowercase", "tokenizer")


def case_settings() -> tuple[dict[str, Any], dict[str, Any]]:
    a, b = (json.loads((CASE / f"settings_{name}.json").read_text()) for name in "ab")
    return a, b


def test_the_differing_key_of_the_case_is_named() -> None:
    stored, wanted = case_settings()
    with pytest.raises(DatamillError) as caught:
        require_equal_settings(stored, wanted, "index")
    assert caught.value.code == "DM-DEDUP-002"
    assert caught.value.issues[0].context["different"] == ["num_perm"]


@pytest.mark.parametrize("key", CASE_KEYS)
def test_changing_any_one_value_is_refused_with_its_name(key: str) -> None:
    stored, _ = case_settings()
    changed = not stored[key] if isinstance(stored[key], bool) else f"{stored[key]}x"
    with pytest.raises(DatamillError, match=f"`{key}`"):
        require_equal_settings(stored, {**stored, key: changed}, "index")
    require_equal_settings(stored, dict(stored), "index")


@pytest.mark.parametrize(
    ("change", "named"),
    [({"bands": 16}, "num_perm"), ({"seed": 2}, "seed"), ({"ngram": 4}, "ngram"), ({"unit": "words"}, "unit")],
)
def test_the_operator_refuses_the_reuse(tmp_path: Path, change: dict[str, Any], named: str) -> None:
    data, _ = load_rows(CASE / "in.jsonl")
    context = Context("near", project=tmp_path)
    run([data], MinHashParams(save_index="index"), context)
    with pytest.raises(DatamillError, match=f"`{named}`"):
        run([data], MinHashParams(against="./index", **change), context)
    assert run([data], MinHashParams(against="./index"), context).collect()["fate"].to_pylist() == ["merged"] * 2
