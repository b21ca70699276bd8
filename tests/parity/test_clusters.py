"""Clusters that are there: a node or an executor dies in the middle of deduplication, an operator raises, disks are apart.

Each cluster is started once, by a program of its own (`support/on_*_cluster.py`) that leaves what it saw.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.cluster_facts import digests
from support.marked import VARIABLE, alive, await_that, end, new_mark
from support.near_corpus import make_corpus
from support.project import approved_run

import datamill

SUPPORT = Path(__file__).parents[1] / "support"
PATH = os.pathsep.join([str(SUPPORT.parent), str(SUPPORT / "faulty")])
pytestmark = pytest.mark.slow
CLUSTERS = ("ray", "spark")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Outputs of a local run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    copies = make_corpus(folder)
    result = approved_run(folder, workers=2)
    assert result.steps["near"]["gone.merged"] == copies > 500
    return digests(folder)


def spark_home(folder: Path) -> Path:
    """Links to what is installed: executors of a local cluster work below Spark's home and leave their logs there."""
    installed = importlib.util.find_spec("pyspark")
    assert installed is not None
    assert installed.origin is not None
    home = folder / "spark"
    home.mkdir()
    for entry in Path(installed.origin).parent.iterdir():
        if entry.name != "work":
            (home / entry.name).symlink_to(entry)
    return home


def facts_of(cluster: str, folder: Path) -> dict[str, Any]:
    """What the program saw; nothing it started outlives it."""
    make_corpus(folder)
    mark = new_mark()
    environment = {**os.environ, "PYTHONPATH": PATH, VARIABLE: mark, "SPARK_HOME": str(spark_home(folder))}
    environment.pop("RAY_ADDRESS", None)
    command = [sys.executable, str(SUPPORT / f"on_{cluster}_cluster.py"), str(folder)]
    try:
        ran = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
        )
        assert ran.returncode == 0, ran.stderr[-3000:]
        await_that(lambda: not alive(mark), 20)
    finally:
        end(mark)
    facts: dict[str, Any] = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
    return facts


@pytest.fixture(params=CLUSTERS, scope="module")
def facts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Facts of each cluster in turn, with its name."""
    return {**facts_of(request.param, tmp_path_factory.mktemp(request.param)), "cluster": request.param}


def test_a_death_in_the_middle_of_deduplication(facts: dict[str, Any], undisturbed: dict[str, str]) -> None:
    """Ray: one of two nodes. Spark: a Python worker of one executor, then the other executor's JVM."""
    killed = facts["killed"]
    assert killed["in_the_middle"], "what died had nothing to do with the deduplication"
    assert killed["disturbed"]
    assert killed["status"] == "done"
    assert killed["outputs"] == undisturbed


def test_the_cluster_goes_on_when_the_engine_has_closed(facts: dict[str, Any]) -> None:
    if facts["cluster"] == "ray":
        assert facts["answer"] == 42
    else:
        assert facts["still"] == 3, "a run stopped the session it did not start"


def test_workers_import_the_wheel_and_all_that_lies_in_it(facts: dict[str, Any]) -> None:
    source = Path(datamill.__file__).resolve().parents[2]
    assert len({found["pid"] for found in facts["where"]}) == facts["workers"] == 2
    for found in facts["where"]:
        place = Path(found["file"])
        unpacked = {"ray": "py_modules_files", "spark": "datamill_wheel"}[facts["cluster"]]
        assert unpacked in place.parts
        assert place.name == "__init__.py"
        assert source / "src" not in place.parents
        assert {"dedup.minhash", "faulty.batch", "text.normalize"} <= set(found["operators"])
        assert found["folders"] == [True, True]
        assert {".npz", ".yaml", ".j2", ".json"} <= set(found["suffixes"])
        assert found["fingerprints"] > 0


def check_named_once(told: dict[str, Any], executor: str) -> None:
    for kind, place in (("batch", "shard starting at few.jsonl:11"), ("whole", "shard 2 from row ")):
        said = told[kind]
        assert said["code"] == 1, executor
        assert said["err"].count("swallow") == 1
        assert said["err"].count("cannot digest poison") == 1
        assert said["err"].count(place) == 1
        assert "Traceback" not in said["err"]
        assert len(said["err"].splitlines()) < 20


def test_an_operator_that_raises_is_named_once(facts: dict[str, Any]) -> None:
    check_named_once(facts["faulty"], facts["cluster"])


def test_an_operator_that_raises_is_named_in_the_same_words_on_every_engine(
    facts: dict[str, Any], tmp_path: Path
) -> None:
    """The same two runs on the local engine, in a process that knows the operators."""
    script = "import json, sys; from pathlib import Path; from support.cluster_facts import faulty_runs; "
    script += "print(json.dumps(faulty_runs(Path(sys.argv[1]), 'local')))"
    environment = {**os.environ, "PYTHONPATH": PATH}
    ran = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], env=environment, capture_output=True, text=True, check=True
    )
    told = json.loads(ran.stdout)
    check_named_once(told, "local")
    assert told == facts["faulty"]


def test_a_workers_full_disk_is_a_full_disk_for_the_driver(facts: dict[str, Any]) -> None:
    assert facts["disk"] == {"errno": 28, "file": "/full/unit"}


def test_a_folder_that_workers_do_not_see(facts: dict[str, Any]) -> None:
    """Ray: the driver's project lies in a mount namespace of its own. Spark: the word is gone when executors look."""
    if facts["cluster"] == "spark":
        assert facts["unseen"]["exit"] == 3
        text = facts["unseen"]["text"]
        assert text.startswith("DM-ENGINE-024 workers on ")
    else:
        if "unshare" in facts["unshared"]["err"]:
            pytest.skip("this machine does not allow mount namespaces")
        text = facts["unshared"]["err"]
        assert facts["unshared"]["code"] == 3
        assert text.startswith("error DM-ENGINE-013 workers on ")
    assert "do not see the folder" in text
    assert len(text.splitlines()) == 2
