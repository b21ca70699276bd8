"""The `read.*` operators describe sources; what they declare is what the files then give."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from datamill.operators.declaration import Bound, ColumnType, Context, Effect
from datamill.operators.registry import catalogue, find
from datamill.services.reading.source import REASONS, SourceSpec
from datamill.services.reading.whole import read_whole

READERS = ("read.jsonl", "read.json", "read.csv", "read.tsv", "read.parquet", "read.txt")


@pytest.mark.parametrize("name", READERS)
def test_declaration(name: str) -> None:
    operator = find(name)
    assert operator.effect is Effect.SOURCE
    assert operator.bound is Bound.IO
    assert operator.deterministic
    assert operator.reasons == REASONS
    assert operator.files(operator.params(path="data/a")) == ("data/a",)
    assert all(info.description for info in operator.params.model_fields.values())


def test_the_family_is_complete() -> None:
    assert {name for name in catalogue() if name.startswith("read.")} == set(READERS)


@pytest.mark.parametrize("name", READERS)
def test_run_gives_a_source_of_the_format(name: str, tmp_path: Path) -> None:
    operator = find(name)
    spec = operator.run(operator.params(path="a", max_bad=0.5, columns=("x",)), Context("web", project=tmp_path))
    assert isinstance(spec, SourceSpec)
    assert (spec.name, spec.root, spec.path, spec.format) == ("web", tmp_path, "a", name.removeprefix("read."))
    assert spec.max_bad == 0.5
    assert spec.columns == ("x",)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("read.jsonl", {"max_bad": 1.5}),
        ("read.jsonl", {"on_bad_row": "skip"}),
        ("read.jsonl", {"max_line_mb": 0}),
        ("read.jsonl", {"delimiter": ","}),
        ("read.csv", {"delimiter": ",,"}),
        ("read.tsv", {"delimiter": ","}),
        ("read.txt", {"unit": "word"}),
        ("read.json", {"cast": {"a": "date"}}),
        ("read.parquet", {"encoding": "utf-8"}),
    ],
)
def test_bad_parameters_are_refused(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        find(name).params(path="a", **options)


def test_schema_follows_columns_and_cast() -> None:
    operator = find("read.csv")
    found = {"a": ColumnType("string", nullable=False), "b": ColumnType("string")}
    assert operator.writes(operator.params(path="x"), found) == found
    picked = operator.params(path="x", columns=("b",), cast={"b": "int64"})
    assert operator.writes(picked, found) == {"b": ColumnType("int64")}
    assert operator.writes(picked, {}) == {"b": ColumnType("int64")}


def test_text_has_one_column() -> None:
    operator = find("read.txt")
    assert operator.writes(operator.params(path="x"), {}) == {
        "text": ColumnType("string", nullable=False, semantic="text")
    }
    assert operator.check(operator.params(path="x")) == []
    ((severity, field, message),) = operator.check(operator.params(path="x", columns=("body",)))
    assert (severity, field) == ("error", "columns")
    assert "body" in message


def test_a_source_that_was_described_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("p\tq\n1\t007\n")
    operator = find("read.tsv")
    spec = operator.run(operator.params(path="a.tsv", cast={"p": "int64"}), Context("t", project=tmp_path))
    assert read_whole(spec).rows.select(["p", "q"]).to_pylist() == [{"p": 1, "q": "007"}]
