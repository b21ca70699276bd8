"""dedup.minhash: decisions, keep rules, actions, blanks, nulls, parameters and the plan's findings."""

import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest
from pydantic import ValidationError

from datamill.errors import DatamillError
from datamill.operators.declaration import ColumnType, Context, Effect
from datamill.operators.dedup.minhash import MinHashParams, curve_note, run
from datamill.operators.registry import find
from datamill.services.engines.tables import TableDataset

BASE = "the harbour opens at six and closes at nine every day of the week except on public holidays in winter"
NEAR = BASE + " time"  # 16 of 17 shingles
OTHER = "red apples and blue plums lie in a bowl on the kitchen table of my grandmother's old house by the sea"
OPERATOR = find("dedup.minhash")


def kept(decisions: dict[str, dict[str, Any]]) -> list[str]:
    return [name for name, row in decisions.items() if row["fate"] in {None, "noted"}]


def test_near_duplicate_is_merged_into_the_first(decide: Any) -> None:
    found = decide("dedup.minhash", [BASE, OTHER, NEAR])
    assert kept(found) == ["r0", "r1"]
    row = found["r2"]
    assert (row["fate"], row["reason"], row["into"], row["threshold"], row["detail"]) == (
        "merged", "near_duplicate", "r0", 0.8, None,
    )  # fmt: skip
    assert row["value"] == 16 / 17
    assert {name: (row["cluster_id"], row["cluster_size"]) for name, row in found.items()} == {
        "r0": ("r0", 2), "r1": ("r1", 1), "r2": ("r0", 2),
    }  # fmt: skip


def test_verification_keeps_what_is_below_the_threshold(decide: Any) -> None:
    assert kept(decide("dedup.minhash", [BASE, NEAR], threshold=0.95)) == ["r0", "r1"]
    assert kept(decide("dedup.minhash", [BASE, NEAR], threshold=16 / 17)) == ["r0"]


def test_unverified_bands_decide_alone_and_say_so(decide: Any) -> None:
    found = decide("dedup.minhash", [BASE, NEAR, BASE], threshold=0.99, verify="none")
    assert kept(found) == ["r0"]
    assert found["r1"]["value"] is None
    assert found["r2"]["value"] == 1.0


@pytest.mark.parametrize(("keep", "survivor"), [("first", "r0"), ("longest", "r2"), ("best:score", "r1")])
def test_keep_rules(decide: Any, make: Any, keep: str, survivor: str) -> None:
    data = make([BASE, NEAR, NEAR + " now"], score=pa.array([0.1, 0.9, None]))
    found = decide("dedup.minhash", data, keep=keep)
    assert kept(found) == [survivor]
    assert {row["cluster_id"] for row in found.values()} == {survivor}
    assert {row["into"] for name, row in found.items() if name != survivor} == {survivor}


def test_ties_go_to_the_first_and_absent_scores_lose(decide: Any, make: Any) -> None:
    texts = [BASE] * 4
    assert kept(decide("dedup.minhash", make(texts, score=pa.array([1, 5, 5, 2])), keep="best:score")) == ["r1"]
    assert kept(decide("dedup.minhash", make(texts), keep="longest")) == ["r0"]
    scores = pa.array([None, float("nan"), -1.0, None])
    assert kept(decide("dedup.minhash", make(texts, score=scores), keep="best:score")) == ["r2"]
    huge = pa.array([1, 2**53 + 1, 2**62, -(2**62)])
    assert kept(decide("dedup.minhash", make(texts, score=huge), keep="best:score")) == ["r2"]
    assert kept(decide("dedup.minhash", make(texts, score=pa.nulls(4, pa.float64())), keep="best:score")) == ["r0"]


def test_drop_all_leaves_singles_only(decide: Any) -> None:
    found = decide("dedup.minhash", [BASE, OTHER, NEAR, BASE], action="drop_all")
    assert kept(found) == ["r1"]
    assert {(row["fate"], row["reason"], row["into"]) for name, row in found.items() if name != "r1"} == {
        ("dropped", "near_duplicate_group", None)
    }
    assert found["r0"]["cluster_id"] == found["r3"]["cluster_id"] == "r0"


def test_chain_is_one_cluster_and_names_the_row_between(decide: Any) -> None:
    words = [f"w{i}" for i in range(60)]
    texts = [" ".join(words[i * 4 : i * 4 + 40]) for i in range(3)]
    found = decide("dedup.minhash", texts, threshold=0.75, bands=40, rows=4)
    assert kept(found) == ["r0"]
    assert found["r1"]["value"] == found["r2"]["value"] == 32 / 40
    assert (found["r1"]["detail"], found["r2"]["detail"]) == (None, "through r1")
    assert {row["cluster_size"] for row in found.values()} == {3}


def test_blank_texts_are_remarked_never_merged(decide: Any) -> None:
    texts = ["", " \t", "\u3000", BASE]
    found = decide("dedup.minhash", texts)
    assert kept(found) == ["r0", "r1", "r2", "r3"]
    assert [(row["fate"], row["reason"]) for row in found.values()] == [("noted", "empty_text")] * 3 + [(None, None)]
    assert {row["cluster_size"] for row in found.values()} == {1}
    assert kept(decide("dedup.minhash", texts, on_empty="drop")) == ["r3"]


def test_null_policies(decide: Any) -> None:
    texts = [None, BASE, None, BASE]
    assert kept(decide("dedup.minhash", texts)) == ["r0", "r1", "r2"]
    dropped = decide("dedup.minhash", texts, on_null="drop")
    assert kept(dropped) == ["r1"]
    assert (dropped["r0"]["fate"], dropped["r0"]["reason"]) == ("dropped", "null_text")
    with pytest.raises(DatamillError, match="DM-DEDUP-007"):
        decide("dedup.minhash", texts, on_null="error")
    assert kept(decide("dedup.minhash", [BASE, OTHER], on_null="error")) == ["r0", "r1"]


@pytest.mark.parametrize("partitions", [1, 3, 50])
def test_nothing_in_nothing_out(decide: Any, make: Any, partitions: int) -> None:
    assert decide("dedup.minhash", make([], partitions)) == {}
    assert kept(decide("dedup.minhash", make([BASE], partitions))) == ["r0"]


def test_schema_is_the_same_with_and_without_duplicates(make: Any) -> None:
    schemas = [
        run([make(texts, 3)], MinHashParams(), Context("s")).schema for texts in ([], [BASE], [BASE, BASE], [None, ""])
    ]
    assert all(schema.equals(schemas[0]) for schema in schemas)


def test_characters_find_cjk_near_duplicates_that_bytes_or_words_would_not(decide: Any) -> None:
    base = "春天来了，花园里的花都开了，孩子们在草地上奔跑，老人们坐在树下聊天。今天的天气非常好，大家都很高兴。"
    near = base.replace("非常", "十分")
    other = "股票市场今天大幅下跌，投资者对经济前景感到担忧，专家建议保持冷静，不要盲目抛售手中的股票和基金。"
    found = decide("dedup.minhash", [base, near, other], threshold=0.7)
    assert kept(found) == ["r0", "r2"]
    assert 0.7 <= found["r1"]["value"] < 0.9


def test_other_column_and_datasketch_backend(decide: Any, make: Any) -> None:
    data = make([OTHER, BASE, ""], body=pa.array([BASE, NEAR, OTHER]))
    for backend in ("fused", "datasketch"):
        found = decide("dedup.minhash", data, column="body", backend=backend)
        assert kept(found) == ["r0", "r2"]
        assert found["r1"]["value"] == 16 / 17


def test_two_rows_with_one_id_are_an_error() -> None:
    table = pa.table({"_id": ["x", "x"], "_ord": pa.array([0, 1], pa.int64()), "text": [BASE, BASE]})
    with pytest.raises(DatamillError, match="same `_id` x"):
        run([TableDataset.of(table)], MinHashParams(), Context("s"))


@pytest.mark.parametrize(
    ("given", "meant"), [(8, "0.8"), (80, "0.8"), (0.0, "0.8"), (-1, "0.8"), (95, "0.95"), (7.5, "0.75"), (1e9, "0.8")]
)
def test_threshold_out_of_range_suggests_the_likely_value(decide: Any, given: float, meant: str) -> None:
    severity, field, message = OPERATOR.check(MinHashParams(threshold=given))[0]
    assert (severity, field) == ("error", "threshold")
    assert message.endswith(f"did you mean {meant}?")
    with pytest.raises(DatamillError, match=f"DM-DEDUP-001.*{meant}"):
        decide("dedup.minhash", [BASE], threshold=given)


def test_threshold_one_keeps_all_but_equal_shingle_sets(decide: Any) -> None:
    assert kept(decide("dedup.minhash", [BASE, NEAR, BASE.upper()], threshold=1.0)) == ["r0", "r1"]


def test_plan_note_gives_the_curve() -> None:
    findings = OPERATOR.check(MinHashParams())
    assert [severity for severity, _, _ in findings] == ["note"]
    assert "= 0.92 at similarity 0.8" in findings[0][2]
    assert "(0.99 with the 6 rows" in findings[0][2]
    assert curve_note(MinHashParams(verify="none")).endswith("= 0.92 at similarity 0.8")


def test_warning_suggests_a_banding_that_detects() -> None:
    findings = OPERATOR.check(MinHashParams(threshold=0.5, verify="none"))
    assert [severity for severity, _, _ in findings] == ["note", "warning"]
    bands, rows = (int(part.split("=")[1]) for part in findings[1][2].split("try ")[1].split(".")[0].split())
    assert len(OPERATOR.check(MinHashParams(threshold=0.5, bands=bands, rows=rows, verify="none"))) == 1


def test_contradictions_are_found() -> None:
    with pytest.raises(ValidationError, match="drop_all makes no sense with against"):
        MinHashParams(against="old", action="drop_all")
    same = OPERATOR.check(MinHashParams(against="./i", save_index="./i"))
    assert same[-1][:2] == ("error", "save_index")
    for outside in ("/tmp/index", "../index", "a/../../b", "."):
        assert OPERATOR.check(MinHashParams(save_index=outside))[-1][:2] == ("error", "save_index")
    assert len(OPERATOR.check(MinHashParams(save_index="indexes/math"))) == 1
    useless = OPERATOR.check(MinHashParams(against="old", keep="longest"))
    assert useless[-1][:2] == ("warning", "keep")


@pytest.mark.parametrize(
    "bad", [{"threshhold": 0.8}, {"ngram": 0}, {"bands": 0}, {"keep": "last"}, {"keep": "best:"}, {"unit": "bytes"}]
)
def test_bad_parameters_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        MinHashParams(**bad)


def test_declaration() -> None:
    assert OPERATOR.effect is Effect.GLOBAL
    needs = {need.column: need for need in OPERATOR.reads(MinHashParams(keep="best:score", on_null="error"))}
    assert not needs["text"].nullable
    assert "double" in needs["score"].dtypes
    after = OPERATOR.writes(MinHashParams(), {"text": ColumnType("string")})
    assert (after["cluster_id"].dtype, after["cluster_size"].dtype) == ("string", "int64")
    assert not after["cluster_id"].nullable
    assert OPERATOR.files(MinHashParams(against="./index")) == ("./index",)
    assert OPERATOR.side_inputs(MinHashParams(against="old")) == ("old",)
    assert OPERATOR.files(MinHashParams(against="old")) == OPERATOR.side_inputs(MinHashParams(against="a/b")) == ()


def test_listing_operators_loads_no_compiler() -> None:
    program = (
        "import sys, datamill.operators.dedup.minhash, datamill.operators.dedup.exact;"
        "print([m for m in ('numba', 'llvmlite', 'datasketch', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
