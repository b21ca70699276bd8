"""mix.concat: domain names, weights, small domains."""

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from pydantic import ValidationError
from support.tables import books_balance

from datamill.errors import DatamillError
from datamill.operators.declaration import ColumnType, Context
from datamill.operators.mix.concat import ConcatParams, concat, domain_sizes, prepare
from datamill.operators.registry import find
from datamill.services.engines.protocol import Outcome
from datamill.services.engines.tables import TableDataset
from datamill.services.records import row_id


def rows(name: str, count: int) -> pa.Table:
    return pa.table(
        {
            "_id": [row_id(name, i) for i in range(count)],
            "_ord": list(range(count)),
            "_src": [f"{name}:{i}" for i in range(count)],
            "v": list(range(count)),
        }
    )


PARENTS = {"web": rows("web", 100), "wiki": rows("wiki", 50), "code": rows("code", 10)}


def mixed(partitions: int = 1, seed: int = 7, parents: dict[str, pa.Table] = PARENTS, **values: Any) -> list[Outcome]:
    params = ConcatParams.model_validate(values)
    inputs = {name: TableDataset.of(table, partitions) for name, table in parents.items()}
    resources = prepare(params, Context("mix", seed=seed, inputs=inputs))
    context = Context("mix", seed=seed, resources=resources)
    outcomes = []
    for name, data in inputs.items():
        for part in data.tables():
            handed = part.append_column("_parent", pa.repeat(name, part.num_rows))
            outcomes.append(concat(handed, params, context))
            assert books_balance(part, outcomes[-1])
    return outcomes


def counts(outcomes: list[Outcome], column: str = "domain") -> Counter[str]:
    return Counter(name for outcome in outcomes for name in outcome.rows[column].to_pylist())


def test_every_row_stays_with_the_name_of_its_parent() -> None:
    outcomes = mixed(3)
    assert counts(outcomes) == {"web": 100, "wiki": 50, "code": 10}
    assert outcomes[0].rows.column_names == ["_id", "_ord", "_src", "v", "domain"]
    assert counts(mixed(domain_column="origin"), "origin")["wiki"] == 50


def test_weights_take_the_largest_total_without_repeats() -> None:
    assert counts(mixed(weights={"web": 0.5, "wiki": 0.3, "code": 0.2})) == {"web": 25, "wiki": 15, "code": 10}
    assert counts(mixed(weights={"web": 70, "wiki": 30, "code": 0})) == {"web": 99, "wiki": 43}


@pytest.mark.parametrize("partitions", [1, 2, 7, 50])
def test_n_rows_by_largest_remainders_whatever_the_partitions(partitions: int) -> None:
    weights = {"web": 0.6, "wiki": 0.3, "code": 0.1}
    outcomes = mixed(partitions, weights=weights, n=33)
    assert counts(outcomes) == {"web": 20, "wiki": 10, "code": 3}
    taken = {name for outcome in outcomes for name in outcome.rows["_id"].to_pylist()}
    assert taken == {name for outcome in mixed(weights=weights, n=33) for name in outcome.rows["_id"].to_pylist()}
    left = [fate for outcome in outcomes for fate in outcome.fates.to_pylist()]
    assert {(fate["fate"], fate["reason"]) for fate in left} == {("not_selected", "over_share")}


def test_a_small_domain_gives_all_it_has_with_a_remark_or_stops() -> None:
    weights = {"web": 0.5, "wiki": 0.3, "code": 0.2}
    outcomes = mixed(weights=weights, n=100)
    assert counts(outcomes) == {"web": 50, "wiki": 30, "code": 10}
    notes = [f for o in outcomes for f in o.fates.to_pylist() if f["fate"] == "noted"]
    assert [(f["reason"], f["value"], f["threshold"], f["detail"]) for f in notes] == [
        ("fewer_than_asked", 10.0, 20.0, "code")
    ]
    with pytest.raises(DatamillError) as caught:
        mixed(weights=weights, n=100, on_short="error")
    assert caught.value.code == "DM-OPA-041"


def test_a_row_of_two_parents_counts_for_the_first() -> None:
    parents = {"a": rows("x", 10), "b": pa.concat_tables([rows("x", 10), rows("y", 10)])}
    inputs = {name: TableDataset.of(table) for name, table in parents.items()}
    params = ConcatParams(weights={"a": 0.5, "b": 0.5})
    draws = prepare(params, Context("mix", inputs=inputs))
    assert draws is not None
    assert {name: draw.available for name, draw in draws.items()} == {"a": 10, "b": 10}


def test_names_have_to_match_exactly() -> None:
    for weights in ({"web": 0.5, "wikipedia": 0.3, "code": 0.2}, {"web": 0.5, "wiki": 0.5}):
        with pytest.raises(DatamillError) as caught:
            mixed(weights=weights)
        assert caught.value.code == "DM-OPA-040"


@pytest.mark.parametrize(
    "params",
    [
        {"weights": {"a": 0.2, "b": 0.2}},
        {"weights": {"a": 1.2, "b": -0.2}},
        {"weights": {"a": float("nan"), "b": 1.0}},
        {"n": 5},
    ],
)
def test_bad_weights(params: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ConcatParams.model_validate(params)


def test_slightly_off_weights_are_rescaled() -> None:
    params = ConcatParams(weights={"web": 0.3333, "wiki": 0.3333, "code": 0.3333})
    assert params.weights is not None
    assert sum(params.weights.values()) == pytest.approx(1, abs=1e-9)
    assert domain_sizes(params, {"web": 100, "wiki": 50, "code": 10}) == {"web": 10, "wiki": 10, "code": 10}


def test_an_existing_domain_column_is_not_overwritten() -> None:
    writes = find("mix.concat").writes
    assert writes(ConcatParams(), {"text": ColumnType("string")})["domain"].nullable is False
    with pytest.raises(DatamillError) as caught:
        writes(ConcatParams(), {"domain": ColumnType("string")})
    assert caught.value.code == "DM-OPA-043"
