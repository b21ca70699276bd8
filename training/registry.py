"""Finds selectors and signal providers by their modules: nothing lists them by hand.

Every module below `datamill.training.selectors` and, for other packages, every entry point in the group
`datamill.selectors` (each names a module) may register with `@selector`. Listing and checking selectors needs no torch;
building a provider loads it.
"""

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, TypeVar

from pydantic import ValidationError

from datamill.errors import DatamillError, ExitCode, Issue, nearest
from datamill.training.contracts import (
    Params,
    Selector,
    SelectorDeclaration,
    SignalProvider,
    SignalRequest,
    registered_providers,
    registered_selectors,
)

ENTRY_POINT_GROUP = "datamill.selectors"
ParamsT = TypeVar("ParamsT", bound=Params)


def _import_below(package_name: str) -> None:
    package = import_module(package_name)
    for info in pkgutil.walk_packages(package.__path__, f"{package_name}."):
        import_module(info.name)


@cache
def selectors() -> Mapping[str, SelectorDeclaration[Any]]:
    """All selectors by name, sorted; imports each selector module once."""
    _import_below("datamill.training.selectors")
    for point in entry_points(group=ENTRY_POINT_GROUP):
        point.load()
    return dict(sorted(registered_selectors().items()))


def find_selector(name: str) -> SelectorDeclaration[Any]:
    """The selector called `name`.

    Raises:
        DatamillError: `DM-SIG-010` with the nearest name.
    """
    known = selectors()
    if name in known:
        return known[name]
    raise DatamillError(
        "DM-SIG-010",
        f"there is no selector `{name}`",
        exit_code=ExitCode.INVALID,
        field="component_name",
        expected=f"one of {', '.join(known)}",
        nearest=nearest(name, known),
        fix="correct component_name",
    )


def check_params(model: type[ParamsT], values: Mapping[str, Any], owner: str) -> ParamsT:
    """Validated parameters, or one error with every problem found and the nearest key of each unknown one.

    Raises:
        DatamillError: `DM-SIG-011`.
    """
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        issues = [_issue(model, owner, dict(problem)) for problem in error.errors()]
        raise DatamillError("DM-SIG-011", issues[0].message, exit_code=ExitCode.INVALID, issues=issues) from error


def _issue(model: type[Params], owner: str, problem: Mapping[str, Any]) -> Issue:
    name = ".".join(str(part) for part in problem["loc"])
    unknown = problem["type"] == "extra_forbidden"
    message = f"`{owner}` has no parameter `{name}`" if unknown else f"`{owner}`: {name or 'params'}: {problem['msg']}"
    return Issue(
        "DM-SIG-011",
        message,
        field=f"component_params.{name}",
        expected=f"one of {', '.join(model.model_fields) or 'none at all'}" if unknown else None,
        nearest=nearest(name, model.model_fields) if unknown else None,
        fix=f"remove or rename component_params.{name}" if unknown else None,
    )


def split_obsolete(name: str, params: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Parameters without those a DataFlex configuration may carry but that mean nothing here, and a note on each."""
    obsolete = find_selector(name).obsolete
    notes = tuple(f"`{key}` of `{name}` is not needed: {obsolete[key]}" for key in params if key in obsolete)
    return {key: value for key, value in params.items() if key not in obsolete}, notes


def build_selector(name: str, params: Mapping[str, Any] | None = None) -> Selector:
    """The selector `name` with checked parameters; obsolete ones are left out (`split_obsolete` tells which).

    Raises:
        DatamillError: `DM-SIG-010` (unknown name) or `DM-SIG-011` (unknown or bad parameter).
    """
    declaration = find_selector(name)
    kept, _ = split_obsolete(name, params or {})
    return declaration.factory(check_params(declaration.params, kept, name))


def build_provider(request: SignalRequest) -> SignalProvider:
    """The provider of a requested signal. Imports torch.

    Raises:
        DatamillError: `DM-SIG-012` for a signal nobody provides, `DM-SIG-011` for its parameters.
    """
    _import_below("datamill.training.signals")
    known = registered_providers()
    if request.key not in known:
        raise DatamillError(
            "DM-SIG-012",
            f"no provider measures the signal `{request.key}`",
            exit_code=ExitCode.INVALID,
            nearest=nearest(request.key, known),
        )
    params, factory = known[request.key]
    return factory(check_params(params, request.params, request.key))
