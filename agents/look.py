"""The inspect node's eyes: facts about a sample of each input, never the values of cells.

Column names, types, null shares, lengths, roles and languages are enough for a planner; rows stay where they are.
Evaluation sets lying beside an input (`*_eval`, `*_dev`, `*_val`, `*_target`) are found by name and offered as
targets and for decontamination. Cost: the head of every file.
"""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from datamill.agents.inspection import ColumnFacts, InputFacts, Inspection, role_of
from datamill.operators.declaration import Context
from datamill.operators.registry import find
from datamill.services.reading.files import resolve_files
from datamill.services.reading.reader import infer_schema, plan_chunks, read_chunk
from datamill.services.reading.schema import dtypes
from datamill.services.reading.source import SourceSpec

SAMPLE_ROWS = 200
EVALUATION = re.compile(r"(^|[_\-.])(eval|evaluation|dev|val|valid|validation|target)([_\-.]|$)", re.IGNORECASE)
DATA_SUFFIXES = (".jsonl", ".json", ".csv", ".parquet")


def inspect_inputs(paths: Sequence[str], project: Path) -> Inspection:
    """Facts about each input, and evaluation sets beside them.

    Raises:
        DatamillError: `DM-READ-...` for an input that cannot be read at all.
    """
    facts = tuple(_facts(path, project) for path in paths)
    found: dict[str, str] = {}
    for path in paths:
        folder = (project / path).resolve().parent
        for other in sorted(folder.iterdir()) if folder.is_dir() else ():
            shown = _relative(other, project)
            if other.suffix in DATA_SUFFIXES and EVALUATION.search(other.stem) and shown not in paths:
                found[other.stem] = shown
    return Inspection(inputs=facts, evaluation_sets=found)


def _relative(path: Path, project: Path) -> str:
    return path.relative_to(project.resolve()).as_posix() if project.resolve() in path.parents else str(path)


def _facts(path: str, project: Path) -> InputFacts:
    source = SourceSpec("input", str((project / path).resolve()), project)
    files = resolve_files(source).files
    chunks = plan_chunks(source, files)
    schema, _ = infer_schema(source, SAMPLE_ROWS)
    tables: list[pa.Table] = []
    for chunk in chunks[:1]:
        tables += [batch.rows.slice(0, SAMPLE_ROWS) for batch in _first(read_chunk(source, chunk, schema))]
    sample = pa.concat_tables(tables) if tables else schema.empty_table()
    kinds = dtypes(schema)
    columns = tuple(_column(name, kinds[name][0], sample) for name in kinds)
    lines = sum(chunk.num_newlines for chunk in chunks)
    found = files[0].format if files else "jsonl"
    rows = lines if found == "jsonl" else None
    return InputFacts(path=path, format=found, rows=rows, columns=columns, languages=_languages(columns, sample))


def _first(batches: Any) -> list[Any]:
    batch = next(iter(batches), None)
    return [] if batch is None else [batch]


def _column(name: str, dtype: str, sample: pa.Table) -> ColumnFacts:
    values = pl.from_arrow(sample[name]) if name in sample.column_names else pl.Series(name, [], pl.String)
    assert isinstance(values, pl.Series)
    share = values.null_count() / len(values) if len(values) else 0.0
    chars = 0.0
    if values.dtype == pl.String and len(values.drop_nulls()):
        chars = float(values.drop_nulls().str.len_chars().mean() or 0.0)
    return ColumnFacts(name=name, dtype=dtype, null_share=share, mean_chars=chars, role=role_of(name))


def _languages(columns: Sequence[ColumnFacts], sample: pa.Table) -> dict[str, float]:
    """Shares of languages in the longest text column of the sample."""
    texts = [c for c in columns if c.dtype == "string" and c.mean_chars > 0]
    if not texts or not sample.num_rows:
        return {}
    longest = max(texts, key=lambda c: c.mean_chars).name
    operator = find("lang.detect")
    params = operator.params.model_validate({"column": longest})
    outcome = operator.run(sample.slice(0, 50), params, Context("inspect"))
    counts = Counter(str(value) for value in outcome.rows["lang"].to_pylist())
    total = sum(counts.values())
    return {language: round(count / total, 3) for language, count in counts.most_common(5)} if total else {}
