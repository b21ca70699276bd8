"""A folder that appears whole or not at all: written beside its place, then renamed."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def published(target: Path) -> Iterator[Path]:
    """A staging folder that becomes `target` when the block ends well.

    When another process publishes `target` first, its folder stays and ours is thrown away: both were made from the
    same recipe.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        yield staging
        try:
            os.replace(staging, target)  # noqa: PTH105 - the atomic call is the point
        except OSError:
            if not target.is_dir():
                raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)
