"""Small batches become one unit, and nothing else about them changes."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from support.project import WORKFLOW, approved_run, compiled, make_project
from support.tables import texts

from datamill.services.reading.reader import read_chunk
from datamill.services.reading.source import Batch, Chunk, SourceSpec
from datamill.services.records import fates
from datamill.workflows import read_step
from datamill.workflows.lookup import RunData
from datamill.workflows.read_step import merged
from datamill.workflows.run_record import find_run


def batches(*sizes: int) -> list[Batch]:
    made = []
    for number, size in enumerate(sizes):
        rows = texts(*(f"{number}-{row}" for row in range(size)))
        record = fates([{"id": f"bad{number}", "fate": "quarantined", "reason": "invalid_json"}])
        made.append(Batch(rows, record, number, 1))
    return made


def sizes(found: Iterator[Batch]) -> list[int]:
    return [batch.rows.num_rows for batch in found]


@pytest.mark.parametrize(
    ("given", "most", "expected"),
    [
        ([3, 3, 3], 100, [9]),
        ([3, 3, 3], 6, [6, 3]),
        ([3, 3, 3], 7, [6, 3]),
        ([3, 3, 3], 2, [3, 3, 3]),
        ([9, 1, 1, 9], 4, [9, 2, 9]),
        ([0, 2, 0], 2, [2, 0]),
        ([3], 0, [3]),
        ([], 5, []),
    ],
)
def test_batches_are_put_together_up_to_a_number_of_rows(given: list[int], most: int, expected: list[int]) -> None:
    assert sizes(merged(batches(*given), most, 1 << 30)) == expected


def test_batches_are_put_together_up_to_a_number_of_bytes() -> None:
    one = batches(4)[0].rows.nbytes
    assert sizes(merged(batches(4, 4, 4, 4), 100, 2 * one)) == [8, 8]
    assert sizes(merged(batches(4, 4, 4), 100, 2 * one - 1)) == [4, 4, 4]
    assert sizes(merged(batches(4, 4, 4), 100, 1)) == [4, 4, 4]


def test_what_is_put_together_is_all_there_in_order() -> None:
    given = batches(2, 3, 1)
    (whole,) = merged(iter(given), 100, 1 << 30)
    assert whole.rows.equals(pa.concat_tables([batch.rows for batch in given]))
    assert whole.fates["id"].to_pylist() == ["bad0", "bad1", "bad2"]
    assert (whole.num_blank, whole.num_bad) == (3, 3)


def test_a_full_batch_is_handed_on_before_the_next_is_read() -> None:
    def reading() -> Iterator[Batch]:
        yield batches(5)[0]
        raise AssertionError("read on without need")

    assert next(merged(reading(), 5, 1 << 30)).rows.num_rows == 5


def cut_small(source: SourceSpec, chunk: Chunk, schema: pa.Schema) -> Iterator[Batch]:
    """What the reader gives, seven rows at a time."""
    for batch in read_chunk(source, chunk, schema):
        for start in range(0, batch.rows.num_rows, 7):
            first = start == 0
            yield Batch(
                batch.rows.slice(start, 7), batch.fates if first else batch.fates.slice(0, 0),
                batch.num_blank if first else 0, batch.num_bad if first else 0,
            )  # fmt: skip


def test_the_cut_changes_no_row_and_no_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_step, "read_chunk", cut_small)
    found, units = [], []
    for number, size in enumerate((1, 4096, 1 << 30)):
        monkeypatch.setattr(read_step, "MERGED_BYTES", size)
        folder = make_project(tmp_path / str(number), WORKFLOW.replace("shard_rows: 20", "shard_rows: 90"))
        result = approved_run(folder, compiled(folder))
        found.append(([(folder / o.path).read_bytes() for o in result.outputs], dict(result.steps), result.rows_in))
        units.append(len(list(RunData(folder, find_run(folder, "@last")).tables("load"))))
    assert found[0] == found[1] == found[2]
    assert units[0] == 15
    assert units[2] == 2
    assert units[2] < units[1] < units[0]
