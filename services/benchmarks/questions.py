"""The questions of a local test-set file: which fields they are in and how the question is called.

Reads jsonl, json (array, or one object with one array), csv, tsv, parquet and txt (a question a line). It streams
nothing: a test set is small.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

from datamill.errors import DatamillError, ExitCode

QUESTION_FIELDS: Final = ("question", "text", "problem", "instruction", "input", "prompt", "query", "body")
"""Field names (any case) that hold the question when none are given."""

ID_FIELDS: Final = ("id", "question_id", "task_id", "uid", "idx")


@dataclass(frozen=True, slots=True)
class Question:
    """Text of one question and what to call it: its own id, else `line 3`."""

    text: str
    label: str


def read_questions(path: Path, columns: Sequence[str] = ()) -> list[Question]:
    """All questions of `path`; a row without text is passed over.

    Args:
        path: the file.
        columns: fields to join into the question; by default `QUESTION_FIELDS`, else every string field.

    Raises:
        DatamillError: `DM-OPB-002` when the file cannot be read or holds no text.
    """
    try:
        rows = list(_rows(path))
    except (OSError, ValueError) as error:
        raise _unreadable(path, str(error)) from error
    found = [Question(text, _label(row, number)) for number, row in enumerate(rows, 1) if (text := _text(row, columns))]
    if not found:
        raise _unreadable(path, f"no text in {', '.join(columns) or 'any field'}")
    return found


def _unreadable(path: Path, why: str) -> DatamillError:
    return DatamillError(
        "DM-OPB-002",
        f"cannot read questions: {why}",
        exit_code=ExitCode.INVALID,
        file=str(path),
        fix="name the field with `against_columns`, or give a jsonl, json, csv, parquet or txt file",
    )


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        yield from pq.read_table(path).to_pylist()
        return
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    if suffix in {".csv", ".tsv"}:
        yield from csv.DictReader(io.StringIO(text, newline=""), delimiter="\t" if suffix == ".tsv" else ",")
    elif suffix == ".txt":
        yield from ({"text": line} for line in text.split("\n"))
    elif text.lstrip().startswith("["):
        yield from _objects(json.loads(text))
    else:
        yield from _objects(_json_lines(text))


def _json_lines(text: str) -> Iterator[Any]:
    whole = text.strip()
    try:
        only = json.loads(whole)
    except ValueError:
        yield from (json.loads(line) for line in text.split("\n") if line.strip())
    else:
        arrays = [value for value in only.values() if isinstance(value, list)] if isinstance(only, dict) else []
        yield from arrays[0] if len(arrays) == 1 and len(only) == 1 else [only]


def _objects(values: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    for value in values:
        yield value if isinstance(value, dict) else {"text": str(value)}


def _text(row: Mapping[str, Any], columns: Sequence[str]) -> str:
    names = columns or _question_fields(row)
    return " ".join(value for name in names if isinstance(value := row.get(name), str) and value.strip())


def _question_fields(row: Mapping[str, Any]) -> list[str]:
    strings = [name for name, value in row.items() if isinstance(value, str)]
    named = [name for known in reversed(QUESTION_FIELDS) for name in strings if name.lower() == known]
    return named or strings


def _label(row: Mapping[str, Any], number: int) -> str:
    for name, value in row.items():
        if name.lower() in ID_FIELDS and isinstance(value, str | int):
            return str(value)
    return f"line {number}"
