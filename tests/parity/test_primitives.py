"""Every primitive of the protocol means on every engine what the in-memory reference says it means."""

import os
from typing import Any

import pyarrow as pa
import pytest
from support.engine_functions import ROWS, boom, doubled, groups, number_of_process, read_broadcast, refuse, square

from datamill.errors import DatamillError
from datamill.services.engines.protocol import Dataset, Engine
from datamill.services.engines.tables import TableDataset, sort_rows

CUTS = [1, 2, 8]


def parts(count: int) -> list[pa.Table]:
    return list(TableDataset.of(ROWS, count).partitions)


def ordered(data: Any) -> pa.Table:
    return sort_rows(data.collect().combine_chunks()).replace_schema_metadata(None)


@pytest.mark.parametrize("count", CUTS)
def test_maps_joins_and_shuffles(spread: Any, count: int) -> None:
    mine: Dataset = spread(parts(count))
    other = pa.table({"_ord": pa.array([1, 4, 9, 16], pa.int64())})
    reference = TableDataset.of(ROWS, count)
    assert (mine.num_rows, mine.schema) == (50, ROWS.schema)
    for made, wanted in (
        (mine, reference),
        (mine.map_tables(doubled), reference.map_tables(doubled)),
        (mine.semi_join(other, "_ord"), reference.semi_join(other, "_ord")),
        (mine.anti_join(other, "_ord"), reference.anti_join(other, "_ord")),
    ):
        assert ordered(made) == ordered(wanted)
        assert made.schema == wanted.schema
        assert made.num_rows == wanted.num_rows
    shuffled = mine.shuffle("text", groups).collect().sort_by("_ord")
    assert shuffled == reference.shuffle("text", groups).collect().sort_by("_ord")
    assert shuffled.num_rows == 8
    assert mine.map_tables(doubled).shuffle("text", groups).keep().num_rows == 8


def test_order_of_parts_is_kept(spread: Any) -> None:
    mine: Dataset = spread(parts(8))
    assert mine.collect(["_ord"])["_ord"].to_pylist() == list(range(50))
    assert [len(piece) for piece in mine.map_tables(doubled).tables()] == [
        sum(i % 3 != 0 for i in part["_ord"].to_pylist()) for part in parts(8)
    ]


def test_digest_is_that_of_the_content(spread: Any) -> None:
    one, again, other = spread(parts(2)), spread(parts(2)), spread(parts(3))
    assert one.digest == again.digest != other.digest
    assert one.map_tables(doubled).digest == again.map_tables(doubled).digest != one.digest


def test_union_fills_what_one_side_lacks(spread: Any) -> None:
    left, right = ROWS.select(["_id", "_ord", "text"]), ROWS.select(["_id", "_ord", "number"])
    both = spread([left.slice(0, 20), left.slice(20)]).union(spread([right]))
    wanted = TableDataset((left.slice(0, 20), left.slice(20))).union(TableDataset((right,)))
    assert both.collect().to_pylist() == wanted.collect().to_pylist()
    assert both.schema == wanted.schema
    assert both.shuffle("text", groups).num_rows == 8
    same = spread([left]).union(spread([left]))
    assert (same.num_rows, same.schema) == (100, left.schema)


@pytest.mark.parametrize("empty", [ROWS.slice(0, 0), ROWS.select(["_id", "_ord", "text"]).slice(0, 0)])
def test_nothing_keeps_its_schema(spread: Any, empty: pa.Table) -> None:
    mine: Dataset = spread([empty, empty])
    assert mine.collect().schema == empty.schema
    assert mine.map_tables(boom).collect().schema == empty.schema
    assert mine.shuffle("text", groups).collect().schema.names == ["text", "_ord", "size"]
    assert mine.num_rows == 0


def test_shards_that_are_empty_or_of_one_row(spread: Any) -> None:
    pieces = [ROWS.slice(0, 0), ROWS.slice(0, 1), ROWS.slice(0, 0), ROWS.slice(1), ROWS.slice(0, 0)]
    mine: Dataset = spread(pieces)
    assert ordered(mine) == ordered(TableDataset.of(ROWS))
    assert mine.shuffle("text", groups).collect().sort_by("_ord").num_rows == 8


def test_an_error_in_a_table_function_arrives_as_it_was_raised(spread: Any, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(DatamillError, match="a row from the second half") as caught:
        spread(parts(4)).map_tables(boom).collect()
    assert (caught.value.code, caught.value.issues[0].step) == ("DM-TEST-001", "x")
    with pytest.raises(DatamillError, match="a row from the second half"):
        spread(parts(4)).map_tables(boom).shuffle("text", groups).collect()
    assert "Traceback" not in capfd.readouterr().err


def test_units(engine: Engine) -> None:
    assert sorted(engine.map_units(square, list(range(9)))) == [(i, i * i) for i in range(9)]
    assert list(engine.map_units(square, [5])) == [(0, 25)]
    assert list(engine.map_units(square, [])) == []
    with pytest.raises(ValueError, match="item 3"):
        list(engine.map_units(refuse, list(range(6))))


def test_units_run_in_other_processes_and_alone_when_asked(engine: Engine) -> None:
    workers = {pid for _, pid in engine.map_units(number_of_process, list(range(8)))}
    assert os.getpid() not in workers
    assert {pid for _, pid in engine.map_units(number_of_process, [1, 2], parallel=False)} == {os.getpid()}


def test_broadcast_is_read_by_workers(engine: Engine, spread: Any) -> None:
    path = engine.broadcast({"a": [1, 2]}, "step")
    assert [value for _, value in engine.map_units(read_broadcast, [path, path])] == [{"a": [1, 2]}] * 2


def test_every_bound_is_carried_out(engine: Engine) -> None:
    for bound in ("io", "cpu"):
        assert sorted(engine.map_units(square, [1, 2, 3], bound=bound)) == [(0, 1), (1, 4), (2, 9)]
