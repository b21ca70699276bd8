"""Settings with the origin of each value.

Precedence: flag > `DATAMILL_*` environment > `./datamill.toml` > `~/.config/datamill/config.toml` > default.
Nested environment names use two underscores: `DATAMILL_LLM__MAX_RPM=60`. A name that is no setting is an error
wherever it stands, in a file or in the environment, so that a misspelt value is never ignored.
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from datamill.errors import DatamillError, ExitCode, Issue, nearest

PREFIX = "DATAMILL_"
INTERNAL = frozenset({"DATAMILL_CRASH_AT"})
"""Variables with the prefix that are no settings: the rehearsal of a crash (`services.storage.atomic`)."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class LLMSettings(_Section):
    """Where LLM operators and the `llm` planner send requests. Keys come from the environment only."""

    base_url: str | None = Field(None, description="OpenAI-compatible endpoint; OPENAI_BASE_URL when unset")
    model: str | None = Field(None, description="model name")
    max_rpm: int = Field(60, ge=1, description="requests per minute")
    max_tpm: int = Field(100_000, ge=1, description="tokens per minute")
    timeout_s: float = Field(60.0, gt=0, description="seconds before a request is given up")
    max_retries: int = Field(4, ge=0, description="retries of a failed request")
    usd_per_million_input: float = Field(0.0, ge=0, description="price of a million prompt tokens")
    usd_per_million_output: float = Field(0.0, ge=0, description="price of a million completion tokens")


class RunSettings(_Section):
    """Defaults of `datamill run`."""

    executor: str = Field("local", description="local, ray or spark")
    workers: int | None = Field(None, ge=1, description="worker processes; the number of cores when unset")
    shard_rows: int = Field(5000, ge=1, description="rows of a unit of work")
    budget_usd: float = Field(0.0, ge=0, description="LLM money a run may spend without a specific yes")
    wall_minutes: float | None = Field(None, gt=0, description="minutes after which a run stops, resumable")


class Settings(_Section):
    """All settings."""

    llm: LLMSettings = LLMSettings()
    run: RunSettings = RunSettings()
    allow_paths: tuple[str, ...] = Field((), description="folders outside the project that workflows may read")
    allow_env: tuple[str, ...] = Field((), description="environment variables that `${env.NAME}` may read")


@dataclass(frozen=True)
class Resolved:
    """Settings and, for each dotted name, where its value came from."""

    settings: Settings
    origins: Mapping[str, str]


def config_home() -> Path:
    """Folder of the user's configuration (XDG)."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "datamill"


def cache_home() -> Path:
    """Folder of caches shared by projects, such as converted models (XDG)."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "datamill"


def resolve(project: Path, flags: Mapping[str, Any] | None = None, env: Mapping[str, str] = os.environ) -> Resolved:
    """Merge all sources of settings for `project`.

    Args:
        project: project folder, looked at for `datamill.toml`.
        flags: dotted names to values given on the command line; None values are ignored.
        env: the environment.

    Raises:
        DatamillError: `DM-CFG-001` for an unreadable file, `DM-CFG-002` for an unknown name or a bad value, in a file
            or in the environment. Variables that `allow_env` names belong to the user and may be called anything.
    """
    merged: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for origin, values in (
        (str(config_home() / "config.toml"), _from_file(config_home() / "config.toml")),
        ("datamill.toml", _from_file(project / "datamill.toml")),
        ("environment", _from_env(env)),
        ("flag", {k: v for k, v in (flags or {}).items() if v is not None}),
    ):
        for name, value in values.items():
            merged[name] = value
            origins[name] = origin
    settings = _validate(_nest(merged), origins)
    _refuse_unknown(env, settings.allow_env)
    return Resolved(settings, {name: origins.get(name, "default") for name in flat_names()})


def flat_names(model: type[BaseModel] = Settings, prefix: str = "") -> tuple[str, ...]:
    """Every dotted setting name."""
    names: list[str] = []
    for name, info in model.model_fields.items():
        kind = info.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            names.extend(flat_names(kind, f"{prefix}{name}."))
        else:
            names.append(prefix + name)
    return tuple(names)


def _from_file(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        return _flatten(tomllib.loads(path.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise DatamillError(
            "DM-CFG-001", f"cannot read settings: {error}", exit_code=ExitCode.INVALID, file=str(path)
        ) from error


def _flatten(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in data.items():
        if isinstance(value, Mapping):
            flat.update(_flatten(value, f"{prefix}{key}."))
        else:
            flat[prefix + key] = value
    return flat


def _from_env(env: Mapping[str, str]) -> dict[str, Any]:
    names = set(flat_names())
    found = {}
    for key, value in env.items():
        name = _setting_of(key)
        if key.startswith(PREFIX) and name in names:
            found[name] = value.split(os.pathsep) if name.startswith("allow_") else value
    return found


def _setting_of(variable: str) -> str:
    return variable.removeprefix(PREFIX).lower().replace("__", ".")


def _refuse_unknown(env: Mapping[str, str], allowed: tuple[str, ...]) -> None:
    """Raise `DM-CFG-002` for every variable with the prefix that is nothing datamill knows."""
    names = flat_names()
    issues = []
    for key in sorted(key for key in env if key.startswith(PREFIX)):
        if _setting_of(key) in names or key in INTERNAL or key in allowed:
            continue
        near = nearest(_setting_of(key), names)
        close = None if near is None else PREFIX + near.upper().replace(".", "__")
        message = f"the environment variable `{key}` is no setting"
        fix = f"unset {key}, or correct its name (two underscores stand for the dot of a nested name)"
        issues.append(Issue("DM-CFG-002", message, file="environment", nearest=close, fix=fix))
    if issues:
        raise DatamillError("DM-CFG-002", issues[0].message, exit_code=ExitCode.INVALID, issues=issues)


def _nest(flat: Mapping[str, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for name, value in flat.items():
        *parents, leaf = name.split(".")
        node = nested
        for parent in parents:
            node = node.setdefault(parent, {})
        node[leaf] = value
    return nested


def _validate(nested: dict[str, Any], origins: Mapping[str, str]) -> Settings:
    try:
        return Settings.model_validate(nested)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise DatamillError(
            "DM-CFG-002",
            f"setting `{name}`: {first['msg']}",
            exit_code=ExitCode.INVALID,
            file=origins.get(name),
            nearest=nearest(name, flat_names()),
            fix="datamill config show",
        ) from error
