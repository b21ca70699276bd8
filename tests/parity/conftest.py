"""One Ray and one Spark for the whole suite, started when the first test asks for them."""

import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from datamill.services.engines.choose import EngineChoice, open_engine
from datamill.services.engines.protocol import Dataset, Engine
from datamill.services.engines.shards import write_shard

ENGINES = ("local", "ray", "spark")
Spread = Callable[[list[pa.Table]], Dataset]


TESTS = Path(__file__).parents[1]


def opened(name: str, scratch: Path) -> Iterator[Engine]:
    """An engine whose workers can import `support`, where the functions of these tests are."""
    os.environ["PYTHONPATH"] = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Ray and PySpark deprecate inside themselves is not ours
        engine = open_engine(EngineChoice(name, 2, scratch=scratch))
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    yield from opened("local", tmp_path_factory.mktemp("local"))


@pytest.fixture(scope="session")
def ray(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    yield from opened("ray", tmp_path_factory.mktemp("ray"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    yield from opened("spark", tmp_path_factory.mktemp("spark"))


@pytest.fixture(scope="session", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine in turn."""
    found: Engine = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def spread(engine: Engine, tmp_path: Path) -> Spread:
    """Tables as shards at rest on the engine, one a table."""

    def make(parts: list[pa.Table]) -> Dataset:
        shards = [write_shard(part, tmp_path / f"{len(list(tmp_path.iterdir()))}.arrow") for part in parts]
        return engine.dataset(shards, parts[0].schema)

    return make
