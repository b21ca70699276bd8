"""Saved index: round trip, lookup, joining, and refusal of anything that does not fit."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from datamill.errors import DatamillError
from datamill.services.minhash.index import (
    MAX_OWNERS,
    MinHashIndex,
    build_index,
    load_index,
    require_equal_settings,
    save_index,
)
from datamill.services.minhash.settings import SketchSettings
from datamill.services.minhash.sketch import shingle_set_arrays, sketch_column

TEXTS = [
    "one two three four five six",
    "the harbour opens at six and closes at nine",
    "short",
    "one two three four five six",
]
SETTINGS = SketchSettings()


def make(texts: list[str] = TEXTS, settings: SketchSettings = SETTINGS, first: int = 0) -> MinHashIndex:
    column = pa.array(texts)
    sketches = sketch_column(column, settings)
    rows = pa.table({"_id": [f"r{first + i}" for i in range(len(texts))], "_ord": range(first, first + len(texts))})
    sets = shingle_set_arrays(column, settings.unit, settings.ngram)
    return build_index(settings, rows, sketches.keys, sketches.contents, *sets)


def matches(index: MinHashIndex, texts: list[str]) -> set[tuple[int, int]]:
    sketches = sketch_column(pa.array(texts), SETTINGS)
    query, owner = index.candidates(sketches.keys, sketches.contents)
    return set(zip(query.tolist(), owner.tolist(), strict=True))


def test_round_trip(tmp_path: Path) -> None:
    index = make()
    save_index(index, tmp_path / "deep" / "index")
    loaded = load_index(tmp_path / "deep" / "index", SETTINGS)
    assert loaded.rows.equals(index.rows)
    for name in ("keys", "owners", "contents", "order", "shingles", "limits"):
        assert np.array_equal(getattr(loaded, name), getattr(index, name)), name
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["index"]


def test_lookup_finds_equal_and_similar_rows_and_nothing_else() -> None:
    index = make()
    assert matches(index, ["One two  three four five SIX", "short", "nothing of this kind is in there"]) == {
        (0, 0), (0, 3), (1, 2),
    }  # fmt: skip


def test_lookup_on_an_empty_index_and_with_no_queries() -> None:
    empty = make([])
    assert matches(empty, ["a b c"]) == set()
    query, owner = make().candidates(np.empty((0, SETTINGS.bands), np.uint64), np.empty(0, np.uint64))
    assert len(query) == len(owner) == 0


def test_a_crowded_key_is_capped_at_its_first_rows() -> None:
    index = make(["the same text over and over again"] * (MAX_OWNERS + 20))
    assert matches(index, ["the same text over and over again"]) == {(0, i) for i in range(MAX_OWNERS)}


def test_joined_index_equals_one_made_at_once() -> None:
    joined, whole = make(TEXTS[:2]).joined(make(TEXTS[2:], first=2)), make()
    assert joined.rows.equals(whole.rows)
    for name in ("keys", "owners", "contents", "order", "shingles", "limits"):
        assert np.array_equal(getattr(joined, name), getattr(whole, name)), name


OTHER: dict[str, Any] = {
    "unit": "words", "ngram": 4, "bands": 20, "rows": 7, "seed": 2, "verify": "none", "backend": "datasketch",
}  # fmt: skip


@pytest.mark.parametrize("key", OTHER)
def test_any_other_setting_is_refused_by_name(tmp_path: Path, key: str) -> None:
    save_index(make(), tmp_path / "index")
    with pytest.raises(DatamillError) as caught:
        load_index(tmp_path / "index", replace(SETTINGS, **{key: OTHER[key]}))
    assert caught.value.code == "DM-DEDUP-002"
    assert set(caught.value.issues[0].context["different"]) == {
        key,
        *(["num_perm"] if key in {"bands", "rows"} else []),
    }
    assert f"`{key}`" in str(caught.value)


@pytest.mark.parametrize(("key", "value"), [("normalisation", "nfkc"), ("version", 99), ("surprise", 1)])
def test_settings_that_are_no_parameter_count_too(tmp_path: Path, key: str, value: object) -> None:
    save_index(make(), tmp_path / "index")
    path = tmp_path / "index" / "settings.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    with pytest.raises(DatamillError, match=key):
        load_index(tmp_path / "index", SETTINGS)


def test_every_difference_is_named() -> None:
    with pytest.raises(DatamillError) as caught:
        require_equal_settings({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 9, "d": 4}, "here")
    assert caught.value.issues[0].context["different"] == ["b", "c", "d"]
    require_equal_settings({"a": 1}, {"a": 1}, "here")


def test_saving_replaces_an_equal_index_only(tmp_path: Path) -> None:
    save_index(make(), tmp_path / "index")
    save_index(make(["fresh row"]), tmp_path / "index")
    assert load_index(tmp_path / "index", SETTINGS).rows.num_rows == 1
    with pytest.raises(DatamillError, match="DM-DEDUP-002"):
        save_index(make(settings=replace(SETTINGS, seed=9)), tmp_path / "index")
    assert load_index(tmp_path / "index", SETTINGS).rows.num_rows == 1


def test_saving_never_touches_a_folder_that_is_no_index(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "data.txt").write_text("keep me")
    with pytest.raises(DatamillError, match="DM-DEDUP-004"):
        save_index(make(), tmp_path / "precious")
    assert (tmp_path / "precious" / "data.txt").read_text() == "keep me"


@pytest.mark.parametrize("damage", ["missing array", "cut array", "other rows", "no settings", "bad json", "a list"])
def test_damage_is_reported(tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "index"
    save_index(make(), folder)
    if damage == "missing array":
        (folder / "keys.npy").unlink()
    elif damage == "cut array":
        (folder / "owners.npy").write_bytes((folder / "owners.npy").read_bytes()[:40])
    elif damage == "other rows":
        np.save(folder / "contents.npy", np.zeros(2, np.uint64))
    elif damage == "no settings":
        (folder / "settings.json").unlink()
    else:
        (folder / "settings.json").write_text("{" if damage == "bad json" else "[1]")
    with pytest.raises(DatamillError, match="DM-DEDUP-003"):
        load_index(folder, SETTINGS)


def test_an_index_holds_no_text(tmp_path: Path) -> None:
    save_index(make(), tmp_path / "index")
    assert not any(b"harbour" in path.read_bytes() for path in (tmp_path / "index").iterdir())
