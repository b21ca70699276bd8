import json
import multiprocessing
import os
import signal
from pathlib import Path

import pyarrow as pa
import pytest
from support.tables import texts

from datamill.services.records import FATE_SCHEMA, fates
from datamill.services.storage.atomic import (
    CRASH_VARIABLE,
    TEMPORARY_MARK,
    atomic_path,
    commit_point,
    remove_leftovers,
    temporary_name,
    write_bytes,
    write_json,
    write_with,
)
from datamill.services.storage.units import (
    FATES,
    MANIFEST,
    OLD_ROWS,
    ROWS,
    Unit,
    UnitStore,
    read_table,
    unit_key,
    write_arrow,
    write_table,
)

TABLE = texts("one", "two", "three")
COUNTS = {"in": 4, "out": 3, "expanded": 0, "gone.dropped": 1}


def committed(root: Path) -> tuple[UnitStore, Unit]:
    store = UnitStore(root)
    left = fates([{"id": "x", "fate": "dropped", "reason": "short", "value": 1.5}])
    return store, store.commit("a" * 40, TABLE, left, COUNTS, 0.25, {"stats": "{}"})


def test_a_unit_comes_back_as_it_was(tmp_path: Path) -> None:
    store, unit = committed(tmp_path)
    found = store.load(unit.key)
    assert found is not None
    assert found.rows().equals(TABLE)
    assert found.rows(["text"]).column_names == ["text"]
    assert found.fates().schema.equals(FATE_SCHEMA)
    assert found.fates().to_pylist()[0]["value"] == 1.5
    assert (found.num_rows, found.counts, found.seconds, found.extra, found.digest) == (
        3,
        COUNTS,
        0.25,
        {"stats": "{}"},
        unit.digest,
    )
    assert store.load("b" * 40) is None


@pytest.mark.parametrize("name", [ROWS, FATES])
@pytest.mark.parametrize("damage", ["gone", "short", "long"])
def test_a_damaged_file_means_the_unit_is_not_there(tmp_path: Path, name: str, damage: str) -> None:
    store, unit = committed(tmp_path)
    path = unit.folder / name
    data = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(data[:-7] if damage == "short" else data + b"x")
    assert store.load(unit.key) is None
    committed(tmp_path)
    again = store.load(unit.key)
    assert again is not None
    assert path.read_bytes() == data, "computed anew, byte for byte"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        "\udcff",
        '{"sizes": {}}',
        '{"sizes": [], "key": "x"}',
        "null",
        '{"sizes": {}, "key": "KEY"}',
    ],
)
def test_a_damaged_manifest_means_the_unit_is_not_there(tmp_path: Path, text: str) -> None:
    store, unit = committed(tmp_path)
    damaged = text.replace("KEY", unit.key).encode("utf-8", "surrogateescape")
    (unit.folder / MANIFEST).write_bytes(damaged)
    assert store.load(unit.key) is None


def test_a_manifest_of_another_unit_is_not_believed(tmp_path: Path) -> None:
    store, unit = committed(tmp_path)
    manifest = json.loads((unit.folder / MANIFEST).read_text())
    (unit.folder / MANIFEST).write_text(json.dumps({**manifest, "key": "c" * 40}))
    assert store.load(unit.key) is None


def test_bytes_are_a_function_of_the_rows(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_table(TABLE.replace_schema_metadata({"made": name}), tmp_path / name, "test")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert read_table(tmp_path / "a").equals(TABLE)


def test_rows_are_the_same_bytes_however_they_were_cut(tmp_path: Path) -> None:
    cut = pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1, 0), TABLE.slice(1)])
    for name, table in (("a", TABLE), ("b", cut.replace_schema_metadata({"made": "b"})), ("c", TABLE.slice(0, 2))):
        size = write_arrow(table, tmp_path / name, "test")
        assert size == (tmp_path / name).stat().st_size
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() != (tmp_path / "c").read_bytes()


def test_rows_come_back_with_the_types_they_had(tmp_path: Path) -> None:
    field = pa.field("json", pa.string(), metadata={"kind": "json"})
    rows = pa.table(
        [pa.array([None, "x"]), pa.nulls(2), pa.array([[1], None], pa.large_list(pa.uint8())), pa.array(["a", "a"])],
        schema=pa.schema([field, pa.field("n", pa.null()), ("l", pa.large_list(pa.uint8())), ("s", pa.large_string())]),
    )
    unit = UnitStore(tmp_path).commit("d" * 40, rows, fates([]), {}, 0.0)
    assert unit.rows().schema.equals(rows.schema, check_metadata=True)
    assert unit.rows().equals(rows)
    empty = UnitStore(tmp_path).commit("e" * 40, rows.slice(0, 0), fates([]), {}, 0.0)
    assert empty.rows().schema.equals(rows.schema)
    assert empty.rows().num_rows == 0


def test_a_unit_of_an_older_version_is_used_as_it_is(tmp_path: Path) -> None:
    store, unit = committed(tmp_path)
    (unit.folder / ROWS).unlink()
    size = write_table(TABLE, unit.folder / OLD_ROWS, "test")
    manifest = json.loads((unit.folder / MANIFEST).read_text())
    manifest["sizes"] = {OLD_ROWS: size, FATES: manifest["sizes"][FATES]}
    (unit.folder / MANIFEST).write_text(json.dumps(manifest))
    old = store.load(unit.key)
    assert old is not None
    assert old.rows_path == unit.folder / OLD_ROWS
    assert old.rows(["text"]).equals(TABLE.select(["text"]))
    (unit.folder / OLD_ROWS).write_bytes(b"")
    assert store.load(unit.key) is None, "damaged: it is computed again"
    committed(tmp_path)
    again = store.load(unit.key)
    assert again is not None
    assert again.rows_path.name == ROWS


def test_tables_that_are_kept_hold_no_files_open(tmp_path: Path) -> None:
    _, unit = committed(tmp_path)
    before = len(list(Path("/proc/self/fd").iterdir()))
    kept = [unit.rows() for _ in range(50)]
    assert len(list(Path("/proc/self/fd").iterdir())) < before + 5
    assert all(table.equals(TABLE) for table in kept)
    unit.rows_path.unlink()
    assert kept[0].equals(TABLE), "rows in use outlive the file's name"


def test_keys_tell_steps_and_inputs_apart() -> None:
    keys = {unit_key("s", "a", "b"), unit_key("s", "ab"), unit_key("sa", "b"), unit_key("s", "b", "a"), unit_key("s")}
    assert len(keys) == 5
    assert unit_key("s", "a") == unit_key("s", "a")


def test_a_failed_write_leaves_the_old_file_and_no_rubbish(tmp_path: Path) -> None:
    target = tmp_path / "x.json"
    write_json(target, {"a": "é"}, "test")

    def failing() -> None:
        with atomic_path(target, "test") as temporary:
            temporary.write_text("half")
            raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        failing()
    assert json.loads(target.read_text()) == {"a": "é"}
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]
    write_with(tmp_path / "deep" / "y", "test", lambda stream: stream.write(b"z") and None)
    assert (tmp_path / "deep" / "y").read_bytes() == b"z"


def _crash(folder: str, point: str) -> None:
    os.environ[CRASH_VARIABLE] = point
    write_bytes(Path(folder) / "x", b"new", "test")


@pytest.mark.parametrize(
    ("point", "content"), [("test.written", b"old"), ("test.renamed", b"new"), ("test.written:2", b"new")]
)
def test_killed_at_a_commit_point_the_file_is_old_or_new_and_never_half(
    tmp_path: Path, point: str, content: bytes
) -> None:
    write_bytes(tmp_path / "x", b"old", "other")
    process = multiprocessing.get_context("spawn").Process(target=_crash, args=(str(tmp_path), point))
    process.start()
    process.join(60)
    assert process.exitcode == (-signal.SIGKILL if point.count(":") == 0 else 0)
    assert (tmp_path / "x").read_bytes() == content
    left = list(tmp_path.glob(f"*{TEMPORARY_MARK}*"))
    assert len(left) == (1 if point == "test.written" else 0)
    assert remove_leftovers(tmp_path) == len(left)
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_leftovers_of_the_living_and_foreign_files_stay(tmp_path: Path) -> None:
    mine = temporary_name(tmp_path / "rows.parquet")
    mine.write_bytes(b"")
    other = tmp_path / f"notes{TEMPORARY_MARK}draft"
    other.write_bytes(b"")
    host = mine.name.split("-")[-2]
    dead = tmp_path / "sub" / f"x{TEMPORARY_MARK}999999999-{host}-00"
    elsewhere = tmp_path / "sub" / f"x{TEMPORARY_MARK}999999999-00000000-00"
    for folder in (dead, elsewhere):
        folder.mkdir(parents=True)
    assert remove_leftovers(tmp_path) == 1
    assert mine.exists()
    assert other.exists()
    assert not dead.exists()
    assert elsewhere.exists(), "a process of another machine may be alive"
    assert remove_leftovers(tmp_path / "absent") == 0


def test_points_are_free_when_nothing_is_rehearsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CRASH_VARIABLE, raising=False)
    commit_point("anything")
    monkeypatch.setenv(CRASH_VARIABLE, "another.point")
    commit_point("anything")
    assert os.environ[CRASH_VARIABLE] == "another.point"
