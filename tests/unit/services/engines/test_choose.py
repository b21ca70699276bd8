"""The name of an engine: what it opens, and the one error before work starts where it cannot be had."""

import importlib.util
import socket
from pathlib import Path
from typing import Any

import pytest

from datamill.errors import DatamillError, ExitCode
from datamill.services.engines.choose import ENGINES, EngineChoice, open_engine
from datamill.services.engines.local import LocalEngine


def refused(choice: EngineChoice) -> DatamillError:
    with pytest.raises(DatamillError) as caught:
        open_engine(choice)
    return caught.value


def without(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    """As if `package` were not installed."""
    real = importlib.util.find_spec

    def find_spec(name: str, *rest: Any) -> Any:
        return None if name == package else real(name, *rest)

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)


def closed_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        number: int = unused.getsockname()[1]
    return number


def test_local_is_the_default(tmp_path: Path) -> None:
    engine = open_engine(EngineChoice(workers=3, scratch=tmp_path))
    assert isinstance(engine, LocalEngine)
    assert (engine.workers, dict(engine.links)) == (3, {})
    engine.close()


def test_a_name_that_is_none_is_told_the_nearest() -> None:
    error = refused(EngineChoice("sparc"))
    assert (error.code, error.exit_code) == ("DM-ENV-002", ExitCode.MISSING_DEPENDENCY)
    assert error.issues[0].nearest == "spark"
    assert error.issues[0].expected == ", ".join(ENGINES)


@pytest.mark.parametrize(
    ("name", "package", "code"), [("ray", "ray", "DM-ENGINE-010"), ("spark", "pyspark", "DM-ENGINE-020")]
)
def test_a_package_that_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, package: str, code: str
) -> None:
    without(monkeypatch, package)
    error = refused(EngineChoice(name, scratch=tmp_path))
    assert (error.code, error.exit_code) == (code, ExitCode.MISSING_DEPENDENCY)
    assert f"datamill[{name}]" in (error.issues[0].fix or "")
    assert list(tmp_path.iterdir()) == [], "the scratch folder of an engine that never was stays behind"


def test_a_cluster_that_does_not_answer(tmp_path: Path) -> None:
    where = f"127.0.0.1:{closed_port()}"
    ray = refused(EngineChoice("ray", ray_address=where, scratch=tmp_path))
    spark = refused(EngineChoice("spark", spark_master=f"spark://{where}", scratch=tmp_path))
    assert (ray.code, spark.code) == ("DM-ENGINE-011", "DM-ENGINE-022")
    assert {ray.exit_code, spark.exit_code} == {ExitCode.MISSING_DEPENDENCY}
    assert where in str(ray)
    assert where in str(spark)
    assert list(tmp_path.iterdir()) == []


def test_the_master_may_stand_among_the_settings(tmp_path: Path) -> None:
    where = f"spark://127.0.0.1:{closed_port()}"
    assert where in str(refused(EngineChoice("spark", spark_conf={"spark.master": where}, scratch=tmp_path)))
