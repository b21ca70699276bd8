"""Which versions of LLaMA-Factory and its stack the integration was run with.

The hook relies on `Trainer.get_batch_samples` and on names inside LLaMA-Factory's workflows. Other versions may move
them, and training would then silently be ordinary training; so they are refused by name.
"""

from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from datamill.errors import DatamillError, ExitCode, MissingDependencyError

SUPPORTED: Final[Mapping[str, tuple[str, ...]]] = {
    "llamafactory": ("0.9.5",),
    "transformers": ("5.6.",),
    "accelerate": ("1.11.",),
}
"""Package to accepted versions; one that ends in a dot stands for all its patch releases."""


def check_versions(installed: Callable[[str], str] = version) -> dict[str, str]:
    """The versions found, all of them supported.

    Args:
        installed: looks a version up.

    Raises:
        DatamillError: `DM-ENV-001` when a package is absent, `DM-TRAIN-006` when its version is not supported.
    """
    found = {}
    for package, accepted in SUPPORTED.items():
        try:
            found[package] = installed(package)
        except PackageNotFoundError as error:
            raise MissingDependencyError(package, "training", "train") from error
        if not any(_matches(found[package], entry) for entry in accepted):
            names = " or ".join(
                f"{package} {entry}*" if entry.endswith(".") else f"{package} {entry}" for entry in accepted
            )
            raise DatamillError(
                "DM-TRAIN-006",
                f"{package} {found[package]} is not supported",
                exit_code=ExitCode.MISSING_DEPENDENCY,
                expected=names,
                fix=f"pip install 'datamill[train]' (brings {names})",
            )
    return found


def _matches(found: str, accepted: str) -> bool:
    return found.startswith(accepted) if accepted.endswith(".") else found == accepted
