"""report.stats: against plain Python and numpy, for any partitioning; rows are not touched."""

import random
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from datamill.operators.declaration import Context, registered
from datamill.operators.report.measures import collect_stats, quantile, read_stats
from datamill.operators.report.stats import StatsParams, stats
from datamill.services.engines.tables import TableDataset


def table(size: int = 300) -> pa.Table:
    rng = random.Random(4)
    texts: list[str | None] = [" ".join(["wörd"] * rng.randint(0, 40)) for _ in range(size)]
    texts[5] = None
    return pa.table(
        {
            "_id": [f"{i:032x}" for i in range(size)],
            "_ord": list(range(size)),
            "_src": ["f:1"] * size,
            "text": texts,
            "source": pa.array([rng.choice(["a", "b", None]) for _ in range(size)], pa.string()),
        }
    )


def report(rows: pa.Table, partitions: int, **params: Any) -> dict[str, Any]:
    return collect_stats(TableDataset.of(rows, partitions), StatsParams(**params))


def test_numbers_equal_a_plain_count() -> None:
    rows = table()
    found = report(rows, 3, columns=("text",), by=("source",))
    texts = [text for text in rows["text"].to_pylist() if text is not None]
    chars = [len(text) for text in texts]
    column = found["columns"]["text"]
    assert (found["rows"], column["nulls"]) == (300, 1)
    assert column["null_share"] == pytest.approx(1 / 300)
    assert column["empty"] == sum(not text for text in texts)
    assert column["chars"]["mean"] == pytest.approx(sum(chars) / len(chars))
    for share, value in column["chars"]["quantiles"].items():
        assert value == np.quantile(chars, float(share), method="inverted_cdf")
    assert column["words"]["max"] == max(len(text.split()) for text in texts)
    assert sum(bin_["count"] for bin_ in column["chars"]["histogram"]) == 299
    values = {line["value"]: line["count"] for line in found["by"]["source"]["top"]}
    assert values == Counter(rows["source"].to_pylist())
    assert found["by"]["source"]["distinct"] == 2
    assert found["duplicates"]["rows"] == 300 - len(set(rows["text"].to_pylist()))


def test_any_partitioning_and_order_gives_the_same_report() -> None:
    rows = table()
    shuffled = rows.take(pa.array(random.Random(1).sample(range(300), 300)))
    first = report(rows, 1, by=("source",))
    assert all(
        report(other, parts, by=("source",)) == first for other, parts in ((rows, 7), (shuffled, 4), (rows, 400))
    )


def test_the_operator_returns_no_decisions_and_the_report() -> None:
    result = stats([TableDataset.of(table(), 2)], StatsParams(), Context(step="stats"))
    assert result.num_rows == 0
    assert result.schema.names == ["_id"]
    found = read_stats(result)
    assert found is not None
    assert set(found["columns"]) == {"text", "source"}
    assert read_stats(TableDataset.of(table())) is None


def test_no_rows() -> None:
    found = report(table().slice(0, 0), 2, by=("source",))
    assert found["rows"] == 0
    assert found["columns"]["text"]["chars"] is None
    assert found["duplicates"] == {"rows": 0, "share": 0.0}


def test_quantiles_of_small_samples() -> None:
    assert quantile({3: 1}, 0.5) == 3
    assert [quantile({1: 1, 2: 1, 3: 1, 4: 1}, share) for share in (0, 0.25, 0.26, 0.5, 1)] == [1, 1, 2, 2, 4]
    with pytest.raises(ValueError, match="no values"):
        quantile({}, 0.5)


def test_quantiles_outside_the_unit_interval_are_refused() -> None:
    assert registered()["report.stats"].check(StatsParams(quantiles=(0.5, 2.0)))
    assert not registered()["report.stats"].check(StatsParams())
