"""Whatever the records, encodings, line ends, compression and cuts: what was written is what is read."""

import csv
import gzip
import io
import json
from typing import Any

import zstandard
from hypothesis import event, given, settings
from hypothesis import strategies as st
from support.reading import data_rows, read_bytes, refused

from datamill.errors import DatamillError
from datamill.services.reading import bytestream
from datamill.services.reading.schema import dtypes

TEXT = st.text(st.characters(blacklist_categories=("Cs",)), max_size=12)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**80), 2**80), st.floats(allow_nan=False, allow_infinity=False), TEXT
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=5,
)
KEYS = st.text('abcdé_\u2028"', min_size=1, max_size=3).filter(lambda key: key not in {"_id", "_ord", "_src"})
RECORDS = st.lists(st.dictionaries(KEYS, VALUES, min_size=1, max_size=4), min_size=1, max_size=6)
PACKERS = {"none": bytes, "gzip": gzip.compress, "zstd": zstandard.ZstdCompressor().compress}


def same(got: Any, wrote: Any, dtype: str) -> bool:
    """Whether a read value is the written one, under the rules for mixed columns and missing fields."""
    if wrote is None or got is None:
        return got is None and wrote is None
    if dtype == "json":
        return repr(json.loads(got)) == repr(wrote)
    if dtype == "string":
        return got == wrote if isinstance(wrote, str) else repr(json.loads(got)) == repr(wrote)
    return equal_but_nulls(got, wrote)


def equal_but_nulls(got: Any, wrote: Any) -> bool:
    """Equality where a field that is missing equals null (objects of a column share their fields)."""
    if isinstance(wrote, dict):
        keys = set(got) | set(wrote)
        return isinstance(got, dict) and all(equal_but_nulls(got.get(key), wrote.get(key)) for key in keys)
    if isinstance(wrote, list):
        return len(got) == len(wrote) and all(map(equal_but_nulls, got, wrote))
    if type(wrote) is bool or type(got) is bool:
        return got is wrote
    return bool(got == wrote)


def check_rows(table: Any, records: list[dict[str, Any]]) -> None:
    assert refused(table) == []
    types = dtypes(table.rows.schema)
    got = data_rows(table)
    assert len(got) == len(records)
    assert set(table.rows.column_names[3:]) == {key for record in records for key in record}
    for row, record in zip(got, records, strict=True):
        for key, value in row.items():
            assert same(value, record.get(key), types[key][0]), (key, value, record.get(key), types[key])


@settings(max_examples=60, deadline=None)
@given(
    records=RECORDS,
    end=st.sampled_from(["\n", "\r\n", "\n\n", " \r\n \n"]),
    last=st.booleans(),
    mark=st.sampled_from(["", "\ufeff"]),
    ascii_only=st.booleans(),
    pack=st.sampled_from(sorted(PACKERS)),
    encoding=st.sampled_from(["utf-8", "utf-16-le", "utf-16"]),
    chunk_bytes=st.sampled_from([1, 7, 40, 1 << 20]),
)
def test_json_lines(
    records: list[dict[str, Any]],
    end: str,
    last: bool,
    mark: str,
    ascii_only: bool,
    pack: str,
    encoding: str,
    chunk_bytes: int,
) -> None:
    text = mark + end.join(json.dumps(record, ensure_ascii=ascii_only) for record in records) + (end if last else "")
    data = PACKERS[pack](text.encode(encoding))
    check_rows(read_bytes(data, encoding=encoding, chunk_bytes=chunk_bytes, format="jsonl"), records)


@settings(max_examples=60, deadline=None)
@given(
    records=RECORDS, indent=st.sampled_from([None, 0, 1]), block=st.integers(1, 30), key=st.sampled_from([None, "rows"])
)
def test_json_documents(records: list[dict[str, Any]], indent: int | None, block: int, key: str | None) -> None:
    document: Any = records if key is None else {"n": 1, key: records}
    data = json.dumps(document, indent=indent, ensure_ascii=False).encode()
    before = bytestream.raw_blocks.__defaults__
    bytestream.raw_blocks.__defaults__ = (block,)
    try:
        table = read_bytes(data, "in.json", records=key)
    finally:
        bytestream.raw_blocks.__defaults__ = before
    check_rows(table, records)


@settings(max_examples=60, deadline=None)
@given(
    records=RECORDS,
    chunk_bytes=st.integers(1, 60),
    shard_rows=st.integers(1, 3),
    noise=st.lists(st.integers(0, 5), max_size=3),
)
def test_cuts_change_nothing(
    records: list[dict[str, Any]], chunk_bytes: int, shard_rows: int, noise: list[int]
) -> None:
    lines = [json.dumps(record) for record in records]
    for at in noise:
        lines.insert(at, "broken {")
    data = "\n".join(lines).encode()
    whole = read_bytes(data)
    cut = read_bytes(data, chunk_bytes=chunk_bytes, shard_rows=shard_rows)
    assert cut.rows.schema == whole.rows.schema
    assert cut.rows.to_pylist() == whole.rows.to_pylist()
    assert cut.fates.to_pylist() == whole.fates.to_pylist()
    assert cut.findings == whole.findings
    assert whole.num_bad == len(noise)


FIELD = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\r\n\ufeff"), min_size=1, max_size=8)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(
        st.lists(
            st.one_of(FIELD, st.sampled_from(["a\nb", 'x"y', '""', ",", "007", "NA", ""])), min_size=2, max_size=2
        ),
        min_size=1,
        max_size=6,
    ),
    delimiter=st.sampled_from([",", ";", "\t"]),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_csv(rows: list[list[str]], delimiter: str, end: str) -> None:
    sink = io.StringIO()
    csv.writer(sink, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL).writerows([["p", "q"], *rows])
    table = read_bytes(sink.getvalue().encode(), "in.csv", format="csv", delimiter=delimiter)
    assert [[row["p"], row["q"]] for row in data_rows(table)] == rows
    assert refused(table) == []


@settings(max_examples=60, deadline=None)
@given(
    data=st.binary(max_size=200),
    name=st.sampled_from(["in.jsonl", "in.json", "in.csv", "in.tsv", "in.txt", "in.jsonl.gz"]),
)
def test_no_bytes_make_a_traceback(data: bytes, name: str) -> None:
    try:
        table = read_bytes(data, name)
    except DatamillError as error:
        assert error.code in {"DM-READ-007", "DM-READ-008", "DM-READ-012"}  # noqa: PT017  either outcome is right
        return
    assert table.num_bad == len(refused(table))
    assert len(set(table.rows["_id"].to_pylist())) == table.rows.num_rows


@settings(max_examples=60, deadline=None)
@given(cut=st.integers(0, 120), flip=st.integers(0, 119), value=st.integers(0, 255))
def test_no_damage_makes_a_traceback(cut: int, flip: int, value: int) -> None:
    base = bytearray(
        b'{"data": [{"a": "x\\n", "b": [1, 2]}, {"a": "\\ud83d\\ude00", "b": null}, {"a": "z", "b": [3.5]}], "n": NaN}\n'
    )
    base[flip % len(base)] = value
    try:
        table = read_bytes(bytes(base[: cut or None]), "in.json", format="json")
    except DatamillError as error:
        event(error.code)
        return
    assert table.num_bad == len(refused(table))
    assert table.rows.num_rows <= 4
