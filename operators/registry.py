"""The operator catalogue: every module below `datamill.operators`, plus entry points of other packages.

A new operator is found by its module alone; nothing lists it by hand. Third parties publish theirs under the
entry-point group `datamill.operators` (each entry point names a module).
"""

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from datamill import operators
from datamill.errors import DatamillError, ExitCode, nearest
from datamill.operators.declaration import Operator, registered

ENTRY_POINT_GROUP = "datamill.operators"


@cache
def catalogue() -> Mapping[str, Operator[Any]]:
    """All operators by id, sorted. Imports every operator module once; heavy packages load on use only."""
    for info in pkgutil.walk_packages(operators.__path__, f"{operators.__name__}."):
        import_module(info.name)
    for point in entry_points(group=ENTRY_POINT_GROUP):
        point.load()
    return dict(sorted(registered().items()))


def find(operator_id: str) -> Operator[Any]:
    """The operator called `operator_id`.

    Raises:
        DatamillError: `DM-OP-001` with the nearest id when there is none.
    """
    known = catalogue()
    if operator_id in known:
        return known[operator_id]
    raise DatamillError(
        "DM-OP-001",
        f"there is no operator `{operator_id}`",
        exit_code=ExitCode.INVALID,
        nearest=nearest(operator_id, known),
        fix="datamill ops list",
    )
