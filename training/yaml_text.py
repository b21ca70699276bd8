"""YAML in and out for training files: safe types only, duplicate keys refused, lines of keys known."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.scalarstring import SingleQuotedScalarString

from datamill.errors import DatamillError, ExitCode

_YAML_1_1_WORDS: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "~"})
"""Strings that PyYAML, which LLaMA-Factory reads with, takes for something else."""


def load_yaml(path: Path) -> Mapping[str, Any]:
    """The mapping in a YAML file; positions of its keys are kept for `line_of`.

    Raises:
        DatamillError: `DM-TRAIN-014` when it cannot be read or holds no mapping.
    """
    try:
        text = path.read_text(encoding="utf-8")
        YAML(typ="safe", pure=True).load(text)  # refuses tags, which the loader that keeps lines would carry along
        data = YAML(typ="rt").load(text)
    except (OSError, UnicodeDecodeError, YAMLError) as error:
        first = str(error).strip().splitlines()[0]
        mark = getattr(error, "problem_mark", None)
        raise DatamillError(
            "DM-TRAIN-014",
            f"cannot read it: {getattr(error, 'problem', None) or first}",
            exit_code=ExitCode.INVALID,
            file=str(path),
            line=mark.line + 1 if mark is not None else None,
        ) from error
    if not isinstance(data, Mapping):
        raise DatamillError(
            "DM-TRAIN-014", "the file holds no `key: value` pairs", exit_code=ExitCode.INVALID, file=str(path)
        )
    return data


def line_of(data: Mapping[str, Any], key: Any) -> int | None:
    """1-based line of a top-level key of a loaded mapping."""
    positions = getattr(getattr(data, "lc", None), "data", None) or {}
    return int(positions[key][0]) + 1 if key in positions else None


def parse_scalar(text: str) -> Any:
    """A value written on a command line, read as YAML reads it."""
    try:
        return YAML(typ="safe").load(text) if text else ""
    except YAMLError:
        return text


def plain(value: Any) -> Any:
    """The value in plain Python types, as JSON and LLaMA-Factory expect."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, bool) or value is None:
        return value
    for kind in (int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return value


def dump_yaml(data: Mapping[str, Any]) -> str:
    """Block-style YAML of a mapping, keys in the given order; words that YAML 1.1 takes for booleans are quoted."""
    writer = YAML(typ="rt")
    sink = io.StringIO()
    writer.dump(_quoted(plain(data)), sink)
    return sink.getvalue()


def _quoted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _quoted(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_quoted(item) for item in value]
    if isinstance(value, str) and value.lower() in _YAML_1_1_WORDS:
        return SingleQuotedScalarString(value)
    return value
