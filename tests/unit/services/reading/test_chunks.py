"""Chunks: deterministic, gapless, with digests of their bytes, whatever the size of the read blocks."""

import gzip
import subprocess
import sys
import textwrap
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
import xxhash

from datamill.errors import DatamillError
from datamill.services.reading import reader
from datamill.services.reading.reader import (
    check_bad,
    infer_schema,
    merge_profiles,
    plan_chunks,
    profile_chunk,
    read_chunk,
)
from datamill.services.reading.schema import dtypes, make_schema
from datamill.services.reading.source import Chunk, SourceSpec
from datamill.services.records import FATE_SCHEMA, fates

DATA = b"".join(b'{"a":%d,"t":"%s"}\n' % (i, b"x" * (i % 17)) for i in range(500))


@pytest.fixture
def spec(tmp_path: Path) -> SourceSpec:
    (tmp_path / "a.jsonl").write_bytes(DATA)
    return SourceSpec("s", "a.jsonl", tmp_path, chunk_bytes=1000)


def test_chunks_cover_the_file_and_end_at_records(spec: SourceSpec) -> None:
    chunks = plan_chunks(spec)
    assert len(chunks) > 5
    assert chunks[0].start == 0
    assert chunks[-1].end == len(DATA)
    for before, after in pairwise(chunks):
        assert before.end == after.start
        assert DATA[after.start - 1 : after.start] == b"\n"
        assert after.first_line == before.first_line + before.num_newlines
        assert 1000 <= before.end - before.start < 1100
    for chunk in chunks:
        assert chunk.digest == xxhash.xxh3_128_hexdigest(DATA[chunk.start : chunk.end])


@pytest.mark.parametrize("block", [1, 13, 999, 1001, 1 << 20])
def test_chunks_do_not_depend_on_read_blocks(spec: SourceSpec, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = plan_chunks(spec)
    monkeypatch.setattr(reader, "BLOCK_BYTES", block)
    assert plan_chunks(spec) == expected


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.jsonl.gz", gzip.compress(DATA)),
        ("a.csv", b"a\n" + b"1\n" * 5000),
        ("a.json", b"[" + b"{},\n" * 5000 + b"{}]"),
        ("a.jsonl", DATA.decode().encode("utf-16")),
    ],
)
def test_what_cannot_be_cut_is_one_chunk(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    (chunk,) = plan_chunks(SourceSpec("s", name, tmp_path, chunk_bytes=100))
    assert (chunk.start, chunk.end) == (0, len(data))


def test_an_empty_file_has_no_chunk(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"")
    assert plan_chunks(SourceSpec("s", "a.jsonl", tmp_path)) == []


def test_profiles_of_chunks_give_the_schema_of_the_whole(spec: SourceSpec) -> None:
    profile = merge_profiles(profile_chunk(spec, chunk) for chunk in plan_chunks(spec))
    assert make_schema(spec, profile)[0] == infer_schema(spec)[0]
    assert profile.num_rows == 500


def test_a_sample_looks_at_the_start_only(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"v":1}\n' * 100_000 + b'{"v":"x"}\n' * 700_000)
    spec = SourceSpec("s", "a.jsonl", tmp_path, chunk_bytes=1000)
    assert dtypes(infer_schema(spec, sample_rows=10)[0]) == {"v": ("int64", False)}
    assert dtypes(infer_schema(spec)[0]) == {"v": ("string", False)}


def test_rows_that_break_a_previewed_schema_are_refused_not_changed(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(
        b'{"v":1,"w":[1]}\n{"v":"x","w":[1]}\n{"v":2,"w":["y"]}\n{"w":[1]}\n{"v":3,"w":[2]}\n'
    )
    spec = SourceSpec("s", "a.jsonl", tmp_path)
    schema = pa.schema([pa.field("v", pa.int64(), nullable=False), pa.field("w", pa.list_(pa.int64()))])
    (batch,) = read_chunk(spec, plan_chunks(spec)[0], schema)
    assert batch.rows["v"].to_pylist() == [1, 3]
    assert batch.fates["reason"].to_pylist() == ["type_mismatch"] * 3
    assert batch.fates["src"].to_pylist() == ["a.jsonl:2", "a.jsonl:3", "a.jsonl:4"]


def test_batches_are_small(spec: SourceSpec) -> None:
    small = SourceSpec("s", "a.jsonl", spec.root, shard_rows=7)
    schema, _ = infer_schema(small)
    batches = [batch for chunk in plan_chunks(small) for batch in read_chunk(small, chunk, schema)]
    assert max(batch.rows.num_rows for batch in batches) == 7
    assert sum(batch.rows.num_rows for batch in batches) == 500


def test_batches_of_huge_rows_are_cut_by_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"".join(b'{"t":"%s"}\n' % (b"x" * (9 << 20)) for _ in range(9)))
    spec = SourceSpec("s", "a.jsonl", tmp_path, chunk_bytes=1 << 30)
    schema, _ = infer_schema(spec)
    sizes = [batch.rows.nbytes for chunk in plan_chunks(spec) for batch in read_chunk(spec, chunk, schema)]
    assert max(sizes) <= 36 << 20


def test_a_changed_file_is_not_read(spec: SourceSpec) -> None:
    chunk = plan_chunks(spec)[0]
    schema, _ = infer_schema(spec)
    (spec.root / "a.jsonl").write_bytes(DATA + b"{}")
    with pytest.raises(DatamillError) as caught:
        next(read_chunk(spec, chunk, schema))
    assert caught.value.code == "DM-READ-010"
    (spec.root / "a.jsonl").unlink()
    with pytest.raises(DatamillError) as caught:
        next(read_chunk(spec, chunk, schema))
    assert caught.value.code == "DM-READ-003"


@pytest.mark.parametrize(("bad", "raises"), [(0, False), (1, False), (2, True)])
def test_check_bad(spec: SourceSpec, bad: int, raises: bool) -> None:
    table = fates([{"fate": "quarantined", "reason": "invalid_json", "src": "a:1", "offset": 0, "detail": "x"}] * bad)
    if not raises:
        check_bad(spec, 100 - bad, bad, table)
        return
    with pytest.raises(DatamillError, match="2 of 100"):
        check_bad(spec, 100 - bad, bad, table)


def test_fates_have_their_schema(spec: SourceSpec) -> None:
    schema, _ = infer_schema(spec)
    for chunk in plan_chunks(spec):
        for batch in read_chunk(spec, chunk, schema):
            assert batch.fates.schema == FATE_SCHEMA


def test_chunks_travel_between_processes(spec: SourceSpec) -> None:
    import pickle

    chunks = plan_chunks(spec)
    again: list[Chunk] = pickle.loads(pickle.dumps(chunks))
    assert again == chunks
    assert pickle.loads(pickle.dumps(spec)) == spec


MEMORY = """
import sys
from itertools import pairwise
from pathlib import Path
from datamill.services.reading.reader import infer_schema, plan_chunks, read_chunk
from datamill.services.reading.source import SourceSpec
spec = SourceSpec("s", sys.argv[1])
schema, _ = infer_schema(spec)
rows = bad = 0
for chunk in plan_chunks(spec):
    for batch in read_chunk(spec, chunk, schema):
        rows += batch.rows.num_rows
        bad += batch.num_bad
# VmHWM belongs to this program image; ru_maxrss would count what the parent held when it forked
status = Path("/proc/self/status").read_text()
peak_kb = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
print(rows, bad, peak_kb // 1024)
"""


def peak_of(path: Path) -> tuple[int, int, int]:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(MEMORY), str(path)], capture_output=True, text=True, check=True
    )
    rows, bad, peak_mb = map(int, done.stdout.split())
    return rows, bad, peak_mb


@pytest.mark.slow
def test_three_hundred_megabytes_stream_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    line = b'{"id":1,"t":"%s"}\n' % (b"word " * 200)
    with path.open("wb") as out:
        for _ in range(300):
            out.write(line * ((1 << 20) // len(line)))
    rows, bad, peak_mb = peak_of(path)
    assert rows == 300 * ((1 << 20) // len(line))
    assert bad == 0
    assert peak_mb < 600


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.txt"])
def test_one_endless_record_is_passed_over_in_bounded_memory(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    start, end = {
        "a.jsonl": (b'{"t":"', b'"}\n{"t":"ok"}\n'),
        "a.json": (b'[{"t":"', b'"},{"t":"ok"}]'),
        "a.csv": (b"t\n", b"\nok\n"),
        "a.txt": (b"", b"\nok\n"),
    }[name]
    with path.open("wb") as out:
        out.write(start)
        for _ in range(300):
            out.write(b"x" * (1 << 20))
        out.write(end)
    rows, bad, peak_mb = peak_of(path)
    assert (rows, bad) == (1, 1)
    assert peak_mb < 900
