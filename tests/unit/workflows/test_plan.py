import json
from pathlib import Path
from typing import Any

import pytest
from support.project import compiled, make_project, small_rows, write_rows

from datamill.workflows.diff import diff_consents, diff_plans
from datamill.workflows.plan import canonical, sha256
from datamill.workflows.yaml_file import dump, parse


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("plan"), count=30)


def text_of(folder: Path) -> str:
    return (folder / "plan.yaml").read_text()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("version: 1", "# a comment\nversion: 1"),
        ("name: small", "name: other"),
        ("name: small\n", "name: small\ndescription: words\n"),
        ("id: size,", 'id: size, why: "because",'),
        ("shard_rows: 20", "shard_rows: 7, workers: 3"),
        ("run: {shard_rows: 20}\n", ""),
        ("normalise: true", "normalise: true"),
        ("params: {n: 40}", "params: {n: 40, fraction: null}"),
        ("needs: size,", "needs: [size],"),
        ("min: 12", "min: 0xC"),
    ],
)
def test_what_changes_no_result_does_not_change_the_digest(project: Path, old: str, new: str) -> None:
    plain = text_of(project)
    assert compiled(project, plain.replace(old, new, 1)).digest == compiled(project, plain).digest


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("min: 12", "min: 13", "~ size.min  12 -> 13"),
        ("seed: 5", "seed: 6", "~ seed  5 -> 6"),
        ("out/clean.jsonl", "out/other.jsonl", "~ output clean.path  out/clean.jsonl -> out/other.jsonl"),
        ("n: 40", "n: 41", "~ pick.n  40 -> 41"),
        ("max_bad: 0.5", "max_bad: 0.4", "~ load.max_bad  0.5 -> 0.4"),
        ("operator: sample.random", "on_error: drop, operator: sample.random", "~ pick.on_error  fail -> drop"),
        ("run: {", "run: {budget: {llm_usd: 1}, ", "~ budget.llm_usd  0.0 -> 1.0"),
        ("run: {", "checks: [{on: clean, metric: rows, min: 1}]\nrun: {", "~ checks  []"),
        (", card: true", "", "~ output clean.card  True -> False"),
    ],
)
def test_what_changes_the_result_changes_the_digest_and_is_named(project: Path, old: str, new: str, line: str) -> None:
    before = compiled(project)
    after = compiled(project, text_of(project).replace(old, new, 1))
    assert after.digest != before.digest
    lines = diff_plans(before, after)
    assert len(lines) == 1
    assert lines[0].startswith(line)


def test_the_content_of_an_input_counts_and_its_name_does_not(tmp_path: Path) -> None:
    folder = make_project(tmp_path, count=30)
    before = compiled(folder)
    (folder / "rows.jsonl").rename(folder / "moved.jsonl")
    moved = compiled(folder, text_of(folder).replace("rows.jsonl", "moved.jsonl"))
    assert [step.key(1) for step in moved.steps[1:]] == [step.key(1) for step in before.steps[1:]]
    rows = small_rows(30)
    rows[3] = {"text": "another sentence in its place", "answer": "x"}
    write_rows(folder / "rows.jsonl", rows)
    after = compiled(folder)
    assert after.digest != before.digest
    assert "~ load: the content of the input changed" in diff_plans(before, after)


def test_steps_added_removed_and_moved_are_told_apart(project: Path) -> None:
    before = compiled(project)
    exact = "  - {id: exact, operator: dedup.exact, needs: size, params: {columns: [text]}}\n"
    without = (
        text_of(project).replace(exact, "").replace("needs: exact", "needs: size").replace("from: exact", "from: size")
    )
    lines = diff_plans(before, compiled(project, without))
    assert "- exact (dedup.exact)" in lines
    assert "~ pick.needs  ['exact'] -> ['size']" in lines
    back = diff_plans(compiled(project, without), before)
    assert any(line.startswith("+ exact (dedup.exact) columns=['text']") for line in back)
    assert diff_plans(before, before) == []
    swapped = (
        text_of(project).replace("needs: load", "needs: SIZE").replace("needs: fix", "needs: load")
        .replace("needs: SIZE", "needs: size").replace("needs: size, params: {columns: [text]}}\n  - {id: pick", "needs: fix, params: {columns: [text]}}\n  - {id: pick")
    )  # fmt: skip
    moved = diff_plans(before, compiled(project, swapped))
    assert any(line.startswith("~ order: load > size > fix") for line in moved)


def test_outputs_added_and_removed(project: Path) -> None:
    before = compiled(project)
    rest = "  rest: {from: exact, path: out/exact.parquet, format: parquet}\n"
    after = compiled(project, text_of(project).replace(rest, "  more: {from: fix, path: out/more.jsonl}\n"))
    assert diff_plans(before, after) == ["- output rest", "+ output more -> out/more.jsonl"]


def test_long_values_are_cut_in_a_diff() -> None:
    base: dict[str, Any] = {"steps": [], "outputs": {}, "seed": "x" * 500}
    (line,) = diff_consents(base, {**base, "seed": 1})
    assert len(line) < 90


def test_load_and_save_give_the_same_plan_and_the_same_bytes(project: Path) -> None:
    plan = compiled(project)
    again = compiled(project, plan.yaml)
    assert again.digest == plan.digest
    assert again.yaml == plan.yaml
    assert dump(parse(plan.yaml).tree) == plan.yaml


def test_defaults_are_written_out_and_seeds_are_derived(project: Path) -> None:
    plan = compiled(project)
    assert plan.step("exact").params["normalise"] is True
    assert plan.step_seed("pick") != plan.step_seed("exact")
    own = compiled(project, text_of(project).replace("n: 40", "n: 40, seed: 99"))
    assert own.step_seed("pick") == 99
    with pytest.raises(KeyError):
        plan.step("absent")
    assert plan.consumers("exact") == ("pick", "output:rest")
    assert ("size", "exact") in set(plan.edges())
    assert json.loads(json.dumps(plan.to_dict(), default=str))["digest"] == plan.digest


def test_canonical_json_does_not_depend_on_key_order_or_python_hashes() -> None:
    assert canonical({"b": 1, "a": "é"}) == '{"a":"é","b":1}'
    assert (
        sha256({"b": 1, "a": 2})
        == sha256({"a": 2, "b": 1})
        == "d3626ac30a87e6f7a6428233b3c68299976865fa5508e4267c5415c76af7a772"
    )
