"""Configuration of the endpoint: where from, what is refused, what is never shown."""

from pathlib import Path
from typing import Any

import pytest

from datamill.errors import DatamillError, ExitCode
from datamill.services.llm.config import (
    OPENAI_URL,
    Redactor,
    ServiceConfig,
    api_key,
    base_url,
    endpoint_name,
    has_endpoint,
    is_loopback,
    read_config,
    worker_settings,
)
from datamill.settings import LLMSettings, RunSettings, Settings


def test_the_address_comes_from_settings_then_environment_then_default() -> None:
    env = {"OPENAI_BASE_URL": "http://env/v1", "OPENAI_API_KEY": "sk-1234"}
    assert base_url(LLMSettings(base_url="http://set/v1"), env) == "http://set/v1"
    assert base_url(LLMSettings(), env) == "http://env/v1"
    assert base_url(LLMSettings(), {}) == OPENAI_URL


@pytest.mark.parametrize(
    ("settings", "env", "there"),
    [
        ({}, {}, False),
        ({"model": "m"}, {}, False),
        ({"base_url": "http://a/v1"}, {}, True),
        ({}, {"OPENAI_BASE_URL": "http://a/v1"}, True),
        ({}, {"OPENAI_API_KEY": "sk-1234"}, True),
        ({}, {"OPENAI_API_KEY": ""}, False),
    ],
)
def test_an_endpoint_is_an_address_or_a_key(settings: dict[str, Any], env: dict[str, str], there: bool) -> None:
    assert has_endpoint(LLMSettings(**settings), env) is there


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (None, "no LLM endpoint"),
        ({"base_url": "ftp://a/v1"}, "no http or https URL"),
        ({"base_url": "just words"}, "no http or https URL"),
        ({"base_url": "http://user:hunter2@a/v1"}, "may hold no credentials"),
        ({"base_url": "http://a/v1?api-key=hunter2"}, "may hold no credentials"),
        ({"base_url": "http://a/v1", "max_rpm": 0}, "llm.max_rpm"),
        ({"base_url": "http://a/v1", "max_rmp": 5}, "llm.max_rmp"),
    ],
)
def test_bad_configurations_say_what_and_show_no_secret(data: dict[str, Any] | None, words: str) -> None:
    with pytest.raises(DatamillError) as refused:
        read_config(data, {})
    assert refused.value.code == "DM-LLM-001"
    assert refused.value.exit_code == ExitCode.INVALID
    assert words in str(refused.value)
    assert "hunter2" not in str(refused.value)
    assert "fix: export OPENAI_BASE_URL" in str(refused.value)


def test_worker_settings_are_plain_data_and_round_trip(tmp_path: Path) -> None:
    settings = Settings(llm=LLMSettings(base_url="http://a/v1", model="m"), run=RunSettings(budget_usd=2.5))
    data = worker_settings(settings, state_dir=tmp_path / "run", cache_dir=tmp_path / "cache", concurrency=3)
    assert {type(value) for value in data.values()} <= {str, int, float, type(None)}
    config = read_config(data, {})
    assert (config.model, config.budget_usd, config.concurrency) == ("m", 2.5, 3)
    assert (config.state_dir, config.cache_dir) == (tmp_path / "run", tmp_path / "cache")


def test_the_key_is_read_where_it_is_used() -> None:
    assert api_key(ServiceConfig(), {"OPENAI_API_KEY": "sk-1234"}) == "sk-1234"
    assert api_key(ServiceConfig(api_key_env="OTHER_KEY"), {"OPENAI_API_KEY": "sk-1234"}) is None
    assert api_key(ServiceConfig(), {"OPENAI_API_KEY": ""}) is None


def test_endpoint_names_hold_neither_credentials_nor_query() -> None:
    assert endpoint_name("https://user:secret@API.host.example:8443/v1/?key=secret") == "api.host.example:8443/v1"
    assert endpoint_name(OPENAI_URL) == "api.openai.com/v1"


def test_loopback() -> None:
    assert is_loopback("http://127.0.0.1:8000/v1")
    assert is_loopback("http://localhost/v1")
    assert is_loopback("http://[::1]:9/v1")
    assert not is_loopback("http://127.0.0.1.evil.example/v1")
    assert not is_loopback(OPENAI_URL)


def test_the_redactor_hides_the_key_and_itself() -> None:
    redact = Redactor("sk-secret")
    assert redact("a sk-secret b sk-secret") == "a [redacted] b [redacted]"
    assert "sk-secret" not in repr(redact)
    assert Redactor(None)("nothing to hide") == "nothing to hide"
    assert Redactor("a")("a banana") == "a banana", "a key of one letter would ruin every text"


def test_a_money_budget_needs_a_price_where_calls_cost_money() -> None:
    env = {"OPENAI_API_KEY": "sk-1234"}
    with pytest.raises(DatamillError) as refused:
        read_config({"model": "m", "budget_usd": 1.0}, env)
    assert refused.value.code == "DM-LLM-011"
    assert "usd_per_million_input" in str(refused.value)
    priced = {"model": "m", "budget_usd": 1.0, "usd_per_million_output": 0.4}
    assert read_config(priced, env).usd_per_million_output == 0.4
    assert read_config({"model": "m"}, env).budget_usd is None
    assert read_config({"base_url": "http://127.0.0.1/v1", "budget_usd": 0.0}, env).budget_usd == 0.0


def test_another_key_variable_makes_an_endpoint() -> None:
    config = ServiceConfig(api_key_env="OTHER_KEY")
    assert has_endpoint(config, {"OTHER_KEY": "sk-1234"})
    assert not has_endpoint(config, {"OPENAI_API_KEY": "sk-1234"})
