"""Builders for deduplication and decontamination: keys, thresholds, shingles, older sets and evaluation sets."""

import re
from dataclasses import replace
from typing import Any

from datamill.agents.inspection import Inspection
from datamill.agents.rules.intents import Wanted
from datamill.agents.rules.nodes import Builder, Node, node
from datamill.agents.rules.reading import Reading

_KEEP_RULES = (
    ("first", (r"(?:keep\w*|(?:hang|hold)(?:ing)? on to|prefer\w*|retain\w*|leav\w*|mant\w+|fique\w*|fica\w*|"
        r"conserv\w*|qued\w+|deix\w+|deja\w*|guard\w*)\s+(?:only |"
         r"just |com |con )?(?:the |a |o |la |el )?(?:very )?(?:first|oldest|earliest|primeir[oa]|"
         r"primer[oa]?|mais antig\w+|mas antigu\w+)|保留(?:第一|首|最早|最先)")),
    ("longest", (r"(?:keep\w*|(?:hang|hold)(?:ing)? on to|prefer\w*|favou?r\w*|stick with|retain\w*|leav\w*|with |"
        r"mant\w+|fique\w*|conserv\w*|qued\w+|deix\w+|deja\w*|guard\w*)\s+(?:[\w]+ "
         r"){0,4}(?:longest|longer|mais long[oa]|maior|mas larg[oa])|(?:保)?留(?:下)?最长|最长的(?:那条)?(?:保)?留")),
)  # fmt: skip
_BEST = re.compile(
    r"(?:keep\w*|mant\w+|fique\w*|conserv\w*|qued\w+)\s+(?:the |a |o |la |el |com |con )*(?:one |"
    r"row |copy |version )?(?:with (?:the )?)?(?:best|highest|top|higher|maior|melhor|mejor|"
    r"mayor)[- ](?:scor\w+ )?(?:one |row )?(?:by |por )?(?P<col>[a-z_]\w*)|"
    r"保留(?P<han>[a-z_]\w*)?(?:最高|最好|得分最高|分数最高)"
)
_UNIT = (
    ("chars", r"char(?:acter)?s?|caracter\w*|字符|按字|字(?=\s?\d|级|粒度)"),
    ("words", r"words?|palavras?|palabras?|单词|按词|词(?=\s?\d|级)"),
)


def keep_rule(reading: Reading) -> str | None:
    """`first`, `longest` or `best:<column>` when the request says which duplicate stays."""
    text = reading.request.masked
    found = next((name for name, pattern in _KEEP_RULES if re.search(pattern, text)), None)
    if found is None and not any(w.capability in {"longest", "topk"} for w in reading.mentions):
        found = "longest" if re.search(r"\blongest\b(?! \d)|\bmais longa?\b|\bmas larg[oa]\b|最长", text) else None
    if found:
        return found
    best = _BEST.search(text)
    if not best:
        return None
    named = [name for name, at in reading.columns if best.start() <= at <= best.end() + 20]
    word = best["col"] or best["han"] or "score"
    return f"best:{named[0] if named else word}"


def threshold_said(reading: Reading) -> float | None:
    """Similarity threshold as written (percentages as shares), also when out of range."""
    quantity = reading.similarity
    if quantity is None:
        return None
    return quantity.share if quantity.unit == "percent" else float(quantity.value)


def _loose_threshold(reading: Reading, wanted: Wanted) -> float | None:
    """`near-dedup at 0.9`, `95 % similar`: a bare share near the words."""
    start, end = reading.stretch(wanted)
    for quantity in reading.free(start, end):
        if quantity.unit == "" and 0 < quantity.value < 1:
            return float(reading.take(quantity).value)
        near = reading.request.masked[quantity.end : quantity.end + 24]
        if quantity.unit == "percent" and re.match(
            r"\s*(?:or more |de )?(?:similar|igual|identical|alike|parecid|semelhan|相似|以上相似)", near
        ):
            return reading.take(quantity).share
    return None


def _shingles(reading: Reading) -> dict[str, Any]:
    params: dict[str, Any] = {}
    gram = reading.gram()
    if gram is None or (gram.value >= 8 and any(w.capability == "decon.ngram" for w in reading.mentions)):
        return params
    params["ngram"] = reading.take(gram).value
    around = reading.request.masked[max(0, gram.start - 16) : gram.end + 16]
    for name, pattern in _UNIT:
        if re.search(pattern, around):
            params["unit"] = name
    return params


def build_minhash(reading: Reading, wanted: Wanted) -> list[Node]:
    """`dedup.minhash` with everything said about it; a cosine speaks of embeddings."""
    if re.search(r"cosine|cosseno|coseno|余弦|embedding", reading.request.masked):
        return [replace(made, capability="dedup.semantic") for made in build_semantic(reading, wanted)]
    said = threshold_said(reading)
    if reading.similarity:
        reading.take(reading.similarity)
    threshold = said if said is not None else _loose_threshold(reading, wanted)
    params: dict[str, Any] = {"column": (reading.columns_near(wanted) or reading.text() or ("text",))[0]}
    if threshold is not None and 0 < threshold <= 1:
        params["threshold"] = threshold
    params |= _shingles(reading)
    older = next((s.name for s in reading.sources if s.purpose == "against" and s.is_path), None)
    if older and not any(w.capability.startswith("decon") for w in reading.mentions):
        params["against"] = older
    banding = re.search(r"(\d+)\s*(?:bands?|bandas?)\D{1,12}(\d+)\s*(?:rows?|linhas?|filas?)", reading.request.masked)
    if banding:
        params |= {"bands": int(banding.group(1)), "rows": int(banding.group(2))}
        for quantity in reading.free(banding.start(), banding.end()):
            reading.take(quantity)
    keep = keep_rule(reading)
    if keep:
        params["keep"] = keep
    if re.search(
        r"(?:drop|remove|delete) (?:all|both|every) (?:copies|members|of them)|remov\w+ todas as copias|全部删掉",
        reading.request.masked,
    ):
        params["action"] = "drop_all"
    built = node(reading, wanted, params)
    if re.search(
        r"copies of|copias de|seeds?\b|semillas|sementes|种子任务",
        reading.request.masked[wanted.start : wanted.end + 16],
    ):
        built.follows = (
            "synth.evol_instruct",
            "synth.self_instruct",
            "augment.paraphrase",
            "rewrite.llm",
            "llm.generate",
        )
    return [built]


def build_exact(reading: Reading, wanted: Wanted) -> list[Node]:
    """`dedup.exact` on the named key columns."""
    columns = reading.columns_near(wanted) or reading.text()
    params: dict[str, Any] = {"columns": list(columns) or None, "keep": keep_rule(reading)}
    if re.search(
        (
            r"case[- ]?insensitive\w*|ignor\w+ (?:the )?case|ignorando maiuscul\w*|sin distinguir "
            r"mayuscul\w*|不区分大小写|忽略大小写"
        ),
        reading.request.masked,
    ):
        params["casefold"] = True
    return [node(reading, wanted, params)]


def build_semantic(reading: Reading, wanted: Wanted) -> list[Node]:
    """`dedup.semantic`: the greatest similarity allowed."""
    start, end = reading.stretch(wanted)
    quantity = reading.similarity or next(
        (q for q in reading.free(start, end) if (q.unit == "" and 0 < q.value <= 1) or q.unit == "percent"), None
    )
    if quantity is None:
        quantity = next((q for q in reading.free(wanted.start, wanted.end) if 0 < q.value <= 1), None)
    params = {
        "max_similarity": reading.take(quantity).share if quantity else None,
        "columns": list(reading.columns_near(wanted)) or None,
    }
    return [node(reading, wanted, params)]


def build_paragraph(reading: Reading, wanted: Wanted) -> list[Node]:
    """`dedup.paragraph`."""
    return [node(reading, wanted, {"keep": keep_rule(reading)})]


def benchmark_paths(inspection: Inspection) -> list[str]:
    """Evaluation sets attached to a request; development sets, which selection may aim at, are left out."""
    held = re.compile(r"(?:^|[/_.-])(?:dev|val|valid\w*|target)(?:[/_.-]|$)")
    return [path for name, path in sorted(inspection.evaluation_sets.items()) if not held.search(name.lower())]


def build_decontamination(reading: Reading, wanted: Wanted) -> list[Node]:
    """`decon.ngram` against the evaluation sets named, else against those the project knows."""
    against = [
        (s.name if s.is_path else s.key, s.benchmark)
        for s in reading.sources
        if s.purpose in {"eval", "against"} or (s.benchmark and s.purpose != "target")
    ]
    names = list(dict.fromkeys(key if ":" in key or not benchmark else f"{key}:test" for key, benchmark in against))
    if not names and reading.inspection:
        names = benchmark_paths(reading.inspection)
    gram = reading.gram()
    share = reading.after_word(
        r"(?:more than|over|above|at least|mais de|mas de|超过)(?= \d+(?:\.\d+)? ?(?:%|percent))", 3
    )
    params: dict[str, Any] = {
        "columns": list(
            reading.columns_near(wanted)
            if any(reading.stretch(wanted)[0] <= at < reading.stretch(wanted)[1] for _, at in reading.columns)
            else reading.text()
        )
        or None,
        "against": names or None,
        "n": reading.take(gram).value if gram else None,
        "min_overlap": reading.take(share).share if share and share.unit == "percent" else None,
    }
    if "keep_all_rows" in reading.prohibitions or re.search(
        (
            r"(?:only|just) (?:flag|report|tag|mark)|\bflag\b|\btag them\b|so (?:marc|sinaliz)\w*|solo "
            r"(?:marc|senal)\w*|只(?:标记|报告|打标)"
        ),
        reading.request.masked,
    ):
        params["action"] = "tag"
    return [node(reading, wanted, params)]


BUILDERS: dict[str, Builder] = {
    "dedup.minhash": build_minhash,
    "dedup.exact": build_exact,
    "dedup.semantic": build_semantic,
    "dedup.paragraph": build_paragraph,
    "decon.ngram": build_decontamination,
}
