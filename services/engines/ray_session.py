"""Joining a Ray cluster, or starting one on this machine, and giving it back.

A cluster that was there keeps running: only the connection ends. Workers of a cluster import datamill from a wheel
built of what is installed here; a local start shares the interpreter, so nothing has to travel.
"""

import importlib.util
import os
import socket
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from datamill.errors import DatamillError, ExitCode
from datamill.services.engines.visibility import PROBE_SECONDS, Nonce, require_seen
from datamill.services.engines.wheel import build_wheel, unpack

CONNECT_SECONDS = 5.0
ORPHAN_SECONDS = "5"
"""How long processes of a Ray started here look for one that was killed with its driver; a minute by itself."""
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
QUIET = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": True}


@dataclass
class RaySession:
    """A connection to Ray.

    Attributes:
        started: whether Ray was started here.
        joined: whether this session made the connection.
        cpus: CPUs of the cluster.
        links: pages a person can look at, by name.
    """

    started: bool
    joined: bool
    cpus: int
    links: dict[str, str] = field(default_factory=dict)

    @classmethod
    def open(cls, address: str | None, workers: int | None, scratch: Path) -> "RaySession":
        """Use the connection that is there, join `address` or `RAY_ADDRESS`, or start Ray here.

        Raises:
            DatamillError: `DM-ENGINE-010` (not installed) and `DM-ENGINE-011` (no cluster there), both exit 6;
                `DM-ENGINE-013` when a node of the cluster does not see `scratch` (exit 3).
        """
        if importlib.util.find_spec("ray") is None:
            raise DatamillError(
                "DM-ENGINE-010", "Ray is not installed", exit_code=ExitCode.MISSING_DEPENDENCY,
                fix="pip install 'datamill[ray]', or run with -e local",
            )  # fmt: skip
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no telemetry
        os.environ.setdefault("RAY_NUM_REDIS_GET_RETRIES", "1")  # twenty tries of half a minute by default
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Ray warns of its own defaults
            return cls._open(address, workers, scratch)

    @classmethod
    def _open(cls, address: str | None, workers: int | None, scratch: Path) -> "RaySession":
        import ray

        if ray.is_initialized():
            session = cls(started=False, joined=False, cpus=_cpus())
        elif address or os.environ.get("RAY_ADDRESS"):
            session = cls._join(address or os.environ["RAY_ADDRESS"], scratch)
        else:
            count = workers or len(os.sched_getaffinity(0))
            os.environ.setdefault("RAY_gcs_rpc_server_reconnect_timeout_s", ORPHAN_SECONDS)
            context = ray.init(
                address="local", num_cpus=count, include_dashboard=False, _node_ip_address="127.0.0.1", **QUIET
            )
            session = cls(started=True, joined=True, cpus=count, links=_links(context))
        _settle()
        return session

    @classmethod
    def _join(cls, address: str, scratch: Path) -> "RaySession":
        import ray

        _probe(address)
        package = unpack(build_wheel(scratch), scratch / "wheel") / "datamill"
        try:
            context = ray.init(address=address, runtime_env={"py_modules": [str(package)]}, **QUIET)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            raise _unreachable(address, str(error)) from error
        session = cls(started=False, joined=True, cpus=_cpus(), links=_links(context))
        try:
            check_seen(address, scratch)
        except BaseException:
            session.close()
            raise
        return session

    def close(self) -> None:
        """End what this session began."""
        import ray

        if self.joined:
            ray.shutdown()


def check_seen(address: str, folder: Path) -> None:
    """Ask every node whether it sees `folder`.

    Raises:
        DatamillError: `DM-ENGINE-013` (exit 3) for a node that does not; `DM-ENGINE-011` (exit 6) when nodes cannot run
            a task of datamill, or do not answer in `visibility.PROBE_SECONDS`.
    """
    import ray
    from ray.exceptions import GetTimeoutError, RayError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    nonce = Nonce.write(folder)
    task = ray.remote(num_cpus=0, max_retries=1)(_blind_worker)
    nodes = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
    asked = [
        task.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)).remote(nonce)
        for node in nodes
    ]
    try:
        answers = ray.get(asked, timeout=PROBE_SECONDS)
    except GetTimeoutError as error:
        raise _unreachable(address, f"no answer of all {len(nodes)} nodes in {PROBE_SECONDS:.0f} s") from error
    except RayError as error:
        reason = str(error).strip().splitlines()[-1]
        raise _unreachable(address, f"its workers cannot run datamill: {reason}") from error
    require_seen("DM-ENGINE-013", nonce, answers)


def _blind_worker(nonce: Nonce) -> str | None:
    return nonce.blind_worker()


def _settle() -> None:
    """Ray Data without bars and chatter; results do not depend on the order of blocks.

    Its sort-based shuffle is made of tasks that die and are retried on their own; the hash-based one keeps a pool of
    actors, whose start costs more than a small shuffle.
    """
    import logging

    from ray.data import DataContext
    from ray.data.context import ShuffleStrategy

    context = DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    context.shuffle_strategy = ShuffleStrategy.SORT_SHUFFLE_PULL_BASED
    context.execution_options.preserve_order = False
    logging.getLogger("ray.data").setLevel(
        logging.CRITICAL
    )  # errors are raised once; a trace of Ray's is not shown too


def _cpus() -> int:
    import ray

    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def _links(context: Any) -> dict[str, str]:
    url = getattr(context, "dashboard_url", None)
    return {"Ray dashboard": f"http://{url}"} if url else {}


def _probe(address: str) -> None:
    """A cluster that does not answer is found out in seconds; Ray itself would try for minutes.

    Ray takes a name of this machine itself for the address that other nodes know it by, so that is the one tried.
    """
    import ray.util

    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        return
    if host in LOOPBACK and not address.startswith("ray://"):
        host = ray.util.get_node_ip_address()
    try:
        socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
    except OSError as error:
        raise _unreachable(address, str(error)) from error


def _unreachable(address: str, reason: str) -> DatamillError:
    return DatamillError(
        "DM-ENGINE-011", f"no Ray cluster answers at {address}: {reason[:200]}",
        exit_code=ExitCode.MISSING_DEPENDENCY,
        fix="check RAY_ADDRESS or run.ray.address, start the cluster, or run with -e local",
    )  # fmt: skip
