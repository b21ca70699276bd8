"""Reads what people write for training and turns it into one checked configuration.

Three spellings are read: a LLaMA-Factory YAML with a `dataflex:` section, DataFlex's flat keys beside LLaMA-Factory's,
and the `train:` block of a workflow. Whatever the spelling, a key nobody reads is an error with its nearest match
before anything starts (DataFlex drops such keys), and a key that may be set in one place only is refused in a second.
Checking loads neither torch nor LLaMA-Factory.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from datamill.errors import DatamillError, ExitCode, Issue, nearest
from datamill.training.llamafactory.keys import llamafactory_keys
from datamill.training.registry import check_params, find_selector, split_obsolete
from datamill.training.schedule import StepRule, step_rule
from datamill.training.section import MIXTURE_KEYS, SECTION, DynamicSection, parse_section
from datamill.training.yaml_text import dump_yaml, line_of, load_yaml, parse_scalar, plain

FLAT_KEYS: Final = (
    "train_type",
    "component_name",
    "components_cfg_file",
    "warmup_step",
    "update_step",
    "update_times",
    "train_step",
    *MIXTURE_KEYS,
)
"""DataFlex's keys beside LLaMA-Factory's own."""

RESERVED: Final = (
    "dataset",
    "dataset_dir",
    "output_dir",
    "eval_dataset",
    "resume_from_checkpoint",
    "overwrite_output_dir",
    *FLAT_KEYS,
)
"""Set by datamill for a workflow: a `train.llamafactory` block may not set them a second time."""

BLOCK_KEYS: Final = ("engine", "dataset", "target_dataset", "eval_dataset", SECTION, "llamafactory", "gates")
STAGES: Final = ("sft", "pt")


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """A checked configuration.

    Attributes:
        section: the dynamic part; None runs LLaMA-Factory as it is.
        llamafactory: keys of LLaMA-Factory.
        base_dir: folder relative paths are read from.
        source: file it came from.
        notes: what was understood in a way worth saying.
        gates: bounds on metrics, as written in the workflow.
    """

    section: DynamicSection | None
    llamafactory: Mapping[str, Any]
    base_dir: Path
    source: str | None = None
    notes: tuple[str, ...] = ()
    gates: tuple[Mapping[str, Any], ...] = ()

    @staticmethod
    def from_yaml(path: Path, overrides: Iterable[str] = (), *, base_dir: Path | None = None) -> "TrainConfig":
        """Read a LLaMA-Factory or DataFlex YAML.

        Args:
            path: the file.
            overrides: `key=value` or `dataflex.key=value`, as on LLaMA-Factory's command line.
            base_dir: folder relative paths are read from; the working directory, like LLaMA-Factory, when unset.

        Raises:
            DatamillError: `DM-TRAIN-001` to `-005`, `-013`, `-014`, or those of the method's parameters.
        """
        raw = load_yaml(path)
        data = plain(raw)
        for assignment in overrides:
            _assign(data, assignment)
        lines = {str(key): line_of(raw, key) for key in raw}
        return from_mapping(data, base_dir=base_dir or Path.cwd(), source=str(path), lines=lines)

    @staticmethod
    def from_workflow(
        block: Mapping[str, Any], *, dataset_dir: Path, names: Mapping[str, str] | None = None, base_dir: Path
    ) -> "TrainConfig":
        """Read the `train:` block of a workflow.

        Args:
            block: the block.
            dataset_dir: folder with the `dataset_info.json` the workflow's outputs are registered in.
            names: from names of outputs and inputs to names in `dataset_info.json`, where they differ.
            base_dir: folder relative paths are read from.

        Raises:
            DatamillError: as `from_yaml`, and `DM-TRAIN-002` for a key that the workflow sets itself.
        """
        _refuse_unknown(block, BLOCK_KEYS, "train", {})
        inner = dict(block.get("llamafactory") or {})
        twice = [key for key in inner if key in RESERVED]
        if twice:
            raise _twice(twice, "train.llamafactory", "the workflow sets it")
        known = names or {}
        for key in ("dataset", "eval_dataset"):
            if block.get(key) is not None:
                inner[key] = ",".join(known.get(name, name) for name in _names(block[key]))
        section = dict(block.get(SECTION) or {})
        if block.get("target_dataset") is not None:
            if "target_dataset" in section:
                raise _twice(["target_dataset"], f"train.{SECTION}", "the train block sets it")
            section["target_dataset"] = [known.get(name, name) for name in _names(block["target_dataset"])]
        data = {**inner, "dataset_dir": str(dataset_dir)}
        if section or inner.get("stage", "sft") in STAGES:  # other stages run as LLaMA-Factory has them
            data[SECTION] = section
        config = from_mapping(data, base_dir=base_dir, source=None)
        return replace(config, gates=tuple(block.get("gates") or ()))

    def render(self, **ours: Any) -> dict[str, Any]:
        """The LLaMA-Factory configuration that will run, `ours` added; `report_to: none` unless chosen."""
        return {**self.llamafactory, "report_to": self.llamafactory.get("report_to", "none"), **ours}

    def render_yaml(self, **ours: Any) -> str:
        """`render` as YAML text (`--print-config`)."""
        return dump_yaml(self.render(**ours))

    def step_rule(self) -> StepRule:
        """Which rule fixes the number of optimizer steps."""
        return step_rule(self.section, self.llamafactory)

    def fingerprint(self) -> str:
        """Sha256 of everything that can change what is trained, where outputs lie aside."""
        where = {"output_dir", "resume_from_checkpoint", "overwrite_output_dir", "report_to", "run_name", "logging_dir"}
        core = {key: value for key, value in self.llamafactory.items() if key not in where}
        section = self.section.model_dump(mode="json") if self.section else None
        return hashlib.sha256(json.dumps([core, section], sort_keys=True, default=str).encode()).hexdigest()


def from_mapping(
    data: Mapping[str, Any],
    *,
    base_dir: Path,
    source: str | None = None,
    lines: Mapping[str, int | None] | None = None,
) -> TrainConfig:
    """Check keys given as a mapping in either spelling of a YAML file.

    Raises:
        DatamillError: see `TrainConfig.from_yaml`.
    """
    places = {"file": source, "lines": lines or {}}
    flat = {key: data[key] for key in data if key in FLAT_KEYS}
    written = dict(data[SECTION] or {}) if SECTION in data else {}
    twice = [key for key in flat if key in written]
    if twice:
        raise _twice(twice, source or SECTION, f"it is in `{SECTION}:` too")
    inner = {key: value for key, value in data.items() if key not in FLAT_KEYS and key != SECTION}
    _refuse_unknown(inner, (*sorted(llamafactory_keys()), *FLAT_KEYS, SECTION), "LLaMA-Factory", places)
    if not flat and SECTION not in data:
        return TrainConfig(None, inner, base_dir, source)
    section, notes = _checked_method(parse_section(_merge(flat, written, base_dir, source), source))
    _check_pipeline(inner, section, source)
    return TrainConfig(section, inner, base_dir, source, notes)


def _merge(flat: Mapping[str, Any], written: Mapping[str, Any], base_dir: Path, source: str | None) -> dict[str, Any]:
    """One set of section keys; parameters come from the components file where DataFlex keeps them."""
    merged = {**written, **{key: value for key, value in flat.items() if key != "components_cfg_file"}}
    components = flat.get("components_cfg_file")
    if components is None or merged.get("component_name") is None:
        return merged
    if merged.get("component_params"):
        raise _twice(["component_params"], source or SECTION, "components_cfg_file gives it too")
    path = _find(str(components), base_dir, source)
    params = _component_params(load_yaml(path), str(merged["component_name"]), path)
    merged["component_params"] = params
    return merged


def _component_params(data: Mapping[str, Any], name: str, path: Path) -> dict[str, Any]:
    selectors = plain(data).get("selectors") or {}
    if name not in selectors:
        raise DatamillError(
            "DM-TRAIN-004",
            f"no selector `{name}` in the components file",
            exit_code=ExitCode.INVALID,
            file=str(path),
            expected=f"one of {', '.join(selectors) or 'none: the file has no `selectors:`'}",
            nearest=nearest(name, selectors),
        )
    return dict(selectors[name].get("params") or {})


def _find(name: str, base_dir: Path, source: str | None) -> Path:
    places = [base_dir / name, *([Path(source).parent / name] if source else [])]
    for place in places:
        if place.is_file():
            return place
    raise DatamillError(
        "DM-TRAIN-014", f"there is no file {name}", exit_code=ExitCode.INVALID, file=source, field="components_cfg_file"
    )


def _checked_method(section: DynamicSection) -> tuple[DynamicSection, tuple[str, ...]]:
    """The section with the method's parameters checked, and notes on those that have nothing to do here."""
    if section.train_type == "dynamic_select":
        declaration = find_selector(str(section.component_name))
        kept, notes = split_obsolete(declaration.name, section.component_params)
        params = check_params(declaration.params, kept, declaration.name)
        if section.candidate_window is not None and getattr(params, "checkpoints", 1) > 1:
            raise DatamillError(
                "DM-TRAIN-004",
                "checkpoints above 1 add up scores of the same rows, and every round has another candidate window",
                exit_code=ExitCode.INVALID,
                field=f"{SECTION}.candidate_window",
                fix="set candidate_window: null, or checkpoints: 1",
            )
        return section.model_copy(update={"component_params": kept}), notes
    if section.component_params:
        raise DatamillError(
            "DM-TRAIN-004",
            "train_type static reads no component_params",
            exit_code=ExitCode.INVALID,
            field=f"{SECTION}.component_params",
            fix=f"remove {SECTION}.component_params or choose train_type: dynamic_select",
        )
    return section, ()


def _check_pipeline(inner: Mapping[str, Any], section: DynamicSection, source: str | None) -> None:
    stage = inner.get("stage", "sft")
    if stage not in STAGES:
        raise DatamillError(
            "DM-TRAIN-005",
            f"stage `{stage}` cannot be trained with a `{SECTION}:` section",
            exit_code=ExitCode.INVALID,
            field="stage",
            file=source,
            expected=" or ".join(STAGES),
            fix=f"remove the {SECTION} keys to run LLaMA-Factory as it is",
        )
    if inner.get("streaming"):
        raise _not_with(
            "streaming",
            "a streamed set has no length",
            source,
            "set streaming: false; steps = rows / batch / accumulation",
        )
    selects = section.train_type == "dynamic_select"
    packed = inner.get("packing", stage == "pt")
    if selects and (packed or inner.get("neat_packing")):
        raise _not_with("packing", "a packed row is several samples", source, "set packing: false")
    if selects and inner.get("tokenized_path"):
        raise _not_with("tokenized_path", "tokenised sets have lost the ids of their rows", source, "remove it")


def _not_with(key: str, why: str, source: str | None, fix: str) -> DatamillError:
    message = f"`{key}` does not go with a `{SECTION}:` section: {why}"
    return DatamillError("DM-TRAIN-013", message, exit_code=ExitCode.INVALID, field=key, file=source, fix=fix)


def _refuse_unknown(data: Mapping[str, Any], known: Sequence[str], owner: str, places: Mapping[str, Any]) -> None:
    lines = places.get("lines") or {}
    issues = [
        Issue(
            "DM-TRAIN-001",
            f"{owner} knows no key `{key}`",
            field=str(key),
            file=places.get("file"),
            line=lines.get(str(key)),
            nearest=nearest(str(key), known),
            fix=f"rename or remove `{key}`",
        )
        for key in data
        if key not in known
    ]
    if issues:
        raise DatamillError(issues[0].code, issues[0].message, exit_code=ExitCode.INVALID, issues=issues)


def _twice(keys: Sequence[str], where: str, why: str) -> DatamillError:
    issues = [
        Issue("DM-TRAIN-002", f"`{key}` is set twice: {why}", field=key, file=where, fix="remove one of them")
        for key in keys
    ]
    return DatamillError("DM-TRAIN-002", issues[0].message, exit_code=ExitCode.INVALID, issues=issues)


def _names(value: Any) -> list[str]:
    return [name.strip() for name in value.split(",")] if isinstance(value, str) else [str(name) for name in value]


def _assign(data: dict[str, Any], assignment: str) -> None:
    name, separator, value = assignment.partition("=")
    if not separator or not name:
        raise DatamillError(
            "DM-TRAIN-004", f"`{assignment}` is no override", exit_code=ExitCode.USAGE, expected="key=value"
        )
    *parents, leaf = name.split(".")
    node = data
    for parent in parents:
        node[parent] = dict(node.get(parent) or {})
        node = node[parent]
    node[leaf] = parse_scalar(value)
