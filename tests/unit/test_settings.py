import re
from pathlib import Path
from typing import Any

import pytest
from support.cli import run_cli

from datamill.errors import DatamillError, ExitCode
from datamill.services.storage.atomic import CRASH_VARIABLE
from datamill.settings import INTERNAL, PREFIX, Settings, cache_home, config_home, flat_names, resolve


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's configuration folder of its own, and no settings from the caller's environment."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    folder = tmp_path / "xdg" / "datamill"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def test_each_source_wins_over_the_one_below(home: Path, project: Path) -> None:
    layers: list[tuple[str, dict[str, Any], dict[str, str]]] = []
    assert resolve(project, env={}).settings == Settings()
    assert resolve(project, env={}).origins["run.workers"] == "default"
    (home / "config.toml").write_text("[run]\nworkers = 1\nshard_rows = 11\n")
    layers.append((str(home / "config.toml"), {}, {}))
    found = resolve(project, env={})
    assert (found.settings.run.workers, found.origins["run.workers"]) == (1, str(home / "config.toml"))
    (project / "datamill.toml").write_text("[run]\nworkers = 2\n")
    found = resolve(project, env={})
    assert (found.settings.run.workers, found.origins["run.workers"]) == (2, "datamill.toml")
    environment = {"DATAMILL_RUN__WORKERS": "3", "PATH": "/bin"}
    found = resolve(project, env=environment)
    assert (found.settings.run.workers, found.origins["run.workers"]) == (3, "environment")
    found = resolve(project, {"run.workers": 4, "run.shard_rows": None}, environment)
    assert (found.settings.run.workers, found.origins["run.workers"]) == (4, "flag")
    assert (found.settings.run.shard_rows, found.origins["run.shard_rows"]) == (11, str(home / "config.toml"))


def test_environment_values_are_typed_and_lists_are_split(home: Path, project: Path) -> None:
    environment = {
        "DATAMILL_LLM__TIMEOUT_S": "2.5",
        "DATAMILL_ALLOW_PATHS": "/a:/b",
        "DATAMILL_ALLOW_ENV": "X",
        "DATAMILL_CRASH_AT": "x",
    }
    settings = resolve(project, env=environment).settings
    assert settings.llm.timeout_s == 2.5
    assert settings.allow_paths == ("/a", "/b")
    assert settings.allow_env == ("X",)


@pytest.mark.parametrize(
    ("text", "code", "close"),
    [
        ("[run\n", "DM-CFG-001", None), ("[run]\nwokers = 3\n", "DM-CFG-002", "run.workers"),
        ("[run]\nworkers = 0\n", "DM-CFG-002", "run.workers"), ("[llm]\nmax_rpm = 'many'\n", "DM-CFG-002", "llm.max_rpm"),
        ("run = 3\n", "DM-CFG-002", None), ("[llm]\napi_key = 'x'\n", "DM-CFG-002", None),
    ],
)  # fmt: skip
def test_bad_settings_name_file_and_nearest(home: Path, project: Path, text: str, code: str, close: str | None) -> None:
    (project / "datamill.toml").write_text(text)
    with pytest.raises(DatamillError) as refused:
        resolve(project, env={})
    issue = refused.value.issues[0]
    assert (refused.value.code, refused.value.exit_code) == (code, ExitCode.INVALID)
    assert "datamill.toml" in str(issue.file or issue)
    if close is not None:
        assert issue.nearest == close


@pytest.mark.parametrize(
    ("variable", "close"),
    [
        ("DATAMILL_RUN__WOKERS", "DATAMILL_RUN__WORKERS"), ("DATAMILL_RUN_WORKERS", "DATAMILL_RUN__WORKERS"),
        ("DATAMILL_WORKERS", "DATAMILL_RUN__WORKERS"), ("DATAMILL_LLM__MAXRPM", "DATAMILL_LLM__MAX_RPM"),
        ("DATAMILL_ALOW_PATHS", "DATAMILL_ALLOW_PATHS"), ("DATAMILL_ZZZZ", None), ("DATAMILL_", None),
    ],
)  # fmt: skip
def test_a_misspelt_variable_is_refused_with_the_nearest(
    home: Path, project: Path, variable: str, close: str | None
) -> None:
    with pytest.raises(DatamillError) as refused:
        resolve(project, env={variable: "3"})
    issue = refused.value.issues[0]
    assert (refused.value.code, refused.value.exit_code) == ("DM-CFG-002", ExitCode.INVALID)
    assert (issue.file, issue.nearest) == ("environment", close)
    assert f"`{variable}` is no setting" in issue.message
    assert f"unset {variable}" in str(issue.fix)


def test_all_misspelt_variables_come_in_one_report(home: Path, project: Path) -> None:
    with pytest.raises(DatamillError) as refused:
        resolve(project, env={"DATAMILL_RUN__WOKERS": "3", "DATAMILL_A": "", "DATAMILL_RUN__WORKERS": "2", "HOME": "/"})
    assert [issue.message.split("`")[1] for issue in refused.value.issues] == ["DATAMILL_A", "DATAMILL_RUN__WOKERS"]


def test_other_variables_are_left_alone(home: Path, project: Path) -> None:
    others = ("_DATAMILL_COMPLETE", "DATAMILLS", "MY_DATAMILL_X", "datamill_run__wokers", *INTERNAL)
    assert resolve(project, env=dict.fromkeys(others, "x")).settings == Settings()
    (project / "datamill.toml").write_text('allow_env = ["DATAMILL_CORPUS"]\n')
    assert resolve(project, env={"DATAMILL_CORPUS": "x"}).settings.allow_env == ("DATAMILL_CORPUS",)
    with pytest.raises(DatamillError, match="DATAMILL_CORPSE"):
        resolve(project, env={"DATAMILL_CORPSE": "x"})


def test_every_variable_the_code_reads_is_known() -> None:
    root = Path(__file__).parents[2]
    files = [
        file
        for part in ("agents", "operators", "services", "src", "training", "workflows")
        for file in (root / part).rglob("*.py")
    ]
    found = {
        name for file in files for name in re.findall(r"DATAMILL_[A-Z0-9_]*[A-Z0-9]", file.read_text(encoding="utf-8"))
    }
    assert CRASH_VARIABLE in found
    known = {PREFIX + name.upper().replace(".", "__") for name in flat_names()}
    assert found - known <= INTERNAL


def test_the_command_line_refuses_a_misspelt_variable(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATAMILL_RUN__WOKERS", "3")
    ran = run_cli(project, ["config", "show", "--json"])
    assert (ran.code, ran.data["error"]["code"]) == (3, "DM-CFG-002")
    assert "environment: DM-CFG-002" in ran.err
    assert "did you mean `DATAMILL_RUN__WORKERS`?" in ran.err
    monkeypatch.delenv("DATAMILL_RUN__WOKERS")
    assert run_cli(project, ["config", "show"]).code == 0


def test_every_name_is_flat_and_described() -> None:
    names = flat_names()
    assert {"run.workers", "llm.max_rpm", "allow_paths"} <= set(names)
    assert all(
        info.description
        for model in (Settings.model_fields["run"].annotation, Settings.model_fields["llm"].annotation)
        for info in model.model_fields.values()
    )
    assert not any("key" in name for name in names), "keys come from the environment only"


def test_folders_follow_xdg(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert config_home() == home
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert cache_home() == tmp_path / "cache" / "datamill"
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert config_home() == tmp_path / ".config" / "datamill"
    assert cache_home() == tmp_path / ".cache" / "datamill"


def test_config_set_writes_what_show_reads_and_never_leaves_a_bad_value(home: Path, project: Path) -> None:
    for name, value in (
        ("run.workers", "3"),
        ("allow_paths", "[/data, '../x']"),
        ("llm.model", 'a "b"'),
        ("run.budget_usd", "0.5"),
    ):
        assert run_cli(project, ["config", "set", name, value]).code == 0
    shown = run_cli(project, ["config", "show", "--json"]).data
    assert shown["run.workers"] == {"value": 3, "origin": "datamill.toml"}
    assert shown["allow_paths"]["value"] == ["/data", "../x"]
    assert shown["llm.model"]["value"] == 'a "b"'
    before = (project / "datamill.toml").read_bytes()
    for name, value in (("run.workers", "0"), ("run.workers", "null"), ("run.shard_rows", "many")):
        assert run_cli(project, ["config", "set", name, value]).code == 3
        assert (project / "datamill.toml").read_bytes() == before
