"""Case 23: when nothing is left, the reasons are told and nothing is registered."""

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from datamill.errors import DatamillError
from datamill.operators.declaration import Context
from datamill.operators.format.alpaca import AlpacaParams, alpaca
from datamill.operators.format.chat import ChatParams, chat
from datamill.services.reading.reader import infer_schema, plan_chunks, read_chunk
from datamill.services.reading.source import SourceSpec
from datamill.services.writing import write_rows
from datamill.workflows.llamafactory_dataset import register_output
from datamill.workflows.spec import RegistrySpec

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "23-every-sample-dropped"
pytestmark = pytest.mark.skipif(not CASE.is_dir(), reason="needs ../shared")


def read(path: Path, **options: Any) -> tuple[pa.Table, pa.Table]:
    spec = SourceSpec("in", path.name, root=path.parent, max_bad=1.0, **options)
    schema, _ = infer_schema(spec)
    batches = [batch for chunk in plan_chunks(spec) for batch in read_chunk(spec, chunk, schema)]
    rows = pa.concat_tables([batch.rows for batch in batches])
    return rows, pa.concat_tables([batch.fates for batch in batches])


@pytest.mark.parametrize("formatting", ["sharegpt", "alpaca"])
def test_reasons_are_counted_and_nothing_is_registered(tmp_path: Path, formatting: Any) -> None:
    rows, _ = read(CASE / "in.json")
    ctx = Context(step="format")
    outcome = (
        chat(rows, ChatParams(user="instruction", input="input", assistant="output"), ctx)
        if formatting == "sharegpt"
        else alpaca(rows, AlpacaParams(input="input"), ctx)
    )
    reasons = Counter(outcome.fates["reason"].to_pylist())
    assert (outcome.rows.num_rows, reasons) == (0, {"empty_answer": 2, "no_user_turn": 1})
    file = write_rows([outcome.rows], tmp_path / "out.jsonl", "jsonl")
    with pytest.raises(DatamillError, match="2 empty answer, 1 no user turn") as stopped:
        register_output(file.path, RegistrySpec(name="none", formatting=formatting), rows=file.rows, reasons=reasons)
    assert stopped.value.exit_code != 0
    assert not (tmp_path / "dataset_info.json").exists()
