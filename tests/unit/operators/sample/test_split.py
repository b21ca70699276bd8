"""split: sizes, groups on one side, strata, independence of partitions."""

from collections import Counter, defaultdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from support.tables import decide, table

from datamill.operators.sample.split import SplitParams

RATIOS = [0.9, 0.05, 0.05]


def sides(rows: Any, partitions: int = 1, **params: Any) -> list[str]:
    made = decide("split", rows, partitions, **params)
    assert made["fate"].null_count == made.num_rows
    by_id = dict(zip(made["_id"].to_pylist(), made[params.get("column", "split")].to_pylist(), strict=True))
    return [by_id[name] for name in rows["_id"].to_pylist()]


@pytest.mark.parametrize("partitions", [1, 2, 7, 50])
def test_single_rows_are_shared_out_exactly(partitions: int) -> None:
    rows = table(v=list(range(200)))
    assert Counter(sides(rows, partitions, ratios=RATIOS)) == {"train": 180, "val": 10, "test": 10}
    assert sides(rows, partitions, ratios=RATIOS) == sides(rows, ratios=[90, 5, 5])


def test_two_ratios_names_column_and_seed() -> None:
    rows = table(v=list(range(10)))
    assert Counter(sides(rows, ratios=[0.8, 0.2])) == {"train": 8, "val": 2}
    named = sides(rows, ratios=[0.5, 0.5], names=["left", "right"], column="side")
    assert Counter(named) == {"left": 5, "right": 5}
    assert sides(table(v=list(range(100))), ratios=[0.5, 0.5], seed=1) != sides(
        table(v=list(range(100))), ratios=[0.5, 0.5], seed=2
    )


def test_clusters_stay_on_one_side_by_default() -> None:
    clusters = [str(i % 20) if i % 3 else None for i in range(120)]
    rows = table(cluster_id=clusters)
    found = sides(rows, 4, ratios=[0.6, 0.2, 0.2])
    where: dict[str, set[str]] = defaultdict(set)
    for cluster, side in zip(clusters, found, strict=True):
        if cluster is not None:
            where[cluster].add(side)
    assert all(len(names) == 1 for names in where.values())
    assert Counter(found) == {"train": 72, "val": 24, "test": 24}
    torn = sides(rows, ratios=[0.6, 0.2, 0.2], group_by=None)
    assert any(len({s for c, s in zip(clusters, torn, strict=True) if c == name}) > 1 for name in where)


def test_a_group_column_with_numbers() -> None:
    rows = table(doc=[i // 4 for i in range(40)])
    found = sides(rows, ratios=[0.5, 0.5], group_by="doc")
    assert all(len(set(found[i : i + 4])) == 1 for i in range(0, 40, 4))
    assert Counter(found) == {"train": 20, "val": 20}


def test_strata_are_spread_evenly() -> None:
    labels = ["a"] * 100 + ["b"] * 20
    found = sides(table(label=labels), 3, ratios=[0.5, 0.5], stratify_by="label")
    assert Counter(zip(labels, found, strict=True)) == {
        ("a", "train"): 50, ("a", "val"): 50, ("b", "train"): 10, ("b", "val"): 10,
    }  # fmt: skip


def test_a_group_larger_than_any_side_still_stays_together() -> None:
    found = sides(table(cluster_id=["x"] * 8 + ["y", "z"]), ratios=[0.4, 0.6])
    assert len(set(found[:8])) == 1
    assert len(found) == 10


def test_an_empty_share_gets_nothing() -> None:
    assert set(sides(table(v=list(range(9))), ratios=[1.0, 0.0])) == {"train"}
    assert decide("split", table(v=[1]).slice(0, 0), ratios=[0.5, 0.5]).num_rows == 0


@given(
    st.lists(st.one_of(st.none(), st.sampled_from("abcdef")), min_size=1, max_size=40),
    st.sampled_from([1, 2, 7]),
    st.sampled_from([[0.9, 0.1], [0.5, 0.5], [0.8, 0.1, 0.1]]),
)
@settings(max_examples=60, deadline=None)
def test_no_group_is_ever_torn(clusters: list[str | None], partitions: int, ratios: list[float]) -> None:
    rows = table(cluster_id=clusters, v=list(range(len(clusters))))
    found = sides(rows, partitions, ratios=ratios)
    assert found == sides(rows, ratios=ratios)
    for name in set(clusters) - {None}:
        assert len({side for cluster, side in zip(clusters, found, strict=True) if cluster == name}) == 1


@pytest.mark.parametrize(
    "params",
    [
        {"ratios": [0.9]},
        {"ratios": [0.5, 0.2]},
        {"ratios": [1.2, -0.2]},
        {"ratios": [0.25] * 4},
        {"ratios": [0.5, 0.5], "names": ["a"]},
        {"ratios": [0.5, 0.5], "names": ["a", "a"]},
    ],
)
def test_bad_ratios(params: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SplitParams.model_validate(params)
