"""dedup.minhash against an older set: an input, a saved index, incremental growth."""

from pathlib import Path
from typing import Any

import pytest

from datamill.errors import DatamillError
from datamill.operators.dedup.against import is_path
from datamill.services.minhash.index import load_index
from datamill.services.minhash.settings import SketchSettings

BASE = "the harbour opens at six and closes at nine every day of the week except on public holidays in winter"
NEAR = BASE + " time"
OTHER = "red apples and blue plums lie in a bowl on the kitchen table of my grandmother's old house by the sea"
THIRD = "tickets for the evening concert are sold at the gate from five until the last seat has been taken by someone"


def kept(decisions: dict[str, dict[str, Any]]) -> list[str]:
    return [name for name, row in decisions.items() if row["fate"] is None]


@pytest.mark.parametrize("backend", ["fused", "datasketch"])
@pytest.mark.parametrize("source", ["input", "index"])
def test_only_new_rows_leave_and_name_the_most_similar_old_row(
    decide: Any, make: Any, source: str, backend: str
) -> None:
    old, new = make([OTHER, NEAR, BASE, BASE], prefix="o"), make([BASE, THIRD, NEAR + " and on", OTHER + "!"], 3, "n")
    if source == "index":
        decide("dedup.minhash", old, save_index="idx", threshold=1.0, backend=backend)
        found = decide("dedup.minhash", new, against="./idx", backend=backend)
    else:
        found = decide("dedup.minhash", new, {"old": old}, against="old", backend=backend)
    assert kept(found) == ["n1"]
    assert {name: row["into"] for name, row in found.items() if row["into"]} == {"n0": "o2", "n2": "o1", "n3": "o0"}
    assert found["n0"]["value"] == 1.0
    assert found["n2"]["value"] == 17 / 19
    assert {row["reason"] for row in found.values() if row["fate"]} == {"in_older_set"}
    assert {row["fate"] for row in found.values() if row["fate"]} == {"merged"}
    assert found["n1"]["cluster_id"] == "n1"


def test_duplicates_inside_the_new_set_stay(decide: Any, make: Any) -> None:
    found = decide("dedup.minhash", make([THIRD, THIRD]), {"old": make([BASE], prefix="o")}, against="old")
    assert kept(found) == ["r0", "r1"]


def test_equal_texts_match_the_first_old_row(decide: Any, make: Any) -> None:
    old = make([OTHER, *[BASE] * 100], 7, "o")
    found = decide("dedup.minhash", make([BASE]), {"old": old}, against="old")
    assert found["r0"]["into"] == "o1"


@pytest.mark.parametrize("texts", [[], ["", None], [OTHER]])
def test_an_old_set_without_a_match(decide: Any, make: Any, texts: list[str | None]) -> None:
    found = decide("dedup.minhash", make([BASE, ""]), {"old": make(texts, prefix="o")}, against="old")
    assert [row["fate"] for row in found.values()] == [None, "noted"]
    assert decide("dedup.minhash", make([]), {"old": make(texts, prefix="o")}, against="old") == {}


def test_unverified_match_has_no_value_unless_equal(decide: Any, make: Any) -> None:
    found = decide("dedup.minhash", make([NEAR, OTHER]), {"old": make([BASE, OTHER], prefix="o")}, against="old",
                   verify="none", threshold=0.99)  # fmt: skip
    assert [(row["into"], row["value"]) for row in found.values()] == [("o0", None), ("o1", 1.0)]


def test_short_texts_are_matched_whole(decide: Any, make: Any) -> None:
    found = decide("dedup.minhash", make(["yes", "no", "是"]), {"old": make(["YES ", "是"], prefix="o")}, against="old")
    assert [row["into"] for row in found.values()] == ["o0", None, "o1"]


def test_index_grows_by_the_rows_that_stay(decide: Any, make: Any, tmp_path: Path) -> None:
    decide("dedup.minhash", make([BASE, NEAR, OTHER], prefix="a"), save_index="first")
    assert load_index(tmp_path / "first", SketchSettings()).rows["_id"].to_pylist() == ["a0", "a2"]
    decide("dedup.minhash", make([NEAR, THIRD, ""], prefix="b"), against="./first", save_index="second")
    assert load_index(tmp_path / "second", SketchSettings()).rows["_id"].to_pylist() == ["a0", "a2", "b1"]
    found = decide("dedup.minhash", make([THIRD, OTHER, "new"], prefix="c"), against="./second")
    assert [row["into"] for row in found.values()] == ["b1", "a2", None]


@pytest.mark.parametrize(
    ("key", "value"), [("ngram", 4), ("seed", 2), ("verify", "none"), ("bands", 13), ("unit", "words")]
)
def test_index_of_other_settings_is_refused(decide: Any, make: Any, key: str, value: object) -> None:
    decide("dedup.minhash", make([BASE]), save_index="idx")
    with pytest.raises(DatamillError, match=f"DM-DEDUP-002.*`{key}`"):
        decide("dedup.minhash", make([BASE]), against="./idx", **{key: value})


def test_threshold_may_differ_from_that_of_the_index(decide: Any, make: Any) -> None:
    decide("dedup.minhash", make([BASE]), save_index="idx", threshold=0.9)
    assert kept(decide("dedup.minhash", make([NEAR]), against="./idx", threshold=0.95)) == ["r0"]
    assert kept(decide("dedup.minhash", make([NEAR]), against="./idx", threshold=0.7)) == []


@pytest.mark.parametrize("name", ["old", "./missing"])
def test_unknown_older_set(decide: Any, make: Any, name: str) -> None:
    with pytest.raises(DatamillError, match="DM-DEDUP-006"):
        decide("dedup.minhash", make([BASE]), against=name)


def test_paths_have_a_slash() -> None:
    assert [is_path(name) for name in ("old", "./old", "a/b", "/x", "old.v2")] == [False, True, True, True, False]


@pytest.mark.parametrize("partitions", [1, 2, 5, 50])
def test_partitions_of_either_set_change_nothing(decide: Any, make: Any, partitions: int) -> None:
    old = [OTHER, NEAR, BASE, THIRD] * 5
    new = [BASE + " x", THIRD, "unseen", OTHER] * 3
    expected = decide("dedup.minhash", make(new), {"old": make(old, prefix="o")}, against="old")
    found = decide("dedup.minhash", make(new, partitions), {"old": make(old, partitions, "o")}, against="old")
    assert found == expected
