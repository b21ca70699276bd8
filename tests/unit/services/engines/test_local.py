"""The embedded engine gives what the in-memory reference gives, for any number of shards and workers."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
import xxhash
from support.tables import table

from datamill.errors import DatamillError
from datamill.services.engines.local import LocalEngine, broadcast_value
from datamill.services.engines.protocol import Shard
from datamill.services.engines.shards import ShardDataset, read_shard, write_shard
from datamill.services.engines.tables import TableDataset, join, sort_rows, table_digest

ROWS = table(text=[f"text {i % 7}" for i in range(50)], number=[i * i % 11 for i in range(50)])


def doubled(rows: pa.Table) -> pa.Table:
    """A map that changes values and drops rows."""
    frame = pl.from_arrow(rows)
    assert isinstance(frame, pl.DataFrame)
    return frame.filter(pl.col("number") != 3).with_columns(pl.col("number") * 2).to_arrow().cast(rows.schema)


def first_of_group(rows: pa.Table) -> pa.Table:
    """Relies on groups being whole and together, as a shuffle promises."""
    frame = pl.from_arrow(rows)
    assert isinstance(frame, pl.DataFrame)
    assert frame.get_column("text").rle_id().n_unique() == frame.get_column("text").n_unique()
    return (
        frame.sort("_ord")
        .group_by("text", maintain_order=True)
        .first()
        .select(rows.column_names)
        .to_arrow()
        .cast(rows.schema)
    )


def die(_item: int) -> int:
    """Ends the worker as the kernel's out-of-memory killer does."""
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def refuse(item: int) -> int:
    """Raises a finding of our own in the worker."""
    raise DatamillError("DM-TEST-001", f"item {item}", step="x", fix="none")


def square(item: int) -> int:
    return item * item


def shards(folder: Path, count: int) -> list[Shard]:
    folder.mkdir(parents=True, exist_ok=True)
    return [write_shard(part, folder / f"{i}.arrow") for i, part in enumerate(TableDataset.of(ROWS, count).partitions)]


def ordered(data: TableDataset | ShardDataset) -> pa.Table:
    return sort_rows(data.collect().combine_chunks()).replace_schema_metadata(None)


@pytest.fixture(scope="module", params=[1, 2])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEngine]:
    with LocalEngine(request.param, tmp_path_factory.mktemp(f"scratch{request.param}")) as made:
        yield made


@pytest.mark.parametrize("count", [1, 2, 8])
def test_parity_with_the_reference(engine: LocalEngine, count: int, tmp_path: Path) -> None:
    other = pa.table({"number": [1, 4, 9]})
    mine = engine.dataset(shards(tmp_path, count), ROWS.schema)
    reference = TableDataset.of(ROWS, count)
    assert mine.num_rows == reference.num_rows == 50
    for make in (
        lambda d: d.map_tables(doubled),
        lambda d: d.shuffle("text", first_of_group),
        lambda d: d.semi_join(other, "number"),
        lambda d: d.anti_join(other, "number"),
        lambda d: d.map_tables(doubled).shuffle("text", first_of_group).anti_join(other, "number"),
    ):
        assert ordered(make(mine)).equals(ordered(make(reference)))
    kept = ordered(mine.semi_join(other, "number"))["number"].to_pylist()
    assert kept == [n for n in ROWS["number"].to_pylist() if n in {1, 4, 9}], "against a plain loop as well"
    assert mine.collect(["number"]).column_names == ["number"]
    assert [t.num_rows for t in mine.tables()] == [t.num_rows for t in reference.tables()]


def test_many_partitions_of_a_shuffle_hold_whole_groups(
    engine: LocalEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("datamill.services.engines.shards.PARTITION_BYTES", 100)
    mine = engine.dataset(shards(tmp_path, 3), ROWS.schema).shuffle("text", first_of_group)
    assert len(mine.shards) > 3
    assert ordered(mine).equals(ordered(TableDataset.of(ROWS).shuffle("text", first_of_group)))


def test_a_column_projection_reaches_the_function(engine: LocalEngine, tmp_path: Path) -> None:
    mine = engine.dataset(shards(tmp_path, 2), ROWS.schema).map_tables(
        partial(pa.Table.select, columns=["number"]), columns=["number"]
    )
    assert mine.schema.names == ["number"]


def test_no_shards_and_empty_shards_keep_the_schema(engine: LocalEngine, tmp_path: Path) -> None:
    assert engine.dataset([], ROWS.schema).collect().schema.equals(ROWS.schema)
    empty = [write_shard(ROWS.slice(0, 0), tmp_path / f"{i}.arrow") for i in range(2)]
    assert engine.dataset(empty, ROWS.schema).shuffle("text", first_of_group).collect().schema.equals(ROWS.schema)


def test_results_carry_their_index_and_errors_cross_the_border_whole(engine: LocalEngine) -> None:
    assert dict(engine.map_units(square, list(range(20)))) == {i: i * i for i in range(20)}
    assert list(engine.map_units(square, [])) == []
    with pytest.raises(DatamillError) as refused:
        list(engine.map_units(refuse, [1, 2, 3]))
    issue = refused.value.issues[0]
    assert (refused.value.code, issue.step, issue.fix) == ("DM-TEST-001", "x", "none")
    assert dict(engine.map_units(square, [1, 2])) == {0: 1, 1: 4}, "the engine goes on after an error"


def test_a_worker_that_dies_is_an_error_and_the_engine_recovers() -> None:
    with LocalEngine(2) as engine:
        with pytest.raises(DatamillError) as died:
            list(engine.map_units(die, [1, 2, 3]))
        assert died.value.code == "DM-ENGINE-001"
        assert "-j 1" in str(died.value)
        assert dict(engine.map_units(square, [3, 4])) == {0: 9, 1: 16}


def test_scratch_and_broadcast_files_go_away_with_the_engine(tmp_path: Path) -> None:
    with LocalEngine(1) as engine:
        path = engine.broadcast({"a": [1, 2]}, "facts")
        assert broadcast_value(path) == {"a": [1, 2]}
        assert path.is_file()
    assert not path.exists()
    kept = LocalEngine(1, tmp_path / "mine")
    kept.broadcast(1, "x")
    kept.close()
    assert (tmp_path / "mine").is_dir(), "a folder the caller named is the caller's"


SCRIPT = """\
import sys
from datamill.services.engines.local import LocalEngine
from math import perm
with LocalEngine(2) as engine:  # work enough that both workers start before the first is done
    print(sum(value == perm(60_000) for _, value in engine.map_units(perm, [60_000] * 4)))
assert __file__.endswith("script.py") and __spec__ is None
"""


def test_a_script_without_a_main_guard_works(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "4\n", "the script ran once, not once a worker"


def test_digests_are_of_content_and_not_of_chunks(tmp_path: Path) -> None:
    chunked = pa.concat_tables([ROWS.slice(0, 10), ROWS.slice(10)])
    assert table_digest(chunked) == table_digest(ROWS)
    assert table_digest(ROWS.slice(0, 49)) != table_digest(ROWS)
    assert table_digest(ROWS.rename_columns([*ROWS.column_names[:-1], "n"])) != table_digest(ROWS)
    shard = write_shard(ROWS, tmp_path / "a.arrow")
    assert read_shard(shard.path).equals(ROWS)
    assert read_shard(shard.path, ["number"]).column_names == ["number"]
    assert TableDataset.of(ROWS, 5).digest == TableDataset.of(ROWS, 1).digest


DRIVER = """\
from datamill.services.engines.local import LocalEngine
from time import sleep
with LocalEngine(2) as engine:
    for _ in engine.map_units(sleep, [0, 0, 600, 600]):
        print("done", flush=True)
"""


def group(leader: int) -> set[int]:
    """Living processes of a group."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, pgrp = stat.read_text(errors="replace").rpartition(")")[2].split()[:3]
        except OSError:  # it ended meanwhile
            continue
        if int(pgrp) == leader and state != "Z":
            found.add(int(stat.parent.name))
    return found


def test_nothing_of_a_killed_driver_stays_behind() -> None:
    line = [sys.executable, "-c", DRIVER]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=quiet, start_new_session=True) as driver:
        assert driver.stdout is not None
        assert [driver.stdout.readline() for _ in range(2)] == [b"done\n"] * 2
        assert len(group(driver.pid)) >= 3, "the driver and two workers, at work for ten minutes"
        driver.kill()
    deadline = time.monotonic() + 20
    while group(driver.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not group(driver.pid)


def value_of(name: str) -> tuple[str | None, str]:
    return os.environ.get(name), str(Path.cwd())


def test_workers_have_the_environment_and_folder_of_the_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in ("one", "two", None):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        if number is None:
            monkeypatch.delenv("DATAMILL_SHOWN")
        else:
            monkeypatch.setenv("DATAMILL_SHOWN", number)
        with LocalEngine(2) as engine:
            assert {value for _, value in engine.map_units(value_of, ["DATAMILL_SHOWN"] * 3)} == {(number, str(folder))}


def test_a_digest_is_that_of_the_stream_written_in_one_piece() -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, ROWS.schema) as writer:
        writer.write_table(ROWS)
    hasher = xxhash.xxh3_128(str(ROWS.schema).encode())
    hasher.update(sink.getvalue())
    assert table_digest(ROWS.replace_schema_metadata({"made": "here"})) == hasher.hexdigest()


def test_joins_treat_nulls_as_absent() -> None:
    left = pa.table({"k": ["a", None, "b"]})
    right = pa.table({"k": ["a"]})
    assert join(left, right, "k", "semi")["k"].to_pylist() == ["a"]
    assert join(left, right, "k", "anti")["k"].to_pylist() == [None, "b"]
