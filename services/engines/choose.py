"""The engine a name stands for; heavy packages are imported for the one that is asked for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from datamill.errors import DatamillError, ExitCode, nearest
from datamill.services.engines.protocol import Engine

ENGINES: Final = ("local", "ray", "spark")


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """Which engine, and how to reach it.

    Attributes:
        name: one of `ENGINES`.
        workers: processes or tasks at once, where the engine is started here.
        ray_address: cluster to join; `RAY_ADDRESS` or a local start when None.
        spark_master: master URL; a local start when None.
        spark_conf: further `spark.*` settings.
        scratch: folder every worker can read; a temporary one when None.
    """

    name: str = "local"
    workers: int | None = None
    ray_address: str | None = None
    spark_master: str | None = None
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    scratch: Path | None = None


def open_engine(choice: EngineChoice) -> Engine:
    """Start or join the engine.

    Raises:
        DatamillError: `DM-ENV-002` for a name that is none, `DM-ENGINE-010` to `-022` for one that cannot be had here,
            exit 6 all; `DM-ENGINE-013` and `-024` for a cluster that does not see `scratch`, exit 3.
    """
    if choice.name == "local":
        from datamill.services.engines.local import LocalEngine

        return LocalEngine(choice.workers, choice.scratch)
    if choice.name == "ray":
        from datamill.services.engines.ray import RayEngine

        return RayEngine(choice.workers, choice.ray_address, choice.scratch)
    if choice.name == "spark":
        from datamill.services.engines.spark import SparkEngine

        return SparkEngine(choice.workers, choice.spark_master, choice.spark_conf, choice.scratch)
    raise DatamillError(
        "DM-ENV-002", f"there is no executor `{choice.name}`", exit_code=ExitCode.MISSING_DEPENDENCY,
        expected=", ".join(ENGINES), nearest=nearest(choice.name, ENGINES), fix="add -e local",
    )  # fmt: skip
