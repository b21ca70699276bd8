from pathlib import Path
from typing import Any

import pytest
from support.project import compiled, make_project

from datamill.errors import PlanError
from datamill.workflows.interpolate import Interpolation, suspicious_code


def scope(**params: Any) -> Interpolation:
    return Interpolation(params, {"LEVEL": "high"}, {"web": "data/web.jsonl"})


def test_a_lone_reference_keeps_its_type_and_one_within_text_becomes_text() -> None:
    table = scope(min=30, codes=["en", "zh"], half=0.5)
    value = {"a": "${params.min}", "b": "at least ${params.min} of ${inputs.web.path}", "c": ["${params.codes}"]}
    assert table.apply(value) == {"a": 30, "b": "at least 30 of data/web.jsonl", "c": [["en", "zh"]]}
    assert table.apply("${params.half}") == 0.5
    assert table.apply("${env.LEVEL}") == "high"
    assert table.issues == []


def test_values_are_substituted_once() -> None:
    """A parameter that holds a reference stays text: there is no second pass that could smuggle anything in."""
    assert scope(evil="${env.LEVEL}").apply("${params.evil}") == "${env.LEVEL}"


@pytest.mark.parametrize(
    ("text", "close"),
    [
        ("${params.mn}", "params.min"),
        ("${parms.min}", "params.min"),
        ("${input.web.path}", "inputs.web.path"),
        ("${env.HOME}", None),
        ("${params.min * 2}", "params.min"),
        ("${}", None),
        ("${inputs.web}", "inputs.web.path"),
    ],
)
def test_a_reference_to_nothing_names_the_nearest(text: str, close: str | None) -> None:
    table = scope(min=1)
    table.apply({"steps": [text]})
    (path, issue), *rest = table.issues
    assert rest == []
    assert path == ("steps", 0)
    assert (issue.code, issue.nearest) == ("DM-PLAN-010", close)


def test_an_environment_variable_needs_to_be_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATA_LEVEL", "14")
    folder = make_project(tmp_path)
    text = (folder / "plan.yaml").read_text().replace("min: 12", 'min: "${env.DATA_LEVEL}"')
    with pytest.raises(PlanError) as refused:
        compiled(folder, text)
    issue = next(issue for issue in refused.value.issues if issue.code == "DM-PLAN-010")
    assert issue.line == 8
    assert 'allow_env = ["DATA_LEVEL"]' in str(issue.fix)
    plan = compiled(folder, text, allow_env=("DATA_LEVEL",))
    assert plan.step("size").params["min"] == 14


@pytest.mark.parametrize(
    "value",
    [
        "lambda row: row", "__import__('os')", "{{ config }}", "{% for x in y %}", "$(rm -rf /)", "eval(x)",
        "os.system('ls')", "subprocess.run(['ls'])", "import os", "getattr(x, 'y')",
    ],
)  # fmt: skip
def test_code_in_parameters_is_refused_with_its_line(value: str, tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    quoted = '"' + value.replace('"', '\\"') + '"'
    text = (folder / "plan.yaml").read_text().replace("user: text", f"user: {quoted}")
    with pytest.raises(PlanError) as refused:
        compiled(folder, text)
    issue = refused.value.issues[0]
    assert (issue.code, issue.step, issue.line) == ("DM-PLAN-011", "chat", 11)


@pytest.mark.parametrize(
    "value", ["the lambda function", "import tax is due", "evaluate (x)", "a $ sign", "C:\\data", "text == 'x'", "{}"]
)
def test_plain_words_are_not_code(value: str) -> None:
    hits = suspicious_code({"a": [value]})
    assert ("import tax" in value) == bool(hits), "a sentence that starts with `import x` is the one known false alarm"


def test_reasons_and_descriptions_may_say_anything(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    text = (folder / "plan.yaml").read_text().replace("name: small", 'name: small\ndescription: "eval(x) {{y}}"', 1)
    text = text.replace("id: size,", 'id: size, why: "they said eval(this)",')
    assert compiled(folder, text).step("size").why == "they said eval(this)"
