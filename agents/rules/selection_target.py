"""Gives a selection method its target: the set named, one lying beside the input, or rows held out."""

from pathlib import PurePosixPath
from typing import Any

from datamill.agents.rules.assembly import Assembly, identifier
from datamill.agents.rules.capabilities import installed
from datamill.agents.rules.reading import Reading
from datamill.agents.rules.recipes import is_target_name
from datamill.agents.rules.sources import Source
from datamill.agents.rules.train_block import TARGET_SHARE


def selection_target(reading: Reading, made: Assembly, head: str, path: str) -> str | None:
    """Register the target set as an output of its own; hold rows out when there is none."""
    workflow, wish = made.workflow, reading.training
    named = wish.target if wish else None
    known = reading.inspection.evaluation_sets if reading.inspection else {}
    if named and named.split == "test":
        named = Source(named.name, named.purpose, named.start, named.end, False, "dev", named.benchmark)
    file = (
        named.name
        if named and named.is_path
        else next(
            (
                p
                for name, p in sorted(known.items())
                if (named and named.name in name and named.split in name) or (named is None and is_target_name(name))
            ),
            None,
        )
    )
    if named and file is None:
        file = f"{named.name}_{named.split}" if named.split else named.name
        made.unresolved.append(named.key.replace(":", " "))
    if file is None:
        return _held_out(reading, made, head, path)
    source = identifier("target_" + PurePosixPath(file).name.split(".")[0], workflow["inputs"])
    workflow["inputs"][source] = {"path": file}
    taken = set(workflow["inputs"]) | {s["id"] for s in workflow["steps"]}
    chat = next((s for s in workflow["steps"] if s["operator"] == "format.chat"), None)
    last = source
    if chat:
        last = identifier("target_chat", taken)
        workflow["steps"].append(
            {
                "id": last,
                "operator": "format.chat",
                "needs": [source],
                "params": dict(chat.get("params", {})),
                "why": "the target in the form of the training rows",
            }
        )
    return _register_target(workflow, last, path)


def _register_target(workflow: dict[str, Any], source: str, path: str) -> str:
    first = next(iter(workflow["outputs"].values()))
    registry = {**first.get("llamafactory", {"formatting": "sharegpt"}), "name": "selection_target"}
    folder = str(PurePosixPath(path).parent)
    workflow["outputs"]["target"] = {
        "from": source,
        "path": f"{folder}/target.jsonl" if folder != "." else "target.jsonl",
        "format": "jsonl",
        "llamafactory": registry,
    }
    return "target"


def _held_out(reading: Reading, made: Assembly, head: str, path: str) -> str | None:
    """No target named: a small share of the rows, verified ones where answers were checked, is held out as target."""
    workflow = made.workflow
    if not made.has_input or "split" in {s["operator"] for s in workflow["steps"]} or not installed("split"):
        return None
    chat = next((s for s in workflow["steps"] if s["id"] == head), None)
    if chat is None or chat["operator"] != "format.chat":
        return None
    taken = set(workflow["inputs"]) | {s["id"] for s in workflow["steps"]}
    holdout, train_rows, target_rows, target_chat = (
        identifier(n, taken) for n in ("holdout", "train_rows", "target_rows", "target_chat")
    )
    verified = any(s["operator"] == "math.verify" for s in workflow["steps"])
    condition = 'split == "target"' + (' and math_ok == "true"' if verified else "")
    at = workflow["steps"].index(chat)
    workflow["steps"][at:at] = [
        {
            "id": holdout,
            "operator": "split",
            "needs": chat["needs"],
            "params": {"ratios": [1 - TARGET_SHARE, TARGET_SHARE], "names": ["train", "target"]},
            "why": "LESS aims at rows it does not train on",
        },
        {
            "id": train_rows,
            "operator": "filter.expr",
            "needs": [holdout],
            "params": {"expr": 'split == "train"'},
            "why": "the rows to choose from",
        },
        {
            "id": target_rows,
            "operator": "filter.expr",
            "needs": [holdout],
            "params": {"expr": condition},
            "why": "the rows to aim at",
        },
    ]
    chat["needs"] = [train_rows]
    workflow["steps"].append(
        {
            "id": target_chat,
            "operator": "format.chat",
            "needs": [target_rows],
            "params": dict(chat.get("params", {})),
            "why": "the target in the form of the training rows",
        }
    )
    made.assumptions.append(
        f"no target set named: {TARGET_SHARE:.0%} of the "
        f"rows{' whose answers are verified' if verified else ''} are held out as target"
    )
    return _register_target(workflow, target_chat, path)
