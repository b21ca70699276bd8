"""Which keys a LLaMA-Factory YAML may have, read off the installed version without importing it.

LLaMA-Factory parses its YAML with the fields of five dataclasses. Importing them takes ten seconds and torch; reading
their source takes 0.1 s and gives the same names (a test holds the two against each other).
"""

import ast
import importlib.util
from functools import cache
from pathlib import Path

from datamill.errors import MissingDependencyError

_ROOTS = ("ModelArguments", "DataArguments", "TrainingArguments", "FinetuningArguments", "GeneratingArguments")
_SOURCES = (
    ("llamafactory", "hparams/model_args.py"),
    ("llamafactory", "hparams/data_args.py"),
    ("llamafactory", "hparams/finetuning_args.py"),
    ("llamafactory", "hparams/generating_args.py"),
    ("transformers", "training_args.py"),
    ("transformers", "training_args_seq2seq.py"),
    ("llamafactory", "hparams/training_args.py"),
)


@cache
def llamafactory_keys() -> frozenset[str]:
    """Every key the installed LLaMA-Factory reads from a training YAML.

    Raises:
        DatamillError: `DM-ENV-001` when it is not installed.
    """
    classes: dict[str, ast.ClassDef] = {}
    for package, name in _SOURCES:
        tree = ast.parse((_folder(package) / name).read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                # LLaMA-Factory's TrainingArguments has the name of the transformers class it extends
                key = f"{package}:{node.name}" if node.name == "TrainingArguments" else node.name
                classes[key] = node
    names: set[str] = set()
    for root in _ROOTS:
        _collect(f"llamafactory:{root}" if root == "TrainingArguments" else root, classes, names)
    return frozenset(names)


def _folder(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MissingDependencyError(package, "training", "train")
    return Path(next(iter(spec.submodule_search_locations)))


def _collect(name: str, classes: dict[str, ast.ClassDef], names: set[str]) -> None:
    node = classes.get(name)
    if node is None:
        return
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name) and _is_field(item):
            names.add(item.target.id)
    for base in node.bases:
        if isinstance(base, ast.Name):
            parent = base.id
            if parent == "BaseTrainingArguments":
                parent = "Seq2SeqTrainingArguments"
            elif parent == "TrainingArguments":
                parent = "transformers:TrainingArguments"
            _collect(parent, classes, names)


def _is_field(item: ast.AnnAssign) -> bool:
    if "ClassVar" in ast.unparse(item.annotation):
        return False
    call = item.value
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "field":
        return not any(
            word.arg == "init" and isinstance(word.value, ast.Constant) and word.value.value is False
            for word in call.keywords
        )
    return True
