"""A Ray cluster of two nodes on this machine, and what happens on it: `python on_ray_cluster.py FOLDER`.

Ray allows one connection a process, so this is a process of its own. It leaves `facts.json` in the folder.
"""

import os
import signal
import subprocess
import sys
import time
import warnings
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
from support.cluster_facts import disk_error, disturbed_run, faulty_runs, tell, where
from support.project import compiled

from datamill.services.engines.ray import RayEngine

MEMORY = 150 << 20
QUICK = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 500, "health_check_failure_threshold": 4}
"""A dead node is noticed in two seconds instead of half a minute."""


def busy_workers(raylet: psutil.Process) -> list[psutil.Process]:
    """Workers of the node with a task in hand: Ray writes its name where the command line was."""
    found = []
    for process in raylet.children():
        with suppress(psutil.Error):  # it ended between the listing and the reading
            name = (process.cmdline() or [""])[0]
            if name.startswith("ray::") and not name.endswith(("IDLE", "Agent")):
                found.append(process)
    return found


def kill_node(node: Any) -> dict[str, Any]:
    """SIGKILL a node's raylet and everything below it, once it has work in hand."""
    raylet = psutil.Process(node.all_processes["raylet"][0].process.pid)
    deadline = time.monotonic() + 60
    while not (busy := busy_workers(raylet)):
        assert time.monotonic() < deadline, "the second node never got a task"
        time.sleep(0.02)
    names = [process.cmdline()[0] for process in busy]
    for process in [raylet, *raylet.children(recursive=True)]:
        process.send_signal(signal.SIGKILL)
    return {"busy": names}


def unshared_run(folder: Path, address: str) -> dict[str, Any]:
    """A driver whose project lies where the nodes see nothing: in a mount namespace of its own."""
    apart = folder / "apart"
    apart.mkdir()
    line = f'mount -t tmpfs none "{apart}" && cp "{folder}"/few.jsonl "{folder}"/apart.yaml "{apart}" && exec "$0" "$@"'
    text = (folder / "batch.yaml").read_text(encoding="utf-8").replace("faulty.batch", "text.normalize")
    text = text.replace("needs: load", "needs: load, params: {columns: [text]}")
    (folder / "apart.yaml").write_text(text, encoding="utf-8")
    digest = compiled(folder, text).digest
    arguments = ["run", "apart.yaml", "-q", "-e", "ray", "--approve", digest]
    command = [sys.executable, "-m", "datamill", "--project", str(apart), *arguments]
    ran = subprocess.run(
        ["unshare", "-m", "sh", "-c", line, *command], env={**os.environ, "RAY_ADDRESS": address},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    return {"code": ran.returncode, "err": ran.stderr, "rows": (folder / "few.jsonl").is_file()}


def still_there(address: str) -> int:
    """What a task on the cluster answers after everybody else has gone."""
    import ray

    ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    answer: int = ray.get(ray.remote(lambda: 6 * 7).remote())
    ray.shutdown()
    return answer


def main(folder: Path) -> None:
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    facts: dict[str, Any] = {}
    times = [time.monotonic()]
    head = {"num_cpus": 1, "object_store_memory": MEMORY, "include_dashboard": False, "_system_config": QUICK}
    cluster = Cluster(initialize_head=True, connect=False, head_node_args=head)
    try:
        second = cluster.add_node(num_cpus=1, object_store_memory=MEMORY)
        times.append(time.monotonic())
        os.environ["RAY_ADDRESS"] = cluster.address
        scratch = folder / ".datamill"
        scratch.mkdir(exist_ok=True)
        with RayEngine(scratch=scratch) as engine:
            facts["workers"] = engine.workers
            facts["where"] = [found for _, found in engine.map_units(where, list(range(4)))]
            facts["disk"] = disk_error(engine)
            times.append(time.monotonic())
            facts["faulty"] = faulty_runs(folder, "ray")
        times.append(time.monotonic())
        facts["killed"] = disturbed_run(folder, "ray", lambda: kill_node(second))
        times.append(time.monotonic())
        facts["answer"] = still_there(cluster.address)
        facts["unshared"] = unshared_run(folder, cluster.address)
        times.append(time.monotonic())
        facts["seconds"] = [round(b - a, 1) for a, b in pairwise(times)]
        tell(facts, folder / "facts.json")
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(Path(sys.argv[1]))
