from importlib.metadata import PackageNotFoundError
from typing import Any

import pytest

from datamill.errors import DatamillError, ExitCode
from datamill.training.llamafactory.versions import SUPPORTED, check_versions

GOOD = {"llamafactory": "0.9.5", "transformers": "5.6.3", "accelerate": "1.11.0"}


def test_supported_versions_pass() -> None:
    assert check_versions(GOOD.__getitem__) == GOOD


@pytest.mark.parametrize(
    ("package", "found"), [("llamafactory", "0.9.4"), ("transformers", "5.7.0"), ("transformers", "4.57.1")]
)
def test_others_are_refused_by_name(package: Any, found: Any) -> None:
    with pytest.raises(DatamillError) as caught:
        check_versions((GOOD | {package: found}).__getitem__)
    assert caught.value.code == "DM-TRAIN-006"
    assert f"{package} {found} is not supported" in str(caught.value)
    assert f"{package} {SUPPORTED[package][0]}" in str(caught.value)


def test_absent_package_names_the_extra() -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    with pytest.raises(DatamillError, match=r"datamill\[train\]") as caught:
        check_versions(missing)
    assert caught.value.exit_code == ExitCode.MISSING_DEPENDENCY
