"""Registration of an output in LLaMA-Factory's `dataset_info.json`, checked against the file before it is written.

A key that LLaMA-Factory does not know is silently ignored by it and fails minutes into training; here the entry is
held against the file: unknown keys (with the nearest known one), columns that are not there, tags that do not occur,
no rows, pairs for a stage that cannot use them. Other entries of the registry are left as they are.

Source: LLaMA-Factory `data/README.md` and `DatasetAttr` of version 0.9.5. Cost: reads up to `SAMPLE_ROWS` rows.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

from datamill.errors import DatamillError, ExitCode, Issue, nearest
from datamill.services.storage.atomic import write_bytes
from datamill.workflows.spec import RegistrySpec

REGISTRY: Final = "dataset_info.json"
SAMPLE_ROWS: Final = 1000
ENTRY_KEYS: Final = (
    "file_name", "formatting", "ranking", "subset", "split", "folder", "num_samples", "columns", "tags",
    "hf_hub_url", "ms_hub_url", "om_hub_url", "script_url", "cloud_file_name",
)  # fmt: skip
COLUMN_KEYS: Final = (
    "prompt", "query", "response", "history", "messages", "system", "tools", "images", "videos", "audios",
    "chosen", "rejected", "kto_tag",
)  # fmt: skip
OPENAI_TAGS: Final = {
    "role_tag": "role", "content_tag": "content", "user_tag": "user", "assistant_tag": "assistant",
    "observation_tag": "observation", "function_tag": "function_call", "system_tag": "system",
}  # fmt: skip
SHAREGPT_TAGS: Final = {
    "role_tag": "from", "content_tag": "value", "user_tag": "human", "assistant_tag": "gpt",
    "observation_tag": "observation", "function_tag": "function_call", "system_tag": "system",
}  # fmt: skip
RANKING_STAGES: Final = frozenset({"rm", "dpo"})
UNRANKED_STAGES: Final = frozenset({"sft", "pt"})


def build_entry(file: Path, spec: RegistrySpec) -> dict[str, Any]:
    """The registry entry of `file`; columns and tags that `spec` leaves out are found from the file."""
    names, rows = read_sample(file)
    entry: dict[str, Any] = {"file_name": file.name}
    if spec.formatting != "alpaca":
        entry["formatting"] = spec.formatting
    ranking = spec.ranking or {"chosen", "rejected"} <= set(names)
    if ranking:
        entry["ranking"] = True
    columns = dict(spec.columns) or usual_columns(spec.formatting, names, ranking)
    entry["columns"] = columns
    tags = dict(spec.tags)
    if spec.formatting == "sharegpt" and not tags and "role" in _message_keys(rows, columns.get("messages")):
        tags = dict(OPENAI_TAGS)
    if tags:
        entry["tags"] = tags
    return entry


def check_entry(name: str, entry: Mapping[str, Any], folder: Path, stage: str | None = None) -> list[Issue]:
    """Everything wrong with an entry of the registry in `folder`, held against its file.

    Args:
        name: key of the entry.
        entry: the entry.
        folder: folder of the registry; `file_name` is relative to it.
        stage: training stage that is to use it, `sft`, `dpo`, ...
    """
    registry = str(folder / REGISTRY)
    issues = [
        *_unknown_keys(name, "", entry, ENTRY_KEYS, registry),
        *_unknown_keys(name, "columns.", entry.get("columns", {}), COLUMN_KEYS, registry),
        *_unknown_keys(name, "tags.", entry.get("tags", {}), OPENAI_TAGS, registry),
        *_stage_issues(name, entry, stage, registry),
    ]
    if "file_name" not in entry:
        return issues
    path = folder / str(entry["file_name"])
    if not path.is_file():
        return [*issues, Issue("DM-OPB-028", f"`{name}` names a file that is not there", file=str(path))]
    names, rows = read_sample(path)
    if not rows:
        return [*issues, Issue("DM-OPB-025", f"`{name}` has no rows", file=str(path))]
    return [*issues, *_column_issues(name, entry, names, path), *_tag_issues(name, entry, rows, path)]


def register_output(
    file: Path,
    spec: RegistrySpec,
    *,
    rows: int,
    reasons: Mapping[str, int] | None = None,
    stage: str | None = None,
) -> Path:
    """Add `file` to the `dataset_info.json` beside it.

    Args:
        file: dataset just written.
        spec: how it is to be registered.
        rows: rows in it.
        reasons: why rows left on the way, for the message when none is left.
        stage: training stage that will use it, when known.

    Returns:
        Path of the registry.

    Raises:
        DatamillError: with every issue found; nothing is written then. `DM-OPB-025` carries the table of reasons.
    """
    if rows == 0:
        raise DatamillError(
            "DM-OPB-025",
            f"`{spec.name}` has no rows and is not registered: {reason_table(reasons or {})}",
            file=str(file),
            fix="datamill data drops @last",
            context={"reasons": dict(reasons or {})},
        )
    entry = build_entry(file, spec)
    registry = file.parent / REGISTRY
    known = read_registry(registry)
    issues = [*_foreign_entry(known, spec.name, entry, registry), *check_entry(spec.name, entry, file.parent, stage)]
    if issues:
        raise DatamillError(issues[0].code, issues[0].message, exit_code=ExitCode.INVALID, issues=issues)
    if known.get(spec.name) != entry:
        text = json.dumps({**known, spec.name: entry}, ensure_ascii=False, indent=2)
        write_bytes(registry, text.encode() + b"\n", "registry")
    return registry


def require_entry(folder: Path, name: str, stage: str | None = None) -> Mapping[str, Any]:
    """The entry `name` of the registry in `folder`, fit for training.

    Raises:
        DatamillError: `DM-OPB-030` when there is none, otherwise every issue of `check_entry`.
    """
    known = read_registry(folder / REGISTRY)
    if name not in known:
        raise DatamillError(
            "DM-OPB-030",
            f"`{name}` is not registered",
            exit_code=ExitCode.INVALID,
            file=str(folder / REGISTRY),
            nearest=nearest(name, known),
        )
    issues = check_entry(name, known[name], folder, stage)
    if issues:
        raise DatamillError(issues[0].code, issues[0].message, exit_code=ExitCode.INVALID, issues=issues)
    entry: Mapping[str, Any] = known[name]
    return entry


def reason_table(reasons: Mapping[str, int]) -> str:
    """`2 empty answer, 1 no user turn`, most frequent first; a fate before the reason (`dropped:`) is left out."""
    counts: Counter[str] = Counter()
    for reason, count in reasons.items():
        counts[reason.rpartition(":")[2].replace("_", " ")] += count
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count} {reason}" for reason, count in ordered) or "no row came in"


def read_registry(path: Path) -> dict[str, Any]:
    """Entries of a registry, none when there is no file.

    Raises:
        DatamillError: `DM-OPB-027` when it is not a JSON object.
    """
    if not path.is_file():
        return {}
    try:
        known = json.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise _broken_registry(path, str(error)) from error
    if not isinstance(known, dict):
        raise _broken_registry(path, "not an object")
    return known


def read_sample(path: Path) -> tuple[tuple[str, ...], list[dict[str, Any]]]:
    """Column names over, and the first rows of, a jsonl, json or parquet file, at most `SAMPLE_ROWS`."""
    if path.suffix == ".parquet":
        with pq.ParquetFile(path) as file:
            batches = file.iter_batches(batch_size=SAMPLE_ROWS)
            first = next(batches, None)
            return tuple(file.schema_arrow.names), first.to_pylist() if first is not None else []
    with path.open(encoding="utf-8-sig") as stream:
        if path.suffix == ".json":
            content = json.load(stream)
            rows = content[:SAMPLE_ROWS] if isinstance(content, list) else [content]
        else:
            rows = [json.loads(line) for line in islice((line for line in stream if line.strip()), SAMPLE_ROWS)]
    return tuple(dict.fromkeys(key for row in rows for key in row)), rows


def usual_columns(formatting: str, names: Iterable[str], ranking: bool) -> dict[str, str]:
    """Roles and the columns that usually fill them; optional roles only where their column is among `names`."""
    present = set(names)
    optional: tuple[str, ...]
    if formatting == "sharegpt":
        usual = {"messages": "conversations" if "conversations" in present else "messages"}
        optional = ("system", "tools")
    elif ranking:
        usual, optional = {"prompt": "instruction"}, ("system", "history")
    elif "instruction" not in present and "text" in present:
        usual, optional = {"prompt": "text"}, ()
    else:
        usual, optional = {"prompt": "instruction", "response": "output"}, ("system", "history")
        usual |= {"query": "input"} if "input" in present else {}
    usual |= {"chosen": "chosen", "rejected": "rejected"} if ranking else {}
    return usual | {key: key for key in optional if key in present}


def _unknown_keys(
    name: str, prefix: str, given: Mapping[str, Any], known: Iterable[str], registry: str
) -> Iterable[Issue]:
    for key in given:
        if key not in set(known):
            closest = nearest(key, known)
            message = f"entry `{name}` has the unknown key `{prefix}{key}`"
            yield Issue("DM-OPB-021", message, field=f"{prefix}{key}", file=registry, nearest=closest)


def _stage_issues(name: str, entry: Mapping[str, Any], stage: str | None, registry: str) -> Iterable[Issue]:
    if entry.get("ranking") and stage in UNRANKED_STAGES:
        message = f"`{name}` holds preference pairs (ranking: true); stage {stage} cannot train on them"
        yield Issue("DM-OPB-026", message, file=registry, expected="stage dpo or rm", fix="set stage: dpo")
    if not entry.get("ranking") and stage in RANKING_STAGES:
        message = f"`{name}` holds no preference pairs (ranking is not set); stage {stage} needs them"
        yield Issue("DM-OPB-026", message, file=registry, fix="add a format.preference step")


def _column_issues(name: str, entry: Mapping[str, Any], names: Iterable[str], path: Path) -> Iterable[Issue]:
    present = tuple(names)
    given = dict(entry.get("columns", {}))
    if entry.get("formatting", "alpaca") == "alpaca":
        wanted = {"prompt": "instruction", **({} if given else {"response": "output"}), **given}
    else:
        wanted = {"messages": "conversations", **given}
    if entry.get("ranking"):
        wanted = {"chosen": "chosen", "rejected": "rejected", **wanted}
    for role, column in wanted.items():
        if column and column not in present:
            message = f"entry `{name}`: the column `{column}` ({role}) does not exist in the file"
            yield Issue(
                "DM-OPB-023", message, field=f"columns.{role}", file=str(path), nearest=nearest(str(column), present)
            )


def _tag_issues(name: str, entry: Mapping[str, Any], rows: list[dict[str, Any]], path: Path) -> Iterable[Issue]:
    if entry.get("formatting") != "sharegpt":
        return
    column = entry.get("columns", {}).get("messages", "conversations")
    tags = {**SHAREGPT_TAGS, **entry.get("tags", {})}
    messages = [message for row in rows for message in row.get(column) or [] if isinstance(message, dict)]
    if not messages:
        return
    for key in ("role_tag", "content_tag"):
        if not any(tags[key] in message for message in messages):
            seen = sorted({field for message in messages for field in message})
            message = f"entry `{name}`: no message has the key `{tags[key]}` ({key})"
            yield Issue("DM-OPB-024", message, field=f"tags.{key}", file=str(path), expected=", ".join(seen))
            return
    roles = {str(message.get(tags["role_tag"])) for message in messages}
    for key in ("user_tag", "assistant_tag"):
        if tags[key] not in roles and not (entry.get("ranking") and key == "assistant_tag"):
            message = f"entry `{name}`: the role `{tags[key]}` ({key}) does not occur"
            yield Issue("DM-OPB-024", message, field=f"tags.{key}", file=str(path), expected=", ".join(sorted(roles)))


def _message_keys(rows: Iterable[Mapping[str, Any]], column: str | None) -> set[str]:
    return {
        key for row in rows for message in (row.get(column or "") or []) if isinstance(message, dict) for key in message
    }


def _foreign_entry(known: Mapping[str, Any], name: str, entry: Mapping[str, Any], registry: Path) -> Iterable[Issue]:
    if name in known and known[name].get("file_name") != entry["file_name"]:
        message = f"`{name}` is already registered for `{known[name].get('file_name', 'another source')}`"
        yield Issue("DM-OPB-029", message, file=str(registry), fix="choose another llamafactory.name")


def _broken_registry(path: Path, why: str) -> DatamillError:
    return DatamillError(
        "DM-OPB-027",
        f"cannot read the registry: {why}",
        exit_code=ExitCode.INVALID,
        file=str(path),
        fix="repair the file or write the output to another folder",
    )
