"""The `dataflex:` section, with DataFlex's names and spellings, every unknown key refused."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from datamill.errors import DatamillError, ExitCode, Issue, nearest

AVAILABLE_TYPES: Final = ("static", "dynamic_select")
ALL_TYPES: Final = (*AVAILABLE_TYPES, "dynamic_mix", "dynamic_weight", "dynamic_reorder")

MIXTURE_KEYS: Final = ("static_mix", "mixture_sample_rule", "init_mixture_proportions", "mixer_eval_dataset")
"""Keys of DataFlex that only mixtures read."""

SECTION: Final = "dataflex"


class DynamicSection(BaseModel):
    """What happens to the data while the model is trained."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    train_type: Literal["static", "dynamic_select"] = Field("static", description="static or dynamic_select")
    component_name: str | None = Field(None, description="the method, e.g. less")
    component_params: dict[str, Any] = Field({}, description="parameters of the method")
    warmup_step: int = Field(0, ge=0, description="optimizer steps in natural order before the first selection")
    update_step: int = Field(0, ge=0, description="optimizer steps between two selections")
    update_times: int = Field(1, ge=1, description="selections")
    train_step: int | None = Field(None, description="optimizer steps of the run; wins over epochs")
    target_dataset: str | tuple[str, ...] | None = Field(
        None, description="what selection aims at, one subtask a name; eval_dataset when unset"
    )
    candidate_window: int | None = Field(None, ge=1, description="rows scored a round at most; null scores the pool")
    scoring_token_budget: int = Field(4096, ge=64, description="padded tokens of one scoring batch")
    seed: int = Field(0, ge=0, description="of candidate windows and policies")

    @model_validator(mode="after")
    def _complete(self) -> "DynamicSection":
        if self.train_type == "dynamic_select":
            if self.component_name is None:
                raise ValueError("dynamic_select needs component_name")
            if self.update_step < 1:
                raise ValueError("dynamic_select needs update_step of at least 1")
        return self

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the target sets, one a subtask."""
        if self.target_dataset is None:
            return ()
        names = self.target_dataset.split(",") if isinstance(self.target_dataset, str) else self.target_dataset
        return tuple(name.strip() for name in names)


SECTION_KEYS: Final = tuple(DynamicSection.model_fields)


def check_train_type(value: Any) -> None:
    """Refuse a `train_type` that does not exist, or not yet, naming those that do.

    Raises:
        DatamillError: `DM-TRAIN-003`.
    """
    if value in AVAILABLE_TYPES:
        return
    known = value in ALL_TYPES
    raise DatamillError(
        "DM-TRAIN-003",
        f"train_type `{value}` is not available in this version" if known else f"there is no train_type `{value}`",
        exit_code=ExitCode.INVALID,
        field=f"{SECTION}.train_type",
        expected=" or ".join(AVAILABLE_TYPES),
        nearest=None if known else nearest(str(value), AVAILABLE_TYPES),
        fix="choose train_type: dynamic_select with component_name: less, loss or random",
    )


def parse_section(values: Mapping[str, Any], file: str | None = None) -> DynamicSection:
    """The section with every problem reported at once.

    Raises:
        DatamillError: `DM-TRAIN-001` for unknown keys, `DM-TRAIN-003` for the train type, `DM-TRAIN-004` for values.
    """
    unknown = [key for key in values if key not in SECTION_KEYS and key not in MIXTURE_KEYS]
    if unknown:
        issues = [_unknown(key, file) for key in unknown]
        raise DatamillError(issues[0].code, issues[0].message, exit_code=ExitCode.INVALID, issues=issues)
    check_train_type(values.get("train_type", "static"))
    _refuse_mixture_keys(values, file)
    try:
        return DynamicSection.model_validate({key: values[key] for key in values if key in SECTION_KEYS})
    except ValidationError as error:
        issues = [_bad_value(dict(problem), file) for problem in error.errors()]
        raise DatamillError("DM-TRAIN-004", issues[0].message, exit_code=ExitCode.INVALID, issues=issues) from error


def _unknown(key: str, file: str | None) -> Issue:
    return Issue(
        "DM-TRAIN-001",
        f"unknown key `{key}` in `{SECTION}:`",
        field=f"{SECTION}.{key}",
        file=file,
        expected=f"one of {', '.join(SECTION_KEYS)}",
        nearest=nearest(key, SECTION_KEYS),
    )


def _bad_value(problem: Mapping[str, Any], file: str | None) -> Issue:
    name = ".".join(str(part) for part in problem["loc"])
    place = f"{SECTION}.{name}" if name else SECTION
    return Issue("DM-TRAIN-004", f"{place}: {problem['msg']}", field=place, file=file)


def _refuse_mixture_keys(values: Mapping[str, Any], file: str | None) -> None:
    used = [key for key in MIXTURE_KEYS if values.get(key) not in (None, False)]
    if used:
        raise DatamillError(
            "DM-TRAIN-003",
            f"`{used[0]}` belongs to mixtures, which are not available in this version",
            exit_code=ExitCode.INVALID,
            field=f"{SECTION}.{used[0]}",
            file=file,
            expected=f"train_type {' or '.join(AVAILABLE_TYPES)}",
            fix=f"remove {', '.join(used)}",
        )
