"""Random small workflows with joins and branches, and the two inputs they read."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from support.project import small_rows, write_rows

STEPS: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("text.fix_unicode", {"columns": ["text"]}),
    ("filter.length", {"columns": ["text"], "unit": "chars", "min": 12}),
    ("filter.length", {"columns": ["text"], "unit": "words", "max": 5}),
    ("dedup.exact", {"columns": ["text"]}),
    ("sample.random", {"n": 15}),
    ("sample.random", {"fraction": 0.6}),
    ("filter.expr", {"expr": "text != 'tiny'"}),
)


@st.composite
def workflows(draw: st.DrawFn) -> dict[str, Any]:
    """A workflow of 1 to 7 steps on one or two inputs, with joins and branches."""
    inputs = [f"in{i}" for i in range(draw(st.integers(1, 2)))]
    names, steps = list(inputs), []
    for index in range(draw(st.integers(1, 7))):
        parents = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
        operator, params = draw(st.sampled_from(STEPS))
        if len(parents) > 1:
            operator, params = "mix.concat", {"domain_column": f"from_{index}"}
        steps.append({"id": f"s{index}", "operator": operator, "needs": parents, "params": dict(params)})
        names.append(f"s{index}")
    sources = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
    return {
        "version": 1,
        "name": "random",
        "seed": draw(st.integers(0, 99)),
        "inputs": {name: {"path": f"{name}.jsonl", "options": {"max_bad": 0.5}} for name in inputs},
        "steps": steps,
        "outputs": {
            f"o{i}": {"from": s, "path": f"out/o{i}.parquet", "format": "parquet"} for i, s in enumerate(sources)
        },
        "run": {"shard_rows": draw(st.sampled_from([11, 100]))},
    }


def fill(folder: Path) -> None:
    write_rows(folder / "in0.jsonl", small_rows(30))
    write_rows(folder / "in1.jsonl", small_rows(12))
