"""Reading and writing workflow files: YAML is data, never code, and every value knows its line.

The round-trip loader keeps comments and key order so that edits make small diffs. Tags (`!!python/...`),
duplicate keys, keys that are not plain values, oversized or very deep files, alias bombs and values that contain
themselves are refused with a code. Cost: one pass of the loader, and one of the parser when the text has aliases.
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedOrderedMap, CommentedSeq, CommentedSet, TaggedScalar
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent
from ruamel.yaml.scalarbool import ScalarBoolean

from datamill.errors import Issue, PlanError

MAX_BYTES = 1_000_000
MAX_NODES = 50_000
MAX_DEPTH = 60
STANDARD_TAGS = "tag:yaml.org,2002:"
PLAIN_TAGS = {f"{STANDARD_TAGS}{name}" for name in ("str", "int", "float", "bool", "null", "seq", "map", "timestamp")}


@dataclass(frozen=True)
class YamlDocument:
    """A parsed workflow file.

    Attributes:
        data: plain Python values, safe to validate.
        tree: the round-trip tree with comments and line numbers.
        file: name for messages.
    """

    data: Mapping[str, Any]
    tree: CommentedMap
    file: str

    def line(self, path: Sequence[str | int]) -> int | None:
        """1-based line of the deepest part of `path` that exists."""
        node: Any = self.tree
        found = 1
        for part in path:
            found = _line_in(node, part) or found
            node = _child(node, part)
            if node is None:
                break
        return found


def _line_in(node: Any, part: str | int) -> int | None:
    try:
        if isinstance(node, CommentedMap) and part in node:
            return int(node.lc.key(part)[0]) + 1
        if isinstance(node, CommentedSeq) and isinstance(part, int) and part < len(node):
            return int(node.lc.item(part)[0]) + 1
    except (AttributeError, KeyError, TypeError):  # nodes made by code carry no position
        return None
    return None


def _child(node: Any, part: str | int) -> Any:
    if isinstance(node, Mapping):
        return node.get(part)
    if isinstance(node, Sequence) and not isinstance(node, str) and isinstance(part, int) and part < len(node):
        return node[part]
    return None


def parse(text: str, file: str = "workflow") -> YamlDocument:
    """Parse YAML text into plain data with line numbers.

    Raises:
        PlanError: `DM-PLAN-001` not YAML, `DM-PLAN-002` unsafe tag, `DM-PLAN-003` too large or a reference bomb,
            `DM-PLAN-004` not a mapping.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise PlanError([Issue("DM-PLAN-003", f"a workflow file has at most {MAX_BYTES:,} bytes", file=file)])
    loader = YAML(typ="rt")
    loader.allow_duplicate_keys = False
    try:
        _refuse_self_reference(text, file)
        tree = loader.load(text)
    except RecursionError as error:
        raise PlanError([Issue("DM-PLAN-003", f"nested more than {MAX_DEPTH} levels deep", file=file)]) from error
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        what = str(error.problem or error).split("\n")[0]
        raise PlanError([Issue("DM-PLAN-001", f"not valid YAML: {what}", file=file, line=line)]) from error
    except (YAMLError, ValueError) as error:
        raise PlanError([Issue("DM-PLAN-001", f"not valid YAML: {error}", file=file)]) from error
    if not isinstance(tree, CommentedMap):
        raise PlanError([Issue("DM-PLAN-004", "a workflow file is a mapping with `version: 1`", file=file, line=1)])
    counter = _Counter(file)
    return YamlDocument(counter.plain(tree, 1), tree, file)


def _refuse_self_reference(text: str, file: str) -> None:
    """Raise `DM-PLAN-025` for an alias inside the value that its anchor names; the loader would make it null."""
    if "&" not in text or "*" not in text:
        return
    opened: list[str | None] = []  # anchors of the lists and mappings around the event, outermost first
    inside: dict[str, bool] = {}  # newest use of each anchor: whether its value is still open
    for event in YAML(typ="rt").parse(text):
        anchor = getattr(event, "anchor", None)
        if isinstance(event, AliasEvent) and inside.get(str(anchor)):
            message = f"the value that `&{anchor}` names contains itself: `*{anchor}` stands inside it"
            fix = f"write out what `*{anchor}` is to stand for, or move `&{anchor}` to the value you mean"
            line = event.start_mark.line + 1
            raise PlanError([Issue("DM-PLAN-025", message, file=file, line=line, fix=fix)])
        if isinstance(event, CollectionStartEvent):
            opened.append(anchor)
        elif isinstance(event, CollectionEndEvent) and (closed := opened.pop()) is not None:
            inside[closed] = False
        if anchor is not None and not isinstance(event, AliasEvent):
            inside[str(anchor)] = isinstance(event, CollectionStartEvent)


class _Counter:
    """Turns the round-trip tree into plain values while counting nodes, so that aliases cannot explode."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.nodes = 0

    def plain(self, node: Any, line: int, depth: int = 0) -> Any:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise self._refusal("DM-PLAN-003", f"more than {MAX_NODES:,} values (aliases?)", line)
        if depth > MAX_DEPTH:
            raise self._refusal("DM-PLAN-003", f"nested more than {MAX_DEPTH} levels deep", line)
        self._refuse_tag(node, line)
        if isinstance(node, CommentedMap):
            lines = {key: _line_in(node, key) or line for key in node}
            return {self._key(k, lines[k]): self.plain(v, lines[k], depth + 1) for k, v in node.items()}
        if isinstance(node, CommentedSeq):
            return [self.plain(value, _line_in(node, at) or line, depth + 1) for at, value in enumerate(node)]
        return self._scalar(node, line)

    def _key(self, key: Any, line: int) -> str:
        if isinstance(key, str | int | float | bool):
            return str(key)
        raise self._refusal("DM-PLAN-001", "a key is a plain word, not a list, a mapping or null", line)

    def _refuse_tag(self, node: Any, line: int) -> None:
        tag = getattr(node, "tag", None)
        value = getattr(tag, "value", None) or (str(tag) if isinstance(node, TaggedScalar) else None)
        for kind, name in ((bytes, "!!binary"), (CommentedSet, "!!set"), (CommentedOrderedMap, "!!omap")):
            value = name if isinstance(node, kind) else value
        if value and value not in PLAIN_TAGS:
            message = f"the tag `{value}` is not allowed: a workflow file is data, not code"
            raise self._refusal("DM-PLAN-002", message, line, "remove the tag")

    def _scalar(self, node: Any, line: int) -> Any:
        value = node.value if isinstance(node, TaggedScalar) else node
        if isinstance(value, ScalarBoolean):
            return bool(value)
        for kind in (bool, int, float):
            if isinstance(value, kind):
                return kind(value)
        if value is None:
            return None
        text = str(value)
        if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
            raise self._refusal("DM-PLAN-001", "a text holds half of a surrogate pair", line)
        return text

    def _refusal(self, code: str, message: str, line: int, fix: str | None = None) -> PlanError:
        return PlanError([Issue(code, message, file=self.file, line=line, fix=fix)])


def load(path: Path) -> YamlDocument:
    """Parse the workflow file at `path`.

    Raises:
        PlanError: `DM-PLAN-005` when it cannot be read, and the codes of `parse`.
    """
    try:
        return parse(path.read_text(encoding="utf-8-sig"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError([Issue("DM-PLAN-005", f"cannot read the workflow: {error}", file=str(path))]) from error


def dump(data: Mapping[str, Any]) -> str:
    """YAML text of plain data (or of a round-trip tree), keys in the order given."""
    writer = YAML(typ="rt")
    writer.default_flow_style = False
    writer.width = 110
    writer.indent(mapping=2, sequence=4, offset=2)
    sink = io.StringIO()
    writer.dump(data, sink)
    return sink.getvalue()
