"""Case 46: equal forms are equal, different ones are not, and what cannot be decided is never called right."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from datamill.operators.declaration import Context
from datamill.operators.math.verdicts import worker
from datamill.operators.math.verify import VerifyParams, verify
from datamill.services.reading.reader import infer_schema, plan_chunks, read_chunk
from datamill.services.reading.source import SourceSpec

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "46-math-answers-that-are-equal"
pytestmark = pytest.mark.skipif(not CASE.is_dir(), reason="needs ../shared")


def read(path: Path, **options: Any) -> tuple[pa.Table, pa.Table]:
    spec = SourceSpec("in", path.name, root=path.parent, max_bad=1.0, **options)
    schema, _ = infer_schema(spec)
    batches = [batch for chunk in plan_chunks(spec) for batch in read_chunk(spec, chunk, schema)]
    rows = pa.concat_tables([batch.rows for batch in batches])
    return rows, pa.concat_tables([batch.fates for batch in batches])


def test_the_table_of_pairs() -> None:
    rows, _ = read(CASE / "pairs.jsonl", cast={"gold": "string", "pred": "string"})
    params = VerifyParams(prediction="pred", gold="gold", on_wrong="tag", timeout_s=60)
    try:
        outcome = verify(rows, params, Context(step="verify"))
    finally:
        worker().close()
    verdicts = dict(zip(outcome.rows["_id"].to_pylist(), outcome.rows["math_ok"].to_pylist(), strict=True))
    wanted = [json.loads(line)["equal"] for line in (CASE / "pairs.jsonl").read_text().splitlines()]
    pairs = list(zip(wanted, [verdicts[row] for row in rows["_id"].to_pylist()], strict=True))
    assert len(pairs) == 20
    assert sum(str(equal).lower() == verdict for equal, verdict in pairs) >= 18
    assert not any(verdict == "true" and not equal for equal, verdict in pairs)
