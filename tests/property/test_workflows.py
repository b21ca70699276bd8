"""Random workflows: they compile, survive saving, do not depend on the order of their lines, and their books balance."""

import random
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.project import approved_run, compiled
from support.random_workflows import fill, workflows

from datamill.services.engines.shards import read_shard
from datamill.services.records import ID
from datamill.workflows.compile import CompileOptions, compile_text
from datamill.workflows.ledger import LEAVING, Books
from datamill.workflows.lookup import RunData
from datamill.workflows.run_record import RunRecord
from datamill.workflows.yaml_file import dump


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dags")
    fill(folder)
    return folder


@given(workflows(), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_graphs_compile_and_survive_saving(project: Path, data: dict[str, Any], random: random.Random) -> None:
    plan = compiled(project, dump(data))
    place = {step.id: index for index, step in enumerate(plan.steps)}
    assert set(place) == {*data["inputs"], *(step["id"] for step in data["steps"])}
    assert all(place[a] < place[b] for a, b in plan.edges()), "parents come first"
    assert compiled(project, plan.yaml).digest == plan.digest
    assert compiled(project, plan.yaml).yaml == plan.yaml
    shuffled = {**data, "steps": random.sample(data["steps"], len(data["steps"]))}
    other = compile_text(dump(shuffled), CompileOptions(project))
    assert {s.id: s.key(7) for s in other.steps} == {s.id: s.key(7) for s in plan.steps}
    assert {s.id: dict(s.schema) for s in other.steps} == {s.id: dict(s.schema) for s in plan.steps}


@given(workflows())
@settings(max_examples=6, deadline=None)
def test_books_of_random_graphs_balance_row_by_row(data: dict[str, Any]) -> None:
    """The runner's own counts are held against sets of ids read back from the shards and fates of every step."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fill(folder)
        plan = compiled(folder, dump(data))
        result = approved_run(folder, plan)
        found = RunData(folder, RunRecord(result.folder))
        rows = {step: ids_of(found, step) for step in found.steps()}
        for step in plan.steps:
            books = Books.from_flat(result.steps[step.id])
            assert books.balance == 0
            assert books.rows_out == len(rows[step.id]) == len(set(rows[step.id]))
            fates = found.fates(step.id).to_pylist()
            left = sorted(fate["id"] for fate in fates if fate["fate"] in LEAVING)
            if not step.is_source:
                arrived = sorted(i for parent in step.needs for i in rows[parent])
                assert sorted([*rows[step.id], *left]) == arrived
        for output in result.outputs:
            assert pq.read_metadata(folder / output.path).num_rows == len(rows[plan.outputs[output.name].source])


def ids_of(found: RunData, step: str) -> list[str]:
    return [i for table in found.tables(step) for i in table[ID].to_pylist()]


@given(workflows(), st.integers(7, 20))
@settings(max_examples=3, deadline=None)
def test_outputs_do_not_depend_on_the_size_of_shards(data: dict[str, Any], shard_rows: int) -> None:
    contents = []
    for size in (shard_rows, 1000):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            fill(folder)
            plan = compiled(folder, dump({**data, "run": {"shard_rows": size}}))
            result = approved_run(folder, plan)
            contents.append({output.name: read_shard(folder / output.path).to_pylist() for output in result.outputs})
    assert contents[0] == contents[1]
