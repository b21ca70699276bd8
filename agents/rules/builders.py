"""From a reading to wished steps: mentions, conditions without operator words, and recipes, duplicates merged."""

import re
from collections.abc import Sequence

from datamill.agents.rules import steps_dedup, steps_filter, steps_model, steps_sample, steps_shape
from datamill.agents.rules.conditions import condition_nodes
from datamill.agents.rules.doubts import usual_settings
from datamill.agents.rules.intents import Wanted, only_this, resolve_dedup
from datamill.agents.rules.mixtures import claim_shares, domain_weights
from datamill.agents.rules.nodes import Builder, Node
from datamill.agents.rules.reading import Reading
from datamill.agents.rules.recipes import Match, matching_recipe, recipe_nodes
from datamill.agents.rules.vocabulary import DROP

BUILDERS: dict[str, Builder] = {
    **dict.fromkeys(("shuffle", "sort", "cluster"), steps_shape.build_plain),
    **steps_filter.BUILDERS,
    **steps_dedup.BUILDERS,
    **steps_sample.BUILDERS,
    **steps_shape.BUILDERS,
    **steps_model.BUILDERS,
}
_BY_CONDITION = frozenset({"sample", "balance", "pii.redact", "filter.lang_generic", "clean", "mix.concat"})
_TAGGING = {"decon.ngram": ("action", "tag"), "math.verify": ("on_wrong", "tag")}
_FORBIDDEN_IDS = {
    "dedup": ("dedup.exact", "dedup.minhash"),
    "sample": ("sample.random", "sample.stratified"),
    "balance": ("sample.stratified",),
    "topk": ("filter.topk",),
    "filter.empty": ("filter.length",),
    "filter.lang_generic": ("lang.detect", "filter.lang"),
    "clean": (),
    "annotate.difficulty": ("annotate.llm",),
}
_FILTERS = re.compile(r"filter\w*|过滤|filtr\w*")


def wished(reading: Reading) -> tuple[tuple[Wanted, ...], Match | None]:
    """Operator words with `dedup` resolved, and the recipe that applies."""
    found = reading.mentions
    general = [w for w in found if w.capability == "dedup" and not w.forbidden]
    keyed = any(_names_key(reading, w) for w in general)
    found = resolve_dedup(reading.request, found, keyed, reading.similarity is not None)
    asked = {
        w.capability
        for w in found
        if not w.forbidden and w.capability not in {"clean", "mix.concat", "format.chat", "report.stats"}
    }
    usual = usual_settings(reading)
    match = None
    if len(asked) <= 2 and not any(only_this(reading.request, w) for w in found if not w.forbidden):
        match = matching_recipe(reading, usual)
    if "read_only" in reading.prohibitions:
        match = None
    return found, match


def _names_key(reading: Reading, wanted: Wanted) -> bool:
    """`dedupe by url`, `duplicated instructions`: a key was named for the generic word."""
    columns = [at for _, at in reading.columns]
    start, end = reading.stretch(wanted)
    after = reading.request.masked[wanted.end : wanted.end + 48]
    by = re.match(r"\s*(?:[\w\ue000-\ue004]+ ){0,3}(?:by|on|por|pel[oa]|segun|based)\b", after) or re.search(
        r"(?:按|根据)[^,。]{1,14}$", reading.request.masked[max(0, wanted.start - 16) : wanted.start]
    )
    named = any(start <= at < end for at in columns) and by is not None
    noun = re.match(
        r"\s*(?:instruc|prompt|question|answer|output|pergunta|pregunta|resposta|respuesta|urls?\b|titles?\b|ids?\b)",
        after,
    ) or re.match(r"(?:的)?(?:指令|问题|题目|提示)", after)
    ahead = re.search(
        r"(?:instruc\w+|prompts?|questions?|answers?|perguntas?|preguntas?|respostas?|respuestas?|urls?|titulos?)\s+"
        r"(?:(?:that|which) (?:are|is) |que (?:se |estan |estao |sao |son )?)?$|(?:指令|问题|题目|提示|回答)(?:完全)?$",
        reading.request.masked[max(0, wanted.start - 40) : wanted.start],
    )
    return bool(named or ((noun or ahead) and wanted.defect))


def build_nodes(reading: Reading, found: Sequence[Wanted], match: Match | None) -> list[Node]:
    """All wished steps, unordered, one per capability, none forbidden."""
    banned = set(forbidden_ids(reading, found))
    nodes: list[Node] = []
    if any(w.capability == "mix.concat" and not w.forbidden for w in found):
        claim_shares(reading)
    for wanted in found:
        chosen = (
            reading.training is not None
            and reading.training.paradigm == "select"
            and "ratio" in reading.training.settings
        )
        if wanted.capability == "topk" and chosen:
            continue
        if wanted.forbidden or wanted.capability in _BY_CONDITION or wanted.capability not in BUILDERS:
            continue
        nodes += BUILDERS[wanted.capability](reading, wanted)
    nodes += _parsed_files(reading, nodes)
    nodes += steps_filter.pii_nodes(reading)
    nodes += steps_filter.language_nodes(reading)
    nodes += _scope_nodes(reading)
    nodes += condition_nodes(reading)
    nodes += _after_paraphrase(steps_filter.length_nodes(reading), nodes)
    nodes += _pairs_to_train_on(reading, nodes)
    nodes += _mixing(reading, found)
    nodes += steps_sample.sampling_nodes(reading, tuple(found)) if _samples(reading) else []
    nodes += _similar_only(reading, found, nodes)
    nodes = _without_normalising(reading, merged(nodes))
    if match:
        present = {node.capability for node in nodes}
        nodes += [node for node in recipe_nodes(match, reading) if node.capability not in present]
    elif not nodes or _listed_alone(reading, found):
        nodes += [n for n in _cleaning(reading, found) if not any(k.capability == n.capability for k in nodes)]
    nodes = [node for node in nodes if node.capability not in banned]
    return _respecting(reading, nodes)


_PARSERS = {
    ".pdf": "parse.pdf",
    ".html": "parse.html",
    ".htm": "parse.html",
    ".docx": "parse.office",
    ".pptx": "parse.office",
}


def _parsed_files(reading: Reading, nodes: Sequence[Node]) -> list[Node]:
    """A file such as `book.pdf` must be parsed though nobody says so."""
    present = {node.capability for node in nodes}
    for source in reading.sources:
        parser = next((name for ending, name in _PARSERS.items() if source.name.lower().endswith(ending)), None)
        if parser and parser not in present and source.purpose == "input":
            return BUILDERS[parser](reading, Wanted(parser, source.start, source.end))
    return []


def _similar_only(reading: Reading, found: Sequence[Wanted], nodes: Sequence[Node]) -> list[Node]:
    """`drop variants closer than 0.95 cosine`: a similarity with a verb of dropping asks for near deduplication."""
    said = re.search(
        r"jaccard|cosine|cosseno|coseno|余弦|similarity|similaridade|similitud|相似度", reading.request.masked
    )
    taken = any(w.capability.startswith(("dedup", "decon", "synth.self")) for w in found)
    if said is None or taken or reading.similarity is None or any(n.capability.startswith("dedup") for n in nodes):
        return []
    if not re.search(DROP, _sentence(reading, said.start())):
        return []
    return steps_dedup.build_minhash(reading, Wanted("dedup.minhash", said.start(), said.end()))


def _pairs_to_train_on(reading: Reading, nodes: Sequence[Node]) -> list[Node]:
    """DPO and reward models read pairs: made from three named columns, or from those of the file."""
    wish = reading.training
    known = len(reading.columns) >= 3 or (reading.facts is not None and bool(reading.facts.columns))
    if (
        wish is None
        or wish.stage not in {"dpo", "rm"}
        or not known
        or any(n.capability == "format.preference" for n in nodes)
    ):
        return []
    return steps_shape.build_preference(reading, Wanted("format.preference", wish.start, wish.start + 1))


def _without_normalising(reading: Reading, nodes: list[Node]) -> list[Node]:
    """`13-gram overlap, lowercase first` is about the comparison, which `decon.ngram` always normalises."""
    compared = any(n.capability == "decon.ngram" for n in nodes)
    if not compared:
        return nodes
    near = r"gram|overlap|compar|match|重叠|sobrepos|solap"
    return [n for n in nodes if n.capability != "text.normalize" or not re.search(near, _sentence(reading, n.position))]


def _sentence(reading: Reading, position: int) -> str:
    piece = reading.request.sentence_at(position)
    return reading.request.masked[piece.start : piece.end]


def _samples(reading: Reading) -> bool:
    wish = reading.training
    if wish is not None and wish.paradigm == "select" and {"ratio", "n"} & set(wish.settings):
        sampled = [
            reading.request.masked[w.start : w.end] for w in reading.mentions if w.capability in {"sample", "balance"}
        ]
        return any(re.search(r"sampl|amostr|muestr|random|aleat|azar|抽|采", words) for words in sampled)
    return (
        wish is None
        or wish.paradigm in {"static", "reweight"}
        or any(w.capability in {"sample", "balance"} for w in reading.mentions)
    )


def _after_paraphrase(lengths: list[Node], nodes: list[Node]) -> list[Node]:
    """An upper bound beside "paraphrase" is about the paraphrases, so it is checked after them."""
    if any(n.capability == "augment.paraphrase" and "max_words" in n.params for n in nodes):
        for length in lengths:
            if length.params.get("max") is not None:
                length.follows = ("augment.paraphrase",)
    return lengths


def _scope_nodes(reading: Reading) -> list[Node]:
    """A part of the rows by language ("on the Portuguese part") needs the language known."""
    part = re.search(r"(?:part|portion|subset|parte|rows|部分)", reading.request.masked)
    if (
        not part
        or not reading.languages
        or not any(part.start() - at < 24 and at < part.start() + 24 for at, _ in reading.languages)
    ):
        return []
    at = reading.languages[0][0]
    return [Node("lang.detect", {"column": (reading.text() or ("text",))[0]}, at, reading.request.quote(at, at + 1))]


def _mixing(reading: Reading, found: Sequence[Wanted]) -> list[Node]:
    mention = next((w for w in found if w.capability == "mix.concat" and not w.forbidden), None)
    inputs = [s for s in reading.sources if s.purpose == "input"]
    weights = domain_weights(reading) if mention else {}
    if mention is None and len(inputs) < 2:
        return []
    at = mention.start if mention else inputs[1].start
    nodes = [Node("mix.concat", {"weights": weights} if weights else {}, at, reading.request.quote(at, at + 1))]
    tokens = next((q for q in reading.numbers if q.unit == "tokens" and q.value >= 10**5), None)
    if tokens and weights:
        nodes[0].params["total_tokens"] = tokens.value
        nodes.append(
            Node("report.stats", {"by": ["domain"]}, tokens.start, reading.request.quote(tokens.start, tokens.end))
        )
    rows = next((q for q in reading.free(units=("rows",)) if q.value >= 10 and not q.sign), None) if weights else None
    if rows:
        nodes[0].params["n"] = reading.take(rows).value
    if re.search(r"(?:no|without|sem|sin) repe\w+|don'?t repeat|不重复|无重复", reading.request.masked):
        nodes[0].params["repeat"] = False
    return nodes


def _listed_alone(reading: Reading, found: Sequence[Wanted]) -> bool:
    """`clean, dedup, format`: one item of a list, not the heading of what follows."""
    clean = next((w for w in found if w.capability == "clean" and not w.forbidden), None)
    if clean is None:
        return False
    clause = reading.request.clause_at(clean.start)
    words = reading.request.masked[clause.start : clause.end]
    return re.fullmatch(r"\s*(?:and |first |please )?[\w-]+(?: (?:it|up|the text))?\s*[,.;]\s*", words) is not None


def _cleaning(reading: Reading, found: Sequence[Wanted]) -> list[Node]:
    """`clean it` alone: repair the text, which loses nothing."""
    clean = next((w for w in found if w.capability == "clean" and not w.forbidden), None)
    return steps_filter.build_text(reading, Wanted("text.fix_unicode", clean.start, clean.end)) if clean else []


def merged(nodes: Sequence[Node]) -> list[Node]:
    """One node per capability and unmet wish; the first mention gives the place, later ones add parameters."""
    kept: list[Node] = []
    for node in nodes:
        same = next((k for k in kept if k.capability == node.capability and k.unmet == node.unmet), None)
        if same is None or (node.capability == "filter.length" and not _joinable(same, node)):
            kept.append(node)
            continue
        same.params = {**node.params, **same.params}
        same.position = min(same.position, node.position)
    return kept


def _joinable(first: Node, second: Node) -> bool:
    """Two length filters on the same columns; `not empty` yields to a real bound."""
    if first.params.get("columns") != second.params.get("columns"):
        return False
    trivial = {"unit": "chars", "min": 1}
    if all(first.params.get(key) == value for key, value in trivial.items()) and "min" in second.params:
        first.params = dict(second.params)
        return True
    return bool(first.params.get("unit") == second.params.get("unit"))


def _respecting(reading: Reading, nodes: list[Node]) -> list[Node]:
    """Leave out what the whole-plan prohibitions rule out."""
    if "read_only" in reading.prohibitions:
        return [n for n in nodes if n.capability == "report.stats"] or [
            Node("report.stats", {}, 0, reading.request.quote(0, 1))
        ]
    if "keep_all_rows" not in reading.prohibitions:
        return nodes
    from datamill.agents.rules.capabilities import CAPABILITIES

    kept = []
    for node in nodes:
        if node.capability in _TAGGING:
            name, value = _TAGGING[node.capability]
            node.params[name] = value
        elif CAPABILITIES[node.capability].removes_rows:
            reading.left_out.append(CAPABILITIES[node.capability].label)
            if not node.capability.startswith("dedup."):
                continue
            node.unmet, node.offered = (
                "mark duplicates instead of removing them",
                "report.stats counts them; no row goes",
            )
        kept.append(node)
    return kept


def forbidden_ids(reading: Reading, found: Sequence[Wanted]) -> tuple[str, ...]:
    """Operator ids the request rules out: negated words, `no filters`, and everything else after `only`."""
    asked = {w.capability for w in found if not w.forbidden}
    ids: list[str] = []
    for wanted in found:
        if wanted.forbidden and wanted.capability not in asked:
            ids += _FORBIDDEN_IDS.get(wanted.capability, (wanted.capability,))
    for match in _FILTERS.finditer(reading.request.masked):
        before = reading.request.masked[max(0, match.start() - 12) : match.start()]
        if re.search(
            r"\b(?:no|without|sem|sin|any)\s*(?:more |other |nenhum |ningun )?$|不要?$|别$|无需$|不用$", before
        ):
            ids += ["filter.length", "filter.lang", "filter.gopher_quality", "filter.expr", "filter.refusal"]
    if any(w.capability == "dedup.exact" and not w.forbidden and only_this(reading.request, w) for w in found):
        ids += ["dedup.minhash", "dedup.semantic"]
    return tuple(dict.fromkeys(ids))
