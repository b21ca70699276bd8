"""From ordered steps to a workflow in YAML v1 shape; what is not installed is named as missing, in its place."""

import re
from pathlib import PurePosixPath
from typing import Any

from pydantic import ValidationError

from datamill.agents.draft import INPUT_PLACEHOLDER, MissingCapability
from datamill.agents.rules.assembly import Assembly, identifier, step_name
from datamill.agents.rules.capabilities import CAPABILITIES, accepts, installed
from datamill.agents.rules.nodes import Node
from datamill.agents.rules.reading import Reading
from datamill.agents.rules.request import fold
from datamill.agents.rules.selection_target import selection_target
from datamill.agents.rules.sources import Source
from datamill.agents.rules.steps_sample import seed_of
from datamill.agents.rules.steps_shape import chat_params
from datamill.agents.rules.train_block import missing_methods, train_block
from datamill.agents.rules.training_words import is_method_available
from datamill.operators.registry import catalogue

_EXTENSIONS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".txt": "txt",
}
_FORMAT_WORDS = re.compile(
    r"(?:\b(?:writ\w*|sav\w*|export\w*|output|stor\w*|dump\w*|result|salv\w*|guard\w*|escrev\w*|"
    r"escrib\w*|grav\w*|resultado)\b|保存|导出|输出|写)[^.;。]{0,30}?(?<![a-z])(?P<format>parquet|jsonl|"
    r"json|csv)(?![a-z])"
    r"|(?:^|[,;.]\s*)(?P<alone>parquet|csv|jsonl)(?=\s*(?:[,;.]|$|pls|please|por favor|out(?:put)?\b))"
    r"|(?:\b(?:to|as|into|em|como|para|formato)|成|为|格式)\s?(?:a |one |um |un "
    r")?(?P<as_format>parquet|jsonl|csv)(?![a-z])|(?<![a-z])(?P<after>parquet|jsonl|"
    r"csv)\s?(?:output|out\b|格式)"
)


def assemble(reading: Reading, nodes: list[Node]) -> Assembly:
    """The workflow for ordered nodes, with inputs, outputs and training."""
    made = Assembly()
    workflow = made.workflow
    workflow |= {
        "version": 1,
        "name": _name(reading, nodes),
        "description": reading.request.text.strip()[:200],
        "seed": seed_of(reading) if seed_of(reading) is not None else 17,
    }
    said = reading.training.settings.get("seed") if reading.training else None
    if isinstance(said, int):
        workflow["seed"] = said
    workflow["inputs"] = _inputs(reading, nodes, made)
    workflow["steps"] = []
    heads = [name for name in workflow["inputs"] if not name.startswith(("target_", "older_"))]
    head = _chain(reading, nodes, made, heads)
    _outputs(reading, nodes, made, head)
    return made


def _name(reading: Reading, nodes: list[Node]) -> str:
    source = next(
        (s.name for s in reading.sources if s.purpose == "input"), reading.facts.path if reading.facts else ""
    )
    stem = PurePosixPath(source.replace("\\", "/")).name.split(".")[0] if source else ""
    verb = (
        nodes[0].capability.split(".")[-1]
        if len(nodes) == 1
        else "clean"
        if nodes
        else "train"
        if reading.training
        else "convert"
    )
    slug = re.sub(r"[^a-z0-9]+", "-", fold(f"{verb}-{stem}")).strip("-")
    return (slug or "workflow")[:60].strip("-")


def _inputs(reading: Reading, nodes: list[Node], made: Assembly) -> dict[str, Any]:
    inputs: dict[str, Any] = {}
    named = [s for s in reading.sources if s.purpose in {"input", "delete"}]
    weights: dict[str, float] = next(
        (n.params["weights"] for n in nodes if n.capability == "mix.concat" and "weights" in n.params), {}
    )
    attached = list(reading.inspection.inputs) if reading.inspection else []
    for source in named:
        if not any(entry["path"] == source.name for entry in inputs.values()):
            _add_input(reading, made, inputs, source)
    if not inputs and attached:
        for facts in attached:
            inputs[identifier(PurePosixPath(facts.path).name.split(".")[0], inputs)] = {
                "path": facts.path,
                "format": facts.format,
            }
    if weights and not set(map(str, weights)) <= set(inputs):
        _match_domains(nodes, inputs, list(weights))
    if not inputs:
        made.has_input = False
        options = _reader_options(reading)
        inputs["data"] = {"path": INPUT_PLACEHOLDER} | ({"format": "csv", "options": options} if options else {})
    if any(entry["path"] == INPUT_PLACEHOLDER for entry in inputs.values()):
        made.has_input = False
    return inputs


def _match_domains(nodes: list[Node], inputs: dict[str, Any], domains: list[str]) -> None:
    """Give each weighted domain an input: the file whose name holds it, or a placeholder to ask for."""
    mix = next(n for n in nodes if n.capability == "mix.concat")
    weights: dict[str, float] = {}
    for domain in domains:
        fitting = next(
            (name for name, entry in inputs.items() if domain in name or domain in fold(str(entry["path"]))), None
        )
        name = fitting or identifier(domain, inputs)
        inputs.setdefault(name, {"path": INPUT_PLACEHOLDER})
        weights[name] = mix.params["weights"][domain]
    mix.params["weights"] = weights


def _add_input(reading: Reading, made: Assembly, inputs: dict[str, Any], source: Source) -> None:
    path, options = source.name, _reader_options(reading)
    if not source.is_path:
        fitting = (
            [f.path for f in reading.inspection.inputs if _same_name(source.name, f.path)] if reading.inspection else []
        )
        if fitting:
            path = fitting[0]
        else:
            made.unresolved.append(source.name)
    entry: dict[str, Any] = {"path": path}
    suffix = next((kind for ending, kind in _EXTENSIONS.items() if ending in PurePosixPath(path).suffixes), None)
    if suffix:
        entry["format"] = suffix
    if options:
        entry |= {"format": entry.get("format", "csv"), "options": options}
    inputs[identifier(PurePosixPath(path.replace("\\", "/")).name.split(".")[0], inputs)] = entry


def _same_name(name: str, path: str) -> bool:
    stem = re.sub(r"[^a-z0-9]+", "", fold(PurePosixPath(path).name.split(".")[0]))
    return re.sub(r"[^a-z0-9]+", "", fold(name)) in stem


def _reader_options(reading: Reading) -> dict[str, Any]:
    """Delimiter and encoding of a CSV file, when the request speaks of them."""
    text, options = reading.request.masked, {}
    delimiters = (
        (";", r"semi-?colons?|ponto[- ]e[- ]virgula|punto y coma|分号"),
        ("\t", r"\btabs?\b(?:-separated)?|\btsv\b|tabulac\w+|制表符"),
        ("|", r"\bpipes?\b|竖线"),
        (",", r"comma[- ]separated|separad\w+ por (?:virgula|coma)s?|逗号分隔"),
    )
    found = next((mark for mark, pattern in delimiters if re.search(pattern, text)), None)
    if found and (found != "\t" or re.search(r"tab", text)):
        options["delimiter"] = found
    if reading.request.encodings:
        options["encoding"] = re.sub(r"[\s_]+", "-", reading.request.encodings[0].text.lower()).replace(
            "latin1", "latin-1"
        )
    return options


def _chain(reading: Reading, nodes: list[Node], made: Assembly, heads: list[str]) -> str:
    """Append the steps one after another; the id whose rows the outputs take."""
    steps, taken = made.workflow["steps"], set(made.workflow["inputs"])
    waiting: list[int] = []
    if len(heads) > 1 and not any(n.capability == "mix.concat" for n in nodes):
        nodes.insert(0, Node("mix.concat", {}, 0, reading.request.quote(0, 1)))
    previous = heads
    produced: set[str] = set()
    for node in nodes:
        adapt(node)
        usable = {name: value for name, value in node.params.items() if accepts(node.capability, name)}
        unusable = {name: value for name, value in node.params.items() if name not in usable}
        absent = {m.name for m in made.missing} - {s["operator"] for s in steps}
        dependent = any(f in absent for f in node.follows) or bool(
            produced & {str(c) for c in node.params.get("by") or ()}
        )
        if node.unmet or not installed(node.capability) or dependent:
            waiting.append(len(made.missing))
            last = made.missing[-1].name if waiting[:-1] else None
            made.missing.append(missing_capability(node, [*previous, *([last] if last else [])], dependent))
            produced |= {str(node.params["output"])} if node.params.get("output") else set()
            continue
        step_id = identifier(step_name(node.capability), taken)
        taken.add(step_id)
        _leave_out_invalid(made, node.capability, step_id, usable)
        step: dict[str, Any] = {"id": step_id, "operator": node.capability, "needs": list(previous)}
        if usable:
            step["params"] = usable
        if node.why:
            step["why"] = node.why
            made.why[step_id] = node.why
        steps.append(step)
        if unusable:
            _note_unusable(made, node, step_id, unusable)
        for index in waiting:
            made.missing[index] = made.missing[index].model_copy(
                update={"before": (*made.missing[index].before, step_id)}
            )
        waiting = []
        previous = [step_id]
    return previous[0]


def _leave_out_invalid(made: Assembly, operator: str, step_id: str, params: dict[str, Any]) -> None:
    """Take out values the operator refuses, such as shares that sum to 1.1: a draft under question still compiles."""
    model = catalogue()[operator].params
    while params:
        try:
            model.model_validate(params)
        except ValidationError as error:
            first = error.errors()[0]
            name = str(first["loc"][0]) if first["loc"] and first["loc"][0] in params else next(reversed(params))
            if first["type"] == "missing":
                return
            made.hazards.append(f"{step_id}: {name}={params.pop(name)!r} is left out: {first['msg']}")
        else:
            return


def adapt(node: Node) -> None:
    """`column` and `columns` are one wish; the operator decides how many it takes."""
    for one, many in (("column", "columns"),):
        if one in node.params and not accepts(node.capability, one) and accepts(node.capability, many):
            node.params[many] = [node.params.pop(one)]
        elif many in node.params and not accepts(node.capability, many) and accepts(node.capability, one):
            values = node.params.pop(many)
            node.params[one] = values[0] if isinstance(values, list | tuple) and values else values


def missing_capability(node: Node, previous: list[str], dependent: bool = False) -> MissingCapability:
    """A wish without an operator, in its place after `previous`."""
    capability = CAPABILITIES[node.capability]
    waits = "the same step, once the rows before it exist" if dependent else ""
    offered = node.offered or waits or ", ".join(capability.offered) or "the other steps"
    return MissingCapability(
        name=node.capability,
        asked_for=node.unmet or capability.label,
        offered=offered,
        wanted=dict(node.params),
        quote=node.why,
        after=tuple(previous),
    )


def _note_unusable(made: Assembly, node: Node, step_id: str, unusable: dict[str, Any]) -> None:
    """A parameter the operator does not have is said, not dropped."""
    silent = {"repeat"} if node.capability == "mix.concat" and unusable.get("repeat") is False else set()
    if silent:
        made.assumptions.append(f"{step_id}: rows are drawn without repeats")
    rest = {name: value for name, value in unusable.items() if name not in silent and value is not None}
    if rest:
        made.missing.append(
            MissingCapability(
                name=node.capability,
                asked_for=", ".join(rest),
                offered=f"`{step_id}` without it",
                wanted=rest,
                quote=node.why,
                after=(step_id,),
            )
        )


def format_of(reading: Reading, path: str, default: str = "jsonl") -> str:
    """Format of an output: by the ending of its path, else by words such as "as parquet"."""
    suffix = next((kind for ending, kind in _EXTENSIONS.items() if path.endswith(ending)), "")
    if suffix in {"jsonl", "json", "parquet", "csv"}:
        return suffix
    found = _FORMAT_WORDS.search(reading.request.masked)
    return (found["format"] or found["alone"] or found["as_format"] or found["after"]) if found else default


def _outputs(reading: Reading, nodes: list[Node], made: Assembly, head: str) -> None:
    workflow = made.workflow
    wish = reading.training
    target = next((s for s in reading.sources if s.purpose == "output"), None)
    folder_said = target is not None and (target.name.endswith("/") or "." not in PurePosixPath(target.name).name)
    kind = format_of(reading, target.name if target else "")
    stem = identifier(workflow["name"].split("-", 1)[-1], set())
    path = (
        f"{target.name.rstrip('/')}/{stem}.{kind}"
        if target and folder_said
        else target.name
        if target
        else f"out/{stem}.{kind}"
    )
    if any(entry["path"] == path for entry in workflow["inputs"].values()):
        path = f"out/{stem}_clean.{kind}"
        made.assumptions.append(f"the input is not overwritten; the result goes to {path}")
    made.new_path = path
    if "read_only" in reading.prohibitions:
        workflow["outputs"] = {}
        return
    if (wish and wish.paradigm == "mix" and not is_method_available(wish)) or (wish and not is_method_available(wish)):
        phases = missing_methods(reading, wish, reading.request.quote(wish.start, wish.start + 1))
        made.missing += [phase.model_copy(update={"after": phase.after or (head,)}) for phase in phases]
        wish = None
    if (
        wish
        and wish.stage == "sft"
        and not any(n.capability in {"format.chat", "format.alpaca", "format.preference"} for n in nodes)
    ):
        head = _formatted(reading, made, head)
    registered = bool(wish) or any(s["operator"].startswith("format.") for s in workflow["steps"])
    entry: dict[str, Any] = {"from": head, "path": path, "format": kind, "card": True}
    if registered and kind in {"jsonl", "json", "parquet", "csv"}:
        entry["llamafactory"] = _registration(made, stem, ranked=wish is not None and wish.stage in {"dpo", "rm"})
    split = next((s for s in workflow["steps"] if s["operator"] == "split"), None)
    workflow["outputs"] = _sides(made, split, head, entry, path, kind) if split else {"clean": entry}
    if wish:
        _train(reading, made, head, path)


def _formatted(reading: Reading, made: Assembly, head: str) -> str:
    """Add `format.chat` when the inspected columns call for it."""
    facts = reading.facts
    if facts is None or not facts.columns or not installed("format.chat"):
        return head
    params = chat_params(reading)
    if not ({"messages"} <= set(params) or {"user", "assistant"} <= set(params)):
        return head
    taken = set(made.workflow["inputs"]) | {s["id"] for s in made.workflow["steps"]}
    step_id = identifier("chat", taken)
    made.workflow["steps"].append(
        {
            "id": step_id,
            "operator": "format.chat",
            "needs": [head],
            "params": params,
            "why": "training reads conversations",
        }
    )
    made.why[step_id] = "training reads conversations"
    return step_id


def _registration(made: Assembly, stem: str, ranked: bool) -> dict[str, Any]:
    steps = made.workflow["steps"]
    formats = [s["operator"] for s in steps if s["operator"].startswith("format.")]
    if "format.preference" in formats or ranked:
        return {"name": stem, "formatting": "alpaca", "ranking": True}
    chat = "format.chat" in formats or (
        not formats and "alpaca" not in stem and any("messages" in str(s.get("params", {})) for s in steps)
    )
    return {"name": stem, "formatting": "sharegpt" if chat else "alpaca"}


def _sides(
    made: Assembly, split: dict[str, Any], head: str, entry: dict[str, Any], path: str, kind: str
) -> dict[str, Any]:
    """One output per side of a split, each behind a condition on the split column."""
    params = split["params"]
    names = params.get("names") or (["train", "val"] if len(params["ratios"]) == 2 else ["train", "val", "test"])
    column = params.get("column", "split")
    outputs: dict[str, Any] = {}
    base = path.removesuffix(f".{kind}")
    for name in names:
        taken = set(made.workflow["inputs"]) | {s["id"] for s in made.workflow["steps"]}
        step_id = identifier(f"only_{name}", taken)
        made.workflow["steps"].append(
            {
                "id": step_id,
                "operator": "filter.expr",
                "needs": [head],
                "params": {"expr": f'{column} == "{name}"'},
                "why": f"the {name} side of the split",
            }
        )
        outputs[name] = {**entry, "from": step_id, "path": f"{base}_{name}.{kind}"}
        if "llamafactory" in entry:
            outputs[name]["llamafactory"] = {**entry["llamafactory"], "name": f"{entry['llamafactory']['name']}_{name}"}
    return outputs


def _train(reading: Reading, made: Assembly, head: str, path: str) -> None:
    workflow, wish = made.workflow, reading.training
    if wish is None:
        return
    dataset = next(iter(workflow["outputs"]))
    target = (
        selection_target(reading, made, head, path) if wish.paradigm == "select" and wish.method == "less" else None
    )
    block, notes = train_block(reading, wish, dataset, target)
    made.assumptions += notes
    if "val" in workflow["outputs"]:
        block["eval_dataset"] = "val"
    workflow["train"] = block
