"""Joining a Spark master, or starting Spark on this machine, and giving it back.

A session that was there keeps running. `spark.*` settings are passed through. Executors of a cluster import datamill
from a wheel built of what is installed here, sent as an archive; a local master shares the interpreter.
"""

import importlib.util
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from datamill.errors import DatamillError, ExitCode
from datamill.services.engines.visibility import PROBE_SECONDS, Nonce, require_seen
from datamill.services.engines.wheel import build_wheel

if TYPE_CHECKING:
    from pyspark.sql import SparkSession as Session

MIN_JAVA: Final = 17
TRIES: Final = 4
"""Times a task is tried when Spark is started here, as on a cluster; by itself a local master would try it once."""
CONNECT_SECONDS: Final = 5.0
PACKAGE: Final = "datamill_wheel"
DEFAULTS: Final = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1",  # a record is a whole table
    "spark.sql.execution.arrow.maxBytesPerBatch": "268435456",
    "spark.sql.adaptive.enabled": "false",  # it would merge buckets by their size on disk
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",  # errors are raised once; Spark's own trace is not shown too
    "spark.python.worker.reuse": "true",
    "spark.driver.memory": "2g",
    # the JVM moves bytes and computes nothing: compiling it hard costs more than it brings
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.maxResultSize": "0",
}


@dataclass
class SparkConnection:
    """A Spark session and what is ours in it.

    Attributes:
        session: the session.
        started: whether it was started here.
        cpus: tasks that run at once.
        links: pages a person can look at, by name.
    """

    session: "Session"
    started: bool
    cpus: int
    links: dict[str, str] = field(default_factory=dict)

    @classmethod
    def open(cls, master: str | None, workers: int | None, conf: Mapping[str, str], scratch: Path) -> "SparkConnection":
        """Use the active session, or make one for `master` (`local[workers]` when None).

        Raises:
            DatamillError: `DM-ENGINE-020` (PySpark is not installed), `-021` (no Java, or too old), `-022` (the
                master does not answer, or Spark does not start), all exit 6; `-024` when an executor does not see
                `scratch` (exit 3).
        """
        if importlib.util.find_spec("pyspark") is None:
            raise DatamillError(
                "DM-ENGINE-020", "PySpark is not installed", exit_code=ExitCode.MISSING_DEPENDENCY,
                fix="pip install 'datamill[spark]', or run with -e local",
            )  # fmt: skip
        from pyspark.sql import SparkSession

        active = SparkSession.getActiveSession()
        if active is not None:
            return cls(active, started=False, cpus=active.sparkContext.defaultParallelism, links=_links(active))
        check_java()
        count = workers or len(os.sched_getaffinity(0))
        where = master or conf.get("spark.master") or f"local[{count},{TRIES}]"
        _probe(where)
        on_cluster = re.fullmatch(r"local(\[[^]]*\])?", where) is None
        session = _start(where, _package(scratch, conf) if on_cluster else conf)
        made = cls(session, started=True, cpus=session.sparkContext.defaultParallelism, links=_links(session))
        if on_cluster:
            made.check_seen(where, scratch)
        return made

    def check_seen(self, master: str, folder: Path) -> None:
        """Ask several tasks whether they see `folder`; stops the session when they do not.

        Raises:
            DatamillError: `DM-ENGINE-024` (exit 3) for an executor that does not; `DM-ENGINE-022` (exit 6) when none
                takes a task in `visibility.PROBE_SECONDS`, or none can run datamill.
        """
        nonce = Nonce.write(folder)
        try:
            require_seen("DM-ENGINE-024", nonce, self._ask(master, nonce))
        except BaseException:
            self.close()
            raise

    def _ask(self, master: str, nonce: Nonce) -> list[str | None]:
        """Answers of twice as many tasks as run at once. Spark waits for ever where there is no executor."""
        count = 2 * self.cpus
        rows = self.session.sparkContext.parallelize([nonce] * count, count)
        asked: Future[list[str | None]] = Future()
        Thread(target=_collect, args=(rows.map(Nonce.blind_worker), asked), daemon=True).start()
        try:
            return asked.result(timeout=PROBE_SECONDS)
        except TimeoutError as error:
            raise _no_spark(f"no executor of {master} took a task in {PROBE_SECONDS:.0f} s") from error
        except Exception as error:  # the JVM's errors have no common base in Python
            found = [line for line in str(error).splitlines() if "Error: " in line] or [type(error).__name__]
            raise _no_spark(f"executors of {master} cannot run datamill: {found[-1].strip()[:300]}") from error

    def close(self) -> None:
        """Stop a session that was started here."""
        if self.started:
            self.session.stop()


def check_java() -> int:
    """Major version of the Java that Spark would start.

    Raises:
        DatamillError: `DM-ENGINE-021` when there is none or it is too old.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin/java") if home else shutil.which("java")
    found = None
    if java is not None and Path(java).exists():
        told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)  # noqa: S603
        found = re.search(r'version "(\d+)', told.stderr + told.stdout)
    if found is None or int(found.group(1)) < MIN_JAVA:
        what = f"Java {found.group(1)} is too old" if found else "there is no Java"
        raise DatamillError(
            "DM-ENGINE-021", f"{what}: Spark 4 needs Java {MIN_JAVA} or newer",
            exit_code=ExitCode.MISSING_DEPENDENCY,
            expected=f"java {MIN_JAVA}+ on PATH or below JAVA_HOME",
            fix="install a Java runtime (Debian: apt-get install openjdk-17-jre-headless), or run with -e local",
        )  # fmt: skip
    return int(found.group(1))


def _collect(rows: Any, asked: "Future[list[str | None]]") -> None:
    try:
        asked.set_result(rows.collect())
    except Exception as error:  # noqa: BLE001  raised again by the thread that waits
        asked.set_exception(error)


def _start(master: str, conf: Mapping[str, str]) -> "Session":
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(master).appName("datamill")
    for name, value in {**DEFAULTS, **conf}.items():
        builder = builder.config(name, value)
    try:
        with _quiet_start():
            return builder.getOrCreate()
    except Exception as error:  # the JVM's errors have no common base in Python
        reason = str(error).strip().splitlines()[:1] or [type(error).__name__]
        raise _no_spark(f"Spark does not start on {master}: {reason[0][:300]}") from error


def _no_spark(message: str) -> DatamillError:
    return DatamillError(
        "DM-ENGINE-022", message, exit_code=ExitCode.MISSING_DEPENDENCY,
        fix="check run.spark.master and the spark.* settings, start the cluster, or run with -e local",
    )  # fmt: skip


def _package(scratch: Path, conf: Mapping[str, str]) -> dict[str, str]:
    """`conf` with settings that send the wheel to executors and put it first on their module path."""
    wheel = build_wheel(scratch)
    archive = wheel.rename(wheel.with_suffix(".zip"))  # Spark unpacks by name
    ours = {"spark.archives": (f"{archive}#{PACKAGE}", ","), "spark.executorEnv.PYTHONPATH": (PACKAGE, os.pathsep)}
    joined = {name: separator.join(filter(None, [value, conf.get(name)])) for name, (value, separator) in ours.items()}
    return {**conf, **joined}


@contextmanager
def _quiet_start() -> Iterator[None]:
    """Keep the JVM's greeting off the terminal: it writes to the file descriptor, not to `sys.stderr`."""
    sys.stderr.flush()
    saved = os.dup(2)
    sink = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(sink, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(sink)


def _links(session: "Session") -> dict[str, str]:
    url = session.sparkContext.uiWebUrl
    return {"Spark UI": url} if url else {}


def _probe(master: str) -> None:
    """A master that does not answer is found out in seconds; Spark itself would try for minutes."""
    found = re.fullmatch(r"spark://([^:/]+):(\d+)", master)
    if found is None:
        return
    try:
        socket.create_connection((found.group(1), int(found.group(2))), CONNECT_SECONDS).close()
    except OSError as error:
        raise _no_spark(f"no Spark master answers at {master}: {error}") from error
