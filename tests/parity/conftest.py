"""One Ray and one Spark for the whole suite: started when the first test asks, stopped after the last one here."""

import os
import shutil
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from datamill.services.engines.choose import EngineChoice, open_engine
from datamill.services.engines.protocol import Dataset, Engine
from datamill.services.engines.shards import write_shard

ENGINES = ("local", "ray", "spark")
Spread = Callable[[list[pa.Table]], Dataset]
HERE = Path(__file__).parent
_running: dict[str, tuple[Engine, Path]] = {}


def running(name: str) -> Engine:
    """The engine, whose workers can import `support`, where the functions of these tests are."""
    if name not in _running:
        os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
        scratch = Path(tempfile.mkdtemp(prefix=f"parity-{name}-"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what Ray and PySpark deprecate inside themselves is not ours
            _running[name] = open_engine(EngineChoice(name, 2, scratch=scratch)), scratch
    return _running[name][0]


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """A session fixture would keep both alive beside every later test, which must start from nothing."""
    if nextitem is None or HERE not in nextitem.path.parents:
        for engine, scratch in _running.values():
            engine.close()
            shutil.rmtree(scratch, ignore_errors=True)
        _running.clear()


@pytest.fixture
def local() -> Engine:
    return running("local")


@pytest.fixture
def ray() -> Engine:
    return running("ray")


@pytest.fixture
def spark() -> Engine:
    return running("spark")


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine in turn."""
    return running(request.param)


@pytest.fixture
def spread(engine: Engine, tmp_path: Path) -> Spread:
    """Tables as shards at rest on the engine, one a table."""

    def make(parts: list[pa.Table]) -> Dataset:
        shards = [write_shard(part, tmp_path / f"{len(list(tmp_path.iterdir()))}.arrow") for part in parts]
        return engine.dataset(shards, parts[0].schema)

    return make
