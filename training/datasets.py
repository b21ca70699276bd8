"""Reads the texts of data sets registered in `dataset_info.json`, as LLaMA-Factory will read them, without loading it.

Used for what must be known before training starts: how many rows, whether target and training rows meet, whether
anything changed since a checkpoint. Only local files are read (jsonl, json, csv, parquet); a set from a hub has no rows
here and says so with None.
"""

import hashlib
import json
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from datamill.errors import DatamillError, ExitCode, nearest

if TYPE_CHECKING:
    from datamill.training.config import TrainConfig

INFO_FILE: Final = "dataset_info.json"


@dataclass(frozen=True, slots=True)
class RowText:
    """Text of one row: what is asked, and everything."""

    prompt: str
    full: str


def names_of(value: Any) -> list[str]:
    """Data set names in a LLaMA-Factory value: a list, or names separated by commas."""
    if value is None:
        return []
    return [name.strip() for name in value.split(",")] if isinstance(value, str) else [str(name) for name in value]


def dataset_folder(config: "TrainConfig") -> Path:
    """`dataset_dir` of a configuration."""
    return config.base_dir / str(config.llamafactory.get("dataset_dir", "data"))


def dataset_file(folder: Path, name: str) -> tuple[Path | None, Mapping[str, Any]]:
    """File and registry entry of a data set; no file for one that lies elsewhere.

    Raises:
        DatamillError: `DM-TRAIN-014` when the registry or the name is missing.
    """
    info = folder / INFO_FILE
    try:
        registry: dict[str, Any] = json.loads(info.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DatamillError(
            "DM-TRAIN-014", f"cannot read the data set registry: {error}", exit_code=ExitCode.INVALID, file=str(info)
        ) from error
    if name not in registry:
        raise DatamillError(
            "DM-TRAIN-014",
            f"no data set `{name}` is registered",
            exit_code=ExitCode.INVALID,
            file=str(info),
            expected=f"one of {', '.join(sorted(registry)[:20])}",
            nearest=nearest(name, registry),
        )
    entry = registry[name]
    path = folder / str(entry.get("file_name", ""))
    return (path if entry.get("file_name") and path.is_file() else None), entry


def read_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    """Rows of a local file."""
    if path.suffix == ".parquet":
        yield from pq.read_table(path).to_pylist()
    elif path.suffix == ".csv":
        yield from pa_csv.read_csv(path).to_pylist()
    elif path.suffix == ".jsonl":
        with path.open(encoding="utf-8") as stream:
            yield from (json.loads(line) for line in stream if line.strip())
    else:
        text = path.read_text(encoding="utf-8")
        if text.lstrip().startswith("["):
            yield from json.loads(text)
        else:
            yield from (json.loads(line) for line in text.splitlines() if line.strip())


def row_texts(folder: Path, name: str) -> list[RowText] | None:
    """Texts of all rows of a data set; None when it is not a local file."""
    path, entry = dataset_file(folder, name)
    return None if path is None else [_text(row, entry) for row in read_rows(path)]


def count_rows(folder: Path, name: str) -> int | None:
    """Rows of a data set; None when it is not a local file."""
    path, _ = dataset_file(folder, name)
    if path is None:
        return None
    return pq.read_metadata(path).num_rows if path.suffix == ".parquet" else sum(1 for _ in read_rows(path))


def _text(row: Mapping[str, Any], entry: Mapping[str, Any]) -> RowText:
    columns = {"prompt": "instruction", "query": "input", "response": "output", "messages": "conversations"}
    columns |= entry.get("columns") or {}
    if entry.get("formatting", "alpaca") == "alpaca":
        prompt = "\n".join(str(row[columns[key]]) for key in ("prompt", "query") if row.get(columns[key]))
        return RowText(prompt, f"{prompt}\n{row.get(columns['response']) or ''}")
    tags = {"role_tag": "from", "content_tag": "value", "user_tag": "human"} | (entry.get("tags") or {})
    messages = row.get(columns["messages"]) or []
    asked = [str(m.get(tags["content_tag"])) for m in messages if m.get(tags["role_tag"]) == tags["user_tag"]]
    return RowText("\n".join(asked), "\n".join(str(m.get(tags["content_tag"])) for m in messages))


def normalised(text: str) -> str:
    """Case, width, punctuation and spacing aside: what makes two texts the same content."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join("".join(c if c.isalnum() else " " for c in folded).split())


def dataset_fingerprint(config: "TrainConfig") -> str:
    """Sha256 of the files and registry entries of every data set of a run; of names alone for those not local."""
    digest = hashlib.sha256()
    folder = dataset_folder(config)
    section_targets = config.section.targets if config.section else ()
    names = [*names_of(config.llamafactory.get("dataset")), *names_of(config.llamafactory.get("eval_dataset"))]
    for name in [*names, *section_targets]:
        path, entry = dataset_file(folder, name)
        digest.update(json.dumps([name, entry], sort_keys=True).encode())
        if path is not None:
            with path.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()


def model_fingerprint(path: Path) -> str:
    """Sha256 of the names, sizes and small files of a checkpoint folder, and of the ends of its weights.

    Hashing gigabytes of weights would take longer than starting; the header and tail of each file change with them.
    """
    digest = hashlib.sha256(path.name.encode())
    if not path.is_dir():
        return digest.hexdigest()
    for file in sorted(p for p in path.iterdir() if p.is_file()):
        size = file.stat().st_size
        digest.update(f"{file.name}\0{size}\0".encode())
        with file.open("rb") as stream:
            digest.update(stream.read(1 << 20))
            stream.seek(max(size - (1 << 20), 0))
            digest.update(stream.read())
    return digest.hexdigest()
