"""Before Spark starts: Java, the master, the package for executors. Each trouble is one error with a fix, exit 6."""

import os
import zipfile
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from datamill.errors import DatamillError, ExitCode
from datamill.services.engines import spark_session
from datamill.services.engines.spark_session import MIN_JAVA, SparkConnection, check_java
from datamill.services.engines.visibility import Nonce


def fake_java(home: Path, version: str) -> Path:
    """A `java` that only knows its version, and says it on stderr as Java does."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2026-01-20' >&2\n", encoding="ascii")
    java.chmod(0o755)
    return java


def java_error() -> DatamillError:
    with pytest.raises(DatamillError) as caught:
        check_java()
    assert (caught.value.code, caught.value.exit_code) == ("DM-ENGINE-021", ExitCode.MISSING_DEPENDENCY)
    return caught.value


@pytest.fixture
def no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    return monkeypatch


@pytest.mark.parametrize(("version", "major"), [("17.0.19", 17), ("21.0.1", 21), ("25", 25)])
def test_java_of_age(tmp_path: Path, no_java: pytest.MonkeyPatch, version: str, major: int) -> None:
    no_java.setenv("JAVA_HOME", str(fake_java(tmp_path / "jdk", version).parents[1]))
    assert check_java() == major


@pytest.mark.parametrize(("version", "said"), [("11.0.2", "11"), ("1.8.0_402", "1"), ("16.0.1", "16")])
def test_java_too_old(tmp_path: Path, no_java: pytest.MonkeyPatch, version: str, said: str) -> None:
    no_java.setenv("PATH", str(fake_java(tmp_path / "jdk", version).parent))
    assert f"Java {said} is too old: Spark 4 needs Java {MIN_JAVA} or newer" in str(java_error())


def test_no_java(no_java: pytest.MonkeyPatch) -> None:
    assert "there is no Java" in str(java_error())
    no_java.setenv("JAVA_HOME", "/nowhere")
    assert "apt-get install" in str(java_error())


def test_a_java_that_says_nothing_of_a_version(tmp_path: Path, no_java: pytest.MonkeyPatch) -> None:
    java = fake_java(tmp_path / "jdk", "17")
    java.write_text("#!/bin/sh\nexit 1\n", encoding="ascii")
    no_java.setenv("JAVA_HOME", str(java.parents[1]))
    assert "there is no Java" in str(java_error())


def test_executors_get_the_wheel_first_and_what_the_person_adds(tmp_path: Path) -> None:
    own = {"spark.archives": "more.zip#more", "spark.executorEnv.PYTHONPATH": "/plugins", "spark.executor.cores": "2"}
    conf = spark_session._package(tmp_path, own)
    archives, path = conf["spark.archives"].split(","), conf["spark.executorEnv.PYTHONPATH"].split(os.pathsep)
    assert (archives[1], path) == ("more.zip#more", ["datamill_wheel", "/plugins"])
    archive, name = archives[0].split("#")
    assert name == path[0]
    assert "datamill/__init__.py" in zipfile.ZipFile(archive).namelist()
    assert conf["spark.executor.cores"] == "2"
    plain = spark_session._package(tmp_path, {})
    assert plain["spark.executorEnv.PYTHONPATH"] == "datamill_wheel"


class FakeRows:
    """An RDD whose tasks answer as told."""

    def __init__(self, answers: Any) -> None:
        self.answers = answers

    def map(self, _function: Any) -> "FakeRows":
        return self

    def collect(self) -> Any:
        if isinstance(self.answers, Exception):
            raise self.answers
        return self.answers() if callable(self.answers) else self.answers


class FakeSpark:
    """What of a session the check needs, and whether it was stopped."""

    def __init__(self, answers: Any) -> None:
        self.stopped = False
        self.asked: list[Nonce] = []
        self.sparkContext = SimpleNamespace(parallelize=self.parallelize)
        self.answers = answers

    def parallelize(self, rows: list[Nonce], count: int) -> FakeRows:
        assert len(rows) == count
        self.asked = rows
        return FakeRows(self.answers)

    def stop(self) -> None:
        self.stopped = True


def checked(answers: Any, folder: Path) -> tuple[FakeSpark, DatamillError | None]:
    spark = FakeSpark(answers)
    try:
        SparkConnection(spark, started=True, cpus=2).check_seen("spark://m:7077", folder)  # type: ignore[arg-type]
    except DatamillError as error:
        return spark, error
    return spark, None


def test_executors_that_see_the_folder(tmp_path: Path) -> None:
    spark, error = checked([None] * 4, tmp_path)
    assert (error, spark.stopped, len(spark.asked)) == (None, False, 4)
    assert spark.asked[0].path.read_text() == spark.asked[0].word


def test_an_executor_that_does_not_see_the_folder(tmp_path: Path) -> None:
    spark, error = checked([None, "far", None, "far"], tmp_path)
    assert error is not None
    assert (error.code, error.exit_code, spark.stopped) == ("DM-ENGINE-024", ExitCode.INVALID, True)
    assert "workers on far do not see the folder" in str(error)


def test_a_cluster_without_executors_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_session, "PROBE_SECONDS", 0.05)
    never: Future[Any] = Future()
    spark, error = checked(lambda: never.result(timeout=5), tmp_path)
    never.set_result([])
    assert error is not None
    assert (error.code, error.exit_code, spark.stopped) == ("DM-ENGINE-022", ExitCode.MISSING_DEPENDENCY, True)
    assert "no executor of spark://m:7077 took a task" in str(error)


def test_executors_that_cannot_run_datamill(tmp_path: Path) -> None:
    trace = "Job aborted\n  at java.lang.Thread\nModuleNotFoundError: No module named 'polars'\n\tat scala"
    _, error = checked(RuntimeError(trace), tmp_path)
    assert error is not None
    assert "executors of spark://m:7077 cannot run datamill: ModuleNotFoundError: No module named 'polars'" in str(
        error
    )
    assert len(str(error).splitlines()) == 2


def started(
    monkeypatch: pytest.MonkeyPatch, folder: Path, master: str | None, conf: Mapping[str, str]
) -> tuple[str, Any]:
    """What Spark would be started with."""
    seen: list[tuple[str, Any]] = []

    def start(where: str, settings: Mapping[str, str]) -> Any:
        seen.append((where, settings))
        raise InterruptedError

    monkeypatch.setattr(spark_session, "_start", start)
    monkeypatch.setattr(spark_session, "check_java", lambda: 17)
    with pytest.raises(InterruptedError):
        SparkConnection.open(master, 3, conf, folder)
    return seen[0]


def test_here_a_task_is_tried_again_and_nothing_is_sent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert started(monkeypatch, tmp_path, None, {}) == ("local[3,4]", {})
    assert started(monkeypatch, tmp_path, None, {"spark.master": "local[1]"})[0] == "local[1]"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("master", ["local-cluster[2,1,1024]", "yarn", "k8s://https://host:443"])
def test_a_cluster_gets_the_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, master: str) -> None:
    where, conf = started(monkeypatch, tmp_path, master, {"spark.master": "local[1]"})
    assert where == master
    assert Path(conf["spark.archives"].split("#")[0]).is_file()
