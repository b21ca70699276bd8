import json
from pathlib import Path

import pytest
from support.project import compiled, make_project

from datamill.errors import DatamillError, ExitCode
from datamill.workflows.approval import APPROVALS, Approval, approval_of, approve, check_prefix, latest_of_name, require
from datamill.workflows.paths import STATE_FOLDER


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path, count=20)


def test_an_approval_names_digest_time_and_origin(project: Path) -> None:
    plan = compiled(project)
    assert approval_of(project, plan.digest) is None
    given = approve(project, plan, "terminal")
    assert given == Approval(plan.digest, given.time, "terminal")
    assert given.time.endswith("+00:00")
    assert require(project, plan, "x") == given


def test_approving_twice_changes_nothing(project: Path) -> None:
    plan = compiled(project)
    first = approve(project, plan, "terminal")
    files = {path: path.read_bytes() for path in (project / STATE_FOLDER / APPROVALS).iterdir()}
    assert approve(project, plan, "api") == first
    assert {path: path.read_bytes() for path in (project / STATE_FOLDER / APPROVALS).iterdir()} == files


def test_an_approval_is_for_one_digest_only_and_says_what_changed(project: Path) -> None:
    plan = compiled(project)
    with pytest.raises(DatamillError) as missing:
        require(project, plan, "datamill run plan.yaml --approve X")
    assert (missing.value.code, missing.value.exit_code) == ("DM-AGENT-002", ExitCode.NEEDS_APPROVAL)
    assert missing.value.issues[0].fix == "datamill run plan.yaml --approve X"
    approve(project, plan, "test")
    changed = compiled(project, overrides={"steps.pick.params.n": 7, "seed": 9})
    with pytest.raises(DatamillError) as stale:
        require(project, changed, "cmd")
    assert stale.value.code == "DM-AGENT-004"
    assert "~ pick.n  40 -> 7" in stale.value.issues[0].message
    assert "~ seed  5 -> 9" in stale.value.issues[0].message


def test_a_plan_by_another_name_does_not_show_a_foreign_difference(project: Path) -> None:
    approve(project, compiled(project), "test")
    other = compiled(project, overrides={"name": "other", "seed": 9})
    with pytest.raises(DatamillError) as missing:
        require(project, other, "cmd")
    assert missing.value.code == "DM-AGENT-002"
    assert latest_of_name(project, "other") is None


def test_a_prefix_has_to_be_long_and_right(project: Path) -> None:
    plan = compiled(project)
    for good in (plan.digest, plan.short, plan.digest[:6], plan.digest[:8].upper()):
        check_prefix(plan, good)
    for bad in ("", plan.digest[:5], "000000", plan.digest + "0", plan.digest[1:9]):
        with pytest.raises(DatamillError) as refused:
            check_prefix(plan, bad)
        assert refused.value.code == "DM-AGENT-003"
        assert refused.value.exit_code is ExitCode.NEEDS_APPROVAL


def test_the_approved_text_is_kept_beside_the_record(project: Path) -> None:
    plan = compiled(project)
    approve(project, plan, "test")
    folder = project / STATE_FOLDER / APPROVALS
    assert (folder / f"{plan.digest}.yaml").read_text() == plan.yaml
    record = json.loads((folder / f"{plan.digest}.json").read_text())
    assert record["name"] == "small"
    assert record["consent"] == json.loads(json.dumps(plan.consent()))


@pytest.mark.parametrize("damage", [b"{", b"\xff\xfe", b""])
def test_a_damaged_record_is_no_approval(project: Path, damage: bytes) -> None:
    plan = compiled(project)
    approve(project, plan, "test")
    (project / STATE_FOLDER / APPROVALS / f"{plan.digest}.json").write_bytes(damage)
    with pytest.raises(DatamillError) as refused:
        require(project, plan, "cmd")
    assert (refused.value.code, refused.value.exit_code) == ("DM-AGENT-005", ExitCode.NEEDS_APPROVAL)


def test_an_approval_made_for_another_digest_does_not_count_when_renamed(project: Path) -> None:
    """Copying a record to another digest's name is no approval: the record names its own digest."""
    plan = compiled(project)
    approve(project, plan, "test")
    changed = compiled(project, overrides={"seed": 9})
    folder = project / STATE_FOLDER / APPROVALS
    (folder / f"{changed.digest}.json").write_bytes((folder / f"{plan.digest}.json").read_bytes())
    with pytest.raises(DatamillError) as refused:
        require(project, changed, "cmd")
    assert refused.value.exit_code is ExitCode.NEEDS_APPROVAL
