"""Where requests go and within which limits; keys are looked up in the environment at the moment of use.

The driver builds a `ServiceConfig` once per run and hands it to the workers as plain data. It holds no secret: the
key is read from the environment (`OPENAI_API_KEY`, or the variable named by `api_key_env`) inside the process that
sends, and `Redactor` takes it out of every text that comes back.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import SplitResult, urlsplit

from pydantic import Field, ValidationError

from datamill.errors import DatamillError, ExitCode
from datamill.settings import LLMSettings, Settings

OPENAI_URL: Final = "https://api.openai.com/v1"
PAID_HOSTS: Final = frozenset({"api.openai.com"})
LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})


class ServiceConfig(LLMSettings):
    """Settings of the endpoint plus where a run keeps its state."""

    cache_dir: Path | None = Field(None, description="folder of accepted replies; no cache when unset")
    state_dir: Path | None = Field(None, description="folder of limits, budget and usage shared by the run's workers")
    budget_usd: float | None = Field(None, ge=0, description="most money the run may spend; no limit when unset")
    budget_tokens: int | None = Field(None, ge=0, description="most tokens the run may use; no limit when unset")
    concurrency: int = Field(8, ge=1, description="requests in flight per worker process")
    max_rate_limited: int = Field(12, ge=1, description="429 answers in a row that one request waits out")
    max_wait_s: float = Field(600.0, gt=0, description="longest Retry-After that is waited for")
    backoff_s: float = Field(0.5, gt=0, description="first pause before a repeated request; doubles each time")
    max_repairs: int = Field(2, ge=0, description="times a model is told what is wrong with its reply and asked again")
    structured: Literal["json_schema", "json_object", "prompt"] = Field(
        "json_schema", description="how the server is asked for JSON; `prompt` relies on the text alone"
    )
    token_limit: Literal["max_tokens", "max_completion_tokens"] = Field(
        "max_tokens", description="name of the completion limit on the wire"
    )
    api_key_env: str = Field("OPENAI_API_KEY", description="environment variable that holds the key")


def worker_settings(
    settings: Settings, *, state_dir: Path | None = None, cache_dir: Path | None = None, **overrides: Any
) -> dict[str, Any]:
    """Plain data for `Context.settings["llm"]`: the settings of the endpoint and of this run, no secrets."""
    merged = settings.llm.model_dump() | {"budget_usd": settings.run.budget_usd} | overrides
    config = ServiceConfig(**merged, state_dir=state_dir, cache_dir=cache_dir)
    return config.model_dump(mode="json")


def read_config(data: Mapping[str, Any] | None, env: Mapping[str, str] = os.environ) -> ServiceConfig:
    """The configuration a worker was given.

    Raises:
        DatamillError: `DM-LLM-001` when no endpoint is configured, a value is out of range, or the address holds
            credentials (it is shown and stored, so it may not); `DM-LLM-011` when money is limited and the endpoint
            is known to cost some, but no price is set, so that the limit could not hold.
    """
    config = _validated(data)
    if not has_endpoint(config, env):
        raise _not_configured("no LLM endpoint is configured")
    parts = urlsplit(base_url(config, env))
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise _not_configured("the address of the LLM endpoint is no http or https URL")
    if "@" in parts.netloc or parts.query:
        raise _not_configured(
            f"the address of the LLM endpoint may hold no credentials: put them in {config.api_key_env}"
        )
    priced = config.usd_per_million_input or config.usd_per_million_output
    if parts.hostname in PAID_HOSTS and config.budget_usd is not None and not priced:
        raise _no_price(parts.hostname)
    return config


def _validated(data: Mapping[str, Any] | None) -> ServiceConfig:
    try:
        return ServiceConfig.model_validate(dict(data or {}))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise _not_configured(f"setting `llm.{name}`: {first['msg']}") from None


def has_endpoint(config: LLMSettings, env: Mapping[str, str] = os.environ) -> bool:
    """Whether requests have somewhere to go: an address, or a key for the default one."""
    key_variable = config.api_key_env if isinstance(config, ServiceConfig) else "OPENAI_API_KEY"
    return bool(config.base_url or env.get("OPENAI_BASE_URL") or env.get(key_variable))


def base_url(config: LLMSettings, env: Mapping[str, str] = os.environ) -> str:
    """Address of the endpoint: setting, then `OPENAI_BASE_URL`, then OpenAI's own."""
    return config.base_url or env.get("OPENAI_BASE_URL") or OPENAI_URL


def endpoint_name(url: str) -> str:
    """Address for people, logs and cache keys: host, port and path without credentials or query."""
    parts = urlsplit(url)
    return f"{_host(parts)}{parts.path.rstrip('/')}"


def is_loopback(url: str) -> bool:
    """Whether the endpoint is on this machine, where proxies do not apply and no key is needed."""
    return urlsplit(url).hostname in LOOPBACK


def api_key(config: ServiceConfig, env: Mapping[str, str] = os.environ) -> str | None:
    """The key, None when the environment has none."""
    return env.get(config.api_key_env) or None


class Redactor:
    """Replaces the key in any text; its repr shows nothing."""

    def __init__(self, key: str | None) -> None:
        self._key = key if key and len(key) >= 4 else None

    def __call__(self, text: str) -> str:
        """The text without the key."""
        return text.replace(self._key, "[redacted]") if self._key else text

    def __repr__(self) -> str:
        return "Redactor()"


def _host(parts: SplitResult) -> str:
    host = parts.hostname or ""
    return f"{host}:{parts.port}" if parts.port else host


def _no_price(host: str) -> DatamillError:
    return DatamillError(
        "DM-LLM-011",
        f"{host} costs money, the run has a budget in dollars, and no price is set to hold it to",
        exit_code=ExitCode.INVALID,
        fix="set llm.usd_per_million_input and llm.usd_per_million_output in datamill.toml",
    )


def _not_configured(message: str) -> DatamillError:
    return DatamillError(
        "DM-LLM-001",
        message,
        exit_code=ExitCode.INVALID,
        fix="export OPENAI_BASE_URL=... OPENAI_API_KEY=... and set llm.model in datamill.toml",
    )
