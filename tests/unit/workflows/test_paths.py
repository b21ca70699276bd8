import json
from pathlib import Path

import pytest
from support.project import compiled, make_project

from datamill.errors import DatamillError, ExitCode, PlanError
from datamill.workflows.approval import approve
from datamill.workflows.execute import RunRequest, run_plan
from datamill.workflows.paths import PathPolicy, grant, granted
from datamill.workflows.run_record import list_runs


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.jsonl").write_text('{"text": "secret"}\n')
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", count=20)


READS = (
    "../outside/secret.jsonl",
    "OUT/secret.jsonl",
    "/etc/passwd",
    "~/x.jsonl",
    "data/../../outside/*.jsonl",
    "a\0b",
    "..",
)


@pytest.mark.parametrize("path", READS)
def test_reading_outside_the_project_is_refused(path: str, project: Path, outside: Path) -> None:
    issue = PathPolicy.of(project).check_read(path.replace("OUT", str(outside)), "load")
    assert issue is not None
    assert issue.code == "DM-PATH-001"


@pytest.mark.parametrize("path", ["https://example.org/a.jsonl", "s3://bucket/a", "file:///etc/passwd"])
def test_addresses_are_not_read_or_written(path: str, project: Path) -> None:
    policy = PathPolicy.of(project)
    for issue, code in (
        (policy.check_read(path, "a"), "DM-PATH-003"),
        (policy.check_write(path, "a", []), "DM-PATH-002"),
    ):
        assert issue is not None
        assert issue.code == code


def test_links_are_resolved_before_the_check(project: Path, outside: Path) -> None:
    (project / "link").symlink_to(outside)
    (project / "file.jsonl").symlink_to(outside / "secret.jsonl")
    policy = PathPolicy.of(project)
    assert policy.check_read("rows.jsonl", "a") is None
    for path in ("link/secret.jsonl", "file.jsonl", "link/*.jsonl"):
        issue = policy.check_read(path, "a")
        assert issue is not None, path
        assert issue.code == "DM-PATH-001"
    for path in ("link/new.jsonl", "file.jsonl"):
        issue = policy.check_write(path, "a", [])
        assert issue is not None, path
        assert issue.code == "DM-PATH-002"


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("../x.jsonl", "DM-PATH-002"), ("/tmp/x.jsonl", "DM-PATH-002"), (".", "DM-PATH-002"), ("a\0b", "DM-PATH-002"),
        (".datamill/approvals/x.json", "DM-PATH-002"), (".datamill", "DM-PATH-002"), ("out/../.datamill/x", "DM-PATH-002"),
        ("rows.jsonl", "DM-PATH-004"), ("./out/../rows.jsonl", "DM-PATH-004"), ("folder/new.jsonl", "DM-PATH-004"),
        ("shards/new.jsonl", "DM-PATH-004"), ("deep/a/b/new.jsonl", "DM-PATH-004"),
        ("shards/new.parquet", None), ("out/x.jsonl", None), ("rows2.jsonl", None),
    ],
)  # fmt: skip
def test_where_outputs_may_go(path: str, code: str | None, project: Path) -> None:
    policy = PathPolicy.of(project)
    inputs = [policy.resolve(p) for p in ("rows.jsonl", "folder", "shards/*.jsonl", "deep/**/*.jsonl")]
    issue = policy.check_write(path, "out", inputs)
    assert (issue.code if issue else None) == code


def test_a_grant_lets_a_named_file_be_read_and_nothing_beside_it(project: Path, outside: Path) -> None:
    (outside / "other.jsonl").write_text("{}\n")
    grant(project, [outside / "secret.jsonl"])
    grant(project, [outside / "secret.jsonl"])
    assert granted(project) == [outside / "secret.jsonl"]
    policy = PathPolicy.of(project)
    assert policy.check_read(str(outside / "secret.jsonl"), "a") is None
    assert policy.check_read(str(outside / "other.jsonl"), "a") is not None
    issue = policy.check_write(str(outside / "secret.jsonl"), "a", [])
    assert issue is not None, "a grant is for reading"
    assert PathPolicy.of(project, ["../outside"]).check_read(str(outside / "other.jsonl"), "a") is None


def test_all_path_findings_of_a_plan_come_at_compile_time(project: Path) -> None:
    text = (project / "plan.yaml").read_text().replace("out/clean.jsonl", "../clean.jsonl")
    text = text.replace("out/exact.parquet", "rows.jsonl").replace(
        "params: {columns: [text]}}\n  - {id: size", "params: {columns: [text]}}\n  - {id: size"
    )
    text = text.replace(
        "  - {id: pick",
        "  - {id: decon, operator: decon.ngram, needs: exact, params: {columns: [text], against: [../b.jsonl, none.jsonl]}}\n  - {id: pick",
    )
    with pytest.raises(PlanError) as refused:
        compiled(project, text)
    assert sorted(issue.code for issue in refused.value.issues if issue.severity == "error") == [
        "DM-PATH-001", "DM-PATH-002", "DM-PATH-004", "DM-PATH-005",
    ]  # fmt: skip


def refused_at_run(project: Path, plan: object) -> DatamillError:
    with pytest.raises(DatamillError) as refused:
        run_plan(plan, RunRequest(project, workers=1))  # type: ignore[arg-type]  # the plan of `compiled`
    return refused.value


def test_paths_are_checked_again_at_run_time(project: Path, outside: Path) -> None:
    """Between review and run the output folder became a link out of the project, and so did the input."""
    plan = compiled(project)
    approve(project, plan, "test")
    (project / "out").symlink_to(outside)
    error = refused_at_run(project, plan)
    assert {issue.code for issue in error.issues} == {"DM-PATH-002"}
    assert error.exit_code is ExitCode.INVALID
    (project / "out").unlink()
    (project / "rows.jsonl").rename(outside / "rows.jsonl")
    (project / "rows.jsonl").symlink_to(outside / "rows.jsonl")
    assert refused_at_run(project, plan).code == "DM-PATH-001"
    assert list_runs(project) == []
    assert sorted(path.name for path in outside.iterdir()) == ["rows.jsonl", "secret.jsonl"]


def test_a_named_file_that_changed_after_the_plan_stops_the_run(project: Path) -> None:
    (project / "bench.jsonl").write_text(
        json.dumps({"text": "a question that nobody has asked so far, word by word"}) + "\n"
    )
    step = "  - {id: decon, operator: decon.ngram, needs: exact, params: {columns: [text], against: [bench.jsonl]}}\n"
    text = (project / "plan.yaml").read_text().replace("  - {id: pick", step + "  - {id: pick")
    plan = compiled(project, text)
    approve(project, plan, "test")
    (project / "bench.jsonl").write_text(
        json.dumps({"text": "another question altogether, as long as the first"}) + "\n"
    )
    assert refused_at_run(project, plan).code == "DM-RUN-010"
    assert compiled(project, text).digest != plan.digest
    (project / "bench.jsonl").unlink()
    assert refused_at_run(project, plan).code == "DM-PATH-005"
