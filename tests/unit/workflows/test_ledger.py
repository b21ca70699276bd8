"""The books are checked id by id: every doctored outcome is found, and only those."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tables import texts

from datamill.errors import DatamillError
from datamill.services.records import FATE_SCHEMA, ID, Fate, child_id, fates
from datamill.workflows.ledger import Books, balance_books, books_of_source

BEFORE = texts(*"abcdef")
IDS = BEFORE[ID].to_pylist()


def fate(index: int, kind: Fate = Fate.DROPPED, reason: str | None = "short", **more: Any) -> dict[str, Any]:
    return {"id": IDS[index], "fate": str(kind), "reason": reason, **more}


def children(parent: int, count: int) -> tuple[pa.Table, list[dict[str, Any]]]:
    ids = [child_id(IDS[parent], i) for i in range(count)]
    rows = pa.concat_tables([BEFORE.slice(parent, 1)] * count).set_column(0, ID, pa.array(ids))
    return rows, [{"id": i, "fate": "expanded", "reason": "copy", "into": IDS[parent]} for i in ids]


def test_honest_books_balance() -> None:
    made, notes = children(1, 2)
    after = pa.concat_tables([BEFORE.slice(0, 3), made])
    left = [fate(3), fate(4, Fate.MERGED, "copy", into=IDS[0]), fate(5, Fate.FAILED, None)]
    remark = fate(0, Fate.NOTED, "repaired")
    books = balance_books("s", BEFORE, after, fates([*left, *notes, remark]))
    assert (books.rows_in, books.rows_out, books.expanded, books.balance) == (6, 5, 2, 0)
    assert books.gone == {"dropped": 1, "merged": 1, "failed": 1}
    assert books.reasons == {"dropped:short": 1, "merged:copy": 1, "failed:unknown": 1}
    assert books.noted == {"noted:repaired": 1}


def doctored() -> list[tuple[str, pa.Table, list[dict[str, Any]], str]]:
    made, notes = children(1, 2)
    five = BEFORE.slice(0, 5)
    stranger = five.set_column(0, ID, pa.array([*IDS[:4], "f" * 32]))
    return [
        ("a row vanishes", five, [], "without a reason"),
        ("a row leaves twice", five, [fate(5), fate(5, Fate.MERGED)], "two reasons"),
        ("a row is doubled", pa.concat_tables([BEFORE, five.slice(0, 1)]), [], "more than once"),
        ("a row comes from nowhere", pa.concat_tables([five, made]), [fate(5)], "out of nowhere"),
        ("a row is renamed", stranger, [fate(4), fate(5)], "out of nowhere"),
        ("a remark is no reason", five, [fate(5, Fate.NOTED)], "without a reason"),
        ("an expansion is no reason", five, [fate(5, Fate.EXPANDED)], "without a reason"),
        ("a fate for another row", five, [fate(4)], "without a reason"),
        ("a child without a record", pa.concat_tables([BEFORE, made]), notes[:1], "out of nowhere"),
        ("everything vanishes", BEFORE.slice(0, 0), [fate(i) for i in range(5)], "without a reason"),
    ]


@pytest.mark.parametrize(
    ("what", "after", "records", "message"), doctored(), ids=lambda v: v if isinstance(v, str) else ""
)
def test_doctored_outcomes_fail_the_step(
    what: str, after: pa.Table, records: list[dict[str, Any]], message: str
) -> None:
    with pytest.raises(DatamillError) as refused:
        balance_books("near", BEFORE, after, fates(records))
    assert refused.value.code == "DM-LEDGER-001", what
    assert message in str(refused.value)
    assert "[near]" in str(refused.value)


def test_an_id_that_came_in_twice_does_not_balance() -> None:
    double = pa.concat_tables([BEFORE, BEFORE.slice(0, 1)])
    with pytest.raises(DatamillError) as refused:
        balance_books("s", double, BEFORE, fates())
    assert refused.value.code == "DM-LEDGER-001"


def test_books_of_a_reader_count_quarantined_records() -> None:
    bad = fates([{"id": "x", "fate": "quarantined", "reason": "not_json"}, fate(0, Fate.NOTED, "surrogate")])
    books = books_of_source("load", BEFORE, bad)
    assert (books.rows_in, books.rows_out, books.gone, books.balance) == (7, 6, {"quarantined": 1}, 0)
    with pytest.raises(DatamillError) as refused:
        books_of_source("load", pa.concat_tables([BEFORE, BEFORE]), FATE_SCHEMA.empty_table())
    assert refused.value.code == "DM-LEDGER-001"


COUNTS = st.dictionaries(st.sampled_from(["dropped", "merged", "failed:x:y", "语"]), st.integers(1, 99), max_size=3)
BOOKS = st.builds(Books, st.integers(0, 99), st.integers(0, 99), st.integers(0, 99), COUNTS, COUNTS, COUNTS)


@given(BOOKS, BOOKS)
def test_books_add_up_and_survive_flattening(left: Books, right: Books) -> None:
    assert Books.from_flat(left.flat()) == left
    both = left + right
    assert both.balance == left.balance + right.balance
    assert both == Books.from_flat(both.flat())
    assert sum(both.reasons.values()) == sum(left.reasons.values()) + sum(right.reasons.values())


@given(
    st.lists(st.sampled_from(["keep", "drop", "split", "merge"]), min_size=6, max_size=6),
    st.randoms(use_true_random=False),
)
def test_any_honest_outcome_balances_and_losing_any_part_of_it_does_not(choices: list[str], random: Any) -> None:
    rows, records = [BEFORE.slice(0, 0)], []
    for index, choice in enumerate(choices):
        if choice in {"keep", "split"}:
            rows.append(BEFORE.slice(index, 1))
        if choice == "split":
            made, notes = children(index, 3)
            rows.append(made)
            records += notes
        if choice in {"drop", "merge"}:
            records.append(fate(index, Fate.DROPPED if choice == "drop" else Fate.MERGED))
    after = pa.concat_tables(rows)
    assert balance_books("s", BEFORE, after, fates(records)).balance == 0
    if records:
        lost = random.randrange(len(records))
        with pytest.raises(DatamillError):
            balance_books("s", BEFORE, after, fates(records[:lost] + records[lost + 1 :]))
