"""What the rules planner can ask for: catalogue ids, default place in a plan, and what is offered when one is absent.

The ids are those of the operator catalogue. Whether an id is installed is asked of the registry at planning time, so
an operator that appears later is used without a change here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from datamill.operators.registry import catalogue


@dataclass(frozen=True, slots=True)
class Capability:
    """One thing a request may ask for.

    Attributes:
        id: catalogue id.
        phase: default place; cheap and certain first, GPU and LLM later, formats and reports last.
        label: the wish in one or two words.
        removes_rows: whether it takes rows out.
        changes_rows: whether it changes text.
        offered: ids that come closest when it is not installed.
    """

    id: str
    phase: int
    label: str
    removes_rows: bool = False
    changes_rows: bool = False
    offered: tuple[str, ...] = ()


_TABLE = (
    Capability("fetch.http", 4, "download", offered=("read.jsonl",)),
    Capability("crawl.site", 5, "crawl", offered=("read.jsonl",)),
    Capability("parse.pdf", 6, "parse pdf", changes_rows=True, offered=("read.txt",)),
    Capability("parse.html", 6, "parse html", changes_rows=True, offered=("read.txt",)),
    Capability("parse.office", 6, "parse office files", changes_rows=True, offered=("read.csv",)),
    Capability("mix.concat", 8, "mix"),
    Capability("columns.rename", 10, "rename columns", changes_rows=True),
    Capability("columns.cast", 11, "cast columns", changes_rows=True),
    Capability("columns.map", 12, "map columns", changes_rows=True),
    Capability("columns.select", 13, "select columns", changes_rows=True),
    Capability("text.fix_unicode", 15, "fix text", changes_rows=True),
    Capability("text.normalize", 16, "normalise text", changes_rows=True, offered=("text.fix_unicode",)),
    Capability(
        "text.strip_boilerplate", 17, "strip boilerplate", changes_rows=True, offered=("filter.gopher_quality",)
    ),
    Capability("text.chunk", 18, "chunk", changes_rows=True),
    Capability("filter.refusal", 25, "remove refusals", removes_rows=True, offered=("filter.expr",)),
    Capability("filter.expr", 26, "filter rows", removes_rows=True),
    Capability("filter.length", 30, "filter by length", removes_rows=True),
    Capability("filter.url", 31, "filter urls", removes_rows=True, offered=("filter.expr",)),
    Capability("lang.detect", 35, "detect language"),
    Capability("filter.lang", 36, "filter language", removes_rows=True),
    Capability("pii.redact", 40, "redact personal data", changes_rows=True),
    Capability("filter.c4", 43, "c4 rules", removes_rows=True, offered=("filter.gopher_quality",)),
    Capability("filter.gopher_quality", 44, "quality rules", removes_rows=True),
    Capability(
        "filter.gopher_repetition", 45, "repetition rules", removes_rows=True, offered=("filter.gopher_quality",)
    ),
    Capability("filter.fineweb", 46, "fineweb rules", removes_rows=True, offered=("filter.gopher_quality",)),
    Capability("filter.flagged_words", 47, "flagged words", removes_rows=True, offered=("filter.expr",)),
    Capability("dedup.exact", 50, "exact dedup", removes_rows=True),
    Capability("dedup.paragraph", 51, "paragraph dedup", changes_rows=True, offered=("dedup.exact", "dedup.minhash")),
    Capability("dedup.minhash", 52, "near dedup", removes_rows=True),
    Capability("decon.ngram", 55, "decontaminate", removes_rows=True),
    Capability("decon.embed", 56, "decontaminate by meaning", removes_rows=True, offered=("decon.ngram",)),
    Capability("math.verify", 58, "verify answers", removes_rows=True),
    Capability("code.execute", 59, "run code", removes_rows=True, offered=("filter.expr",)),
    Capability("filter.perplexity", 60, "perplexity filter", removes_rows=True, offered=("filter.gopher_quality",)),
    Capability("score.classifier", 61, "quality or toxicity classifier", offered=("filter.gopher_quality",)),
    Capability("embed.text", 62, "embed", offered=("dedup.minhash",)),
    Capability("dedup.semantic", 63, "semantic dedup", removes_rows=True, offered=("dedup.minhash",)),
    Capability("score.ifd", 64, "ifd score", offered=("filter.score",)),
    Capability("score.deita", 64, "deita score", offered=("filter.score",)),
    Capability("score.reward", 64, "reward score", offered=("filter.score",)),
    Capability("annotate.llm", 65, "tag rows", offered=("columns.map",)),
    Capability("annotate.human", 66, "human annotation", offered=("sample.random",)),
    Capability("select.diverse", 67, "diverse selection", removes_rows=True, offered=("sample.stratified",)),
    Capability("synth.self_instruct", 68, "self-instruct", offered=("augment.paraphrase",)),
    Capability("synth.evol_instruct", 68, "evol-instruct", offered=("augment.paraphrase",)),
    Capability("synth.qa_from_doc", 68, "questions from documents", offered=("augment.paraphrase",)),
    Capability("synth.backtranslate", 68, "instruction back-translation", offered=("augment.paraphrase",)),
    Capability("augment.paraphrase", 69, "paraphrase"),
    Capability("rewrite.llm", 70, "translate", changes_rows=True, offered=("filter.lang",)),
    Capability("llm.generate", 71, "generate answers", offered=("augment.paraphrase",)),
    Capability("math.solve_vote", 72, "solve and vote", offered=("math.verify",)),
    Capability("score.llm_judge", 75, "llm judge", offered=("filter.gopher_quality", "filter.score")),
    Capability("filter.score", 77, "filter by score", removes_rows=True),
    Capability("filter.topk", 78, "keep the best", removes_rows=True),
    Capability("sample.random", 80, "sample", removes_rows=True),
    Capability("sample.stratified", 81, "stratified sample", removes_rows=True),
    Capability("sort", 82, "sort rows", offered=("filter.topk",)),
    Capability("shuffle", 83, "shuffle rows", offered=("sample.random",)),
    Capability("cluster", 63, "cluster rows", offered=("dedup.minhash",)),
    Capability("split", 85, "split"),
    Capability("format.preference", 90, "preference pairs", changes_rows=True),
    Capability("format.alpaca", 91, "alpaca format", changes_rows=True),
    Capability("format.chat", 92, "chat format", changes_rows=True),
    Capability("format.pt", 93, "pretraining format", changes_rows=True),
    Capability("report.stats", 95, "statistics"),
)
CAPABILITIES: Mapping[str, Capability] = {capability.id: capability for capability in _TABLE}


@cache
def installed(operator_id: str) -> bool:
    """Whether the registry has an operator of that id."""
    return operator_id in catalogue()


def accepts(operator_id: str, parameter: str) -> bool:
    """Whether an installed operator has a parameter of that name."""
    return installed(operator_id) and parameter in catalogue()[operator_id].params.model_fields
