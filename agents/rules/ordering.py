"""Puts wished steps in order: phases, words of sequence, and explicit constraints; reports constraints that clash."""

from collections.abc import Sequence

from datamill.agents.rules.capabilities import CAPABILITIES
from datamill.agents.rules.nodes import Node

_COARSE = {
    "dedup": ("dedup.exact", "dedup.minhash", "dedup.semantic"),
    "sample": ("sample.random", "sample.stratified", "filter.topk"),
    "balance": ("sample.stratified",),
    "topk": ("filter.topk",),
    "clean": ("text.fix_unicode",),
    "filter.empty": ("filter.length",),
    "filter.lang_generic": ("lang.detect",),
    "annotate.difficulty": ("annotate.llm",),
}
_COSTLY = frozenset({"rewrite.llm", "llm.generate", "augment.paraphrase", "synth.evol_instruct", "synth.qa_from_doc"})
_SAMPLE_FIRST = 62
"""Phase of a sample when a language model follows: fewer rows, less money."""
_STAYS_LAST = frozenset({"format.chat", "format.alpaca", "format.preference", "format.pt"})


def ordered(
    nodes: Sequence[Node], pairs: Sequence[tuple[str, str, str]], by_words: bool
) -> tuple[list[Node], tuple[str, str] | None]:
    """Nodes in order, and the pair of capabilities that the request puts both ways round, if any.

    Args:
        nodes: wished steps.
        pairs: `(before, after, kind)` from the words of the request.
        by_words: whether the request speaks of a sequence, so that mention order is step order.
    """
    expanded, cycle = _consistent(pairs)
    for node in nodes:
        expanded |= {(before, node.capability) for before in node.follows}
    expanded |= _natural(nodes)
    key = {id(node): _rank(node, nodes, by_words) for node in nodes}
    rest, done = sorted(nodes, key=lambda node: key[id(node)]), []
    while rest:
        present = {node.capability for node in rest}
        free = next(
            (
                n
                for n in rest
                if not any(
                    after == n.capability and before in present and before != n.capability for before, after in expanded
                )
            ),
            rest[0],
        )
        rest.remove(free)
        done.append(free)
    return done, cycle


def _rank(node: Node, nodes: Sequence[Node], by_words: bool) -> tuple[float, float, int]:
    phase = CAPABILITIES[node.capability].phase
    if node.capability.startswith("sample.") or node.unmet.startswith("rank"):
        phase = _SAMPLE_FIRST if any(n.capability in _COSTLY for n in nodes) else phase
    if not by_words or node.capability in _STAYS_LAST:
        return (phase, node.position, phase) if not by_words else (1e6 + phase, node.position, phase)
    return (node.position, phase, phase)


def _natural(nodes: Sequence[Node]) -> set[tuple[str, str]]:
    """What cannot be otherwise: detection before its filter, parsing and mixing before all, judging after making."""
    present = {node.capability for node in nodes}
    pairs = {
        ("lang.detect", "filter.lang"),
        ("annotate.llm", "sample.stratified"),
        ("annotate.llm", "report.stats"),
        ("mix.concat", "split"),
        ("split", "format.chat"),
        ("score.llm_judge", "filter.topk"),
        ("score.ifd", "filter.topk"),
        ("score.reward", "filter.topk"),
    }
    makers = {
        "rewrite.llm",
        "llm.generate",
        "synth.evol_instruct",
        "synth.self_instruct",
        "synth.qa_from_doc",
    } & present
    pairs |= {(maker, later) for maker in makers for later in ("score.llm_judge", "dedup.semantic")}
    first = {"parse.pdf", "parse.html", "parse.office", "mix.concat", "fetch.http", "crawl.site"} & present
    pairs |= {(source, other) for source in first for other in present - first}
    return {(before, after) for before, after in pairs if before in present and after in present}


def _consistent(pairs: Sequence[tuple[str, str, str]]) -> tuple[set[tuple[str, str]], tuple[str, str] | None]:
    """Constraints between catalogue ids; a `first` that contradicts a `before` or `after` gives way and is reported."""
    strong = {(a, b) for a, b, kind in pairs if kind != "first"}
    cycle: tuple[str, str] | None = None
    kept = set(strong)
    for before, after, kind in pairs:
        if kind == "first":
            if (after, before) in strong:
                cycle = cycle or (before, after)
            else:
                kept.add((before, after))
    for before, after in strong:
        if (after, before) in strong:
            cycle = cycle or (before, after)
            kept.discard((after, before))
    expanded = {
        (a, b) for before, after in kept for a in _COARSE.get(before, (before,)) for b in _COARSE.get(after, (after,))
    }
    return expanded, cycle
