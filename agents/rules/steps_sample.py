"""Builders for sampling, groups, splitting and ranking."""

import re
from typing import Any

from datamill.agents.rules.columns import column_for
from datamill.agents.rules.intents import Wanted
from datamill.agents.rules.nodes import Builder, Node, node
from datamill.agents.rules.quantities import Quantity
from datamill.agents.rules.reading import Reading
from datamill.agents.rules.training_words import number_near

_SEED = r"\bseed|\bsemente|\bsemilla|随机种子|种子"


_GROUP_NOUNS: dict[str, str] = {
    "source": r"sources?|origem|fontes?|fuentes?|origen|来源",
    "domain": r"domains?|dominios?|领域",
    "lang": r"languages?|idiomas?|linguas?|lenguas?|语言|语种",
    "label": r"labels?|class(?:es)?|rotulos?|etiquetas?|标签|类别",
    "category": r"categor\w*|分类",
    "topic": r"topics?|topicos?|temas?|主题",
    "difficulty": r"difficult\w*|dificul\w*|难度",
}


def seed_of(reading: Reading) -> int | None:
    """The seed the request gives."""
    quantity = number_near(reading.request, list(reading.numbers), _SEED)
    if quantity is None or not isinstance(quantity.value, int):
        return None
    reading.take(quantity)
    return quantity.value


def group_column(reading: Reading, start: int, end: int) -> str | None:
    """The column that makes groups: named after `by`/`per`, or a noun of the field such as source."""
    text = reading.request.readable[start:end]
    match = re.search(
        (
            r"(?:stratif\w*|estratific\w*|balanc\w*|equilibr\w*)?\s*(?:\bby|\bper|\bfor each|\bevery|"
            r"\beach|\bof each|\bacross|\bover|\bon|\bpor|\bpel[oa]s?|\bcada|\bsegun|按|每(?:个|种|类)?)\s*(?:the |"
            r"o |a |"
            r"el |la |cada |coluna |columna |column |campo |field "
            r")*[\ue002\"'`]?(?P<word>[a-z_]\w*|[一-鿿]{2})"
        ),
        text,
    )
    nouns = "|".join(_GROUP_NOUNS.values())
    if match:
        at = start + match.start("word")
        named = next((name for name, position in reading.columns if position == at), None)
        if named:
            return named
        for column, pattern in _GROUP_NOUNS.items():
            if re.fullmatch(pattern, match["word"]) or re.match(pattern + "$", match["word"]):
                return _existing(reading, column, match["word"])
        if not re.fullmatch(
            r"\d+|row|sample|example|the|cada|linha|fila|section|sheet|doc\w*", match["word"]
        ) and not re.search(r"[一-鿿]", match["word"]):
            return reading.request.text[at : at + len(match["word"])]
    noun = re.search(rf"(?<![a-z])(?:{nouns})(?![a-z])", text)
    return (
        next(
            (_existing(reading, c, noun.group()) for c, p in _GROUP_NOUNS.items() if re.fullmatch(p, noun.group())),
            None,
        )
        if noun
        else None
    )


def _existing(reading: Reading, column: str, word: str) -> str:
    """A column of the file that matches the noun, else the only one named after it, else the usual name."""
    named = [name for name, _ in reading.columns]
    if reading.facts is None and len(named) == 1 and column in {"label", "category"}:
        return named[0]
    role = {"source": "source", "domain": "source", "lang": "language"}.get(column)
    if reading.facts:
        known = next((c.name for c in reading.facts.columns if role and c.role == role), None)
        if known:
            return known
        for name in reading.facts.names:
            if name.lower() in {column, word}:
                return name
    return column


def sampling_nodes(reading: Reading, found: tuple[Wanted, ...]) -> list[Node]:
    """One sampling step from all words about samples, groups and caps."""
    words = [w for w in found if w.capability in {"sample", "balance"} and not w.forbidden]
    if words and not any(w.capability == "sample" for w in words) and _belongs_to_split(reading, found):
        return []
    words = [w for w in words if not _counts_groups(reading, w, found)]
    balance = [w for w in words if w.capability == "balance"]
    seed = seed_of(reading)
    cap = _cap(reading, balance)
    if cap:
        reading.take(cap)
    size = _size(reading, words)
    if not words and size is None:
        return []
    at = words[0] if words else Wanted("sample", size.start if size else 0, size.end if size else 0)
    end = max(w.end for w in words) if words else at.end
    by = (
        group_column(reading, max(0, balance[0].start - 24), min(len(reading.request.text), balance[-1].end + 30))
        if balance
        else None
    )
    params: dict[str, Any] = {"seed": seed}
    if cap:
        params["max_per_group"] = cap.value
    elif size:
        params["fraction" if size.unit == "percent" else "n"] = size.share if size.unit == "percent" else size.value
    if balance:
        return [_stratified(reading, at, params, by, capped=cap is not None)]
    if len(params) == 1:
        return []
    built = node(reading, at, params, "sample.random")
    around = reading.request.masked[max(0, at.start - 20) : end + 20]
    if re.search(r"rarest|least frequent|mais rar\w+|mas rar\w+|最少见|最稀有", around):
        built = Node(
            "filter.topk", {"n": params.get("n"), "order": "lowest", "column": "frequency"}, at.start, built.why
        )
        built.unmet, built.offered = "rank rows by how rare they are", "a random sample of the same size"
    return [built]


def _counts_groups(reading: Reading, wanted: Wanted, found: tuple[Wanted, ...]) -> bool:
    """`counts per topic`, `stats by language`: groups of a report, not of a sample."""
    clause = reading.request.clause_at(wanted.start)
    counted = any(w.capability == "report.stats" and clause.start <= w.start < clause.end for w in found)
    grouped = re.match(r"per|each|every|por|cada|按|每", reading.request.masked[wanted.start : wanted.end])
    return wanted.capability == "balance" and counted and grouped is not None and _cap(reading, [wanted]) is None


def _stratified(reading: Reading, at: Wanted, params: dict[str, Any], by: str | None, capped: bool) -> Node:
    """Groups by the column named, else by source; without a size all rows, and a question about it."""
    source = reading.facts.column("source") if reading.facts else None
    text = reading.request.masked
    if not capped and re.search(r"\bbalanc|equilibr|均衡|平衡|equal", text) and "stratif" not in text:
        params["allocation"] = "equal"
    params["by"] = [by or source or "source"]
    if not {"n", "fraction", "max_per_group"} & set(params):
        params["fraction"] = 1.0
    built = node(reading, at, params, "sample.stratified")
    if re.search(r"over-?sampl|up-?sampl|sobremuestr|过采样", text):
        built.unmet = "repeat rows of small groups"
        built.offered = "sample.stratified with max_per_group, which takes from large groups only"
    return built


def _belongs_to_split(reading: Reading, found: tuple[Wanted, ...]) -> bool:
    """`split ..., stratified by label` stratifies the split; nothing is sampled."""
    splits = any(w.capability == "split" and not w.forbidden for w in found)
    stratified = re.search(r"stratif|estratific|分层", reading.request.masked) is not None
    return splits and stratified and not any(q.sign == "le" for q in reading.numbers)


def _size(reading: Reading, words: list[Wanted]) -> Quantity | None:
    sample = [w for w in words if w.capability == "sample"]
    if sample:
        clause = reading.request.clause_at(sample[0].start)
        near = reading.free(clause.start, clause.end, ("rows", "percent", ""))
        near = [q for q in near if (q.unit or q.value >= 2) and not q.sign.startswith("l")]
        inside = [q for q in near if q.unit in {"rows", "percent"}] or near
        if inside:
            return reading.take(inside[0])
        later = reading.free(clause.end, clause.end + 40, ("rows",))
        return reading.take(later[0]) if later else None
    if words:
        clause = reading.request.clause_at(words[0].start)
        return next(
            (
                reading.take(q)
                for q in reading.free(clause.start, clause.end, ("rows",))
                if not q.sign and not _each(reading, q)
            ),
            None,
        )
    for quantity in reading.free(units=("rows",)):
        if quantity.value >= 10 and not quantity.sign and _is_a_size(reading, quantity):
            return reading.take(quantity)
    return None


def _each(reading: Reading, quantity: Quantity) -> bool:
    after = reading.request.masked[quantity.end : quantity.end + 16]
    return (
        re.match(r"\s*(?:\w+ )?(?:per\b|for each|from each|of each|each\b|por\b|de cada|cada\b|para cada)", after)
        is not None
    )


def _is_a_size(reading: Reading, quantity: Quantity) -> bool:
    """A row count that closes a list of wishes ("..., 20k rows") or follows a verb of taking."""
    clause = reading.request.clause_at(quantity.start)
    before = reading.request.masked[clause.start : quantity.start]
    taking = (
        r"(?:pick|take|choose|select|grab|keep|want|need|get|final\w*|down to|to|about|around|peg\w*|"
        r"quer\w*|fique com|toma|quier\w*|qued\w*|只?要|取|留|选)\s*(?:me |the |a |only |just |random |"
        r"about |com |con |apenas |solo )*$"
    )
    return before.strip() in {"", "and", "e", "y"} or re.search(taking, before) is not None


def _cap(reading: Reading, balance: list[Wanted]) -> Quantity | None:
    for wanted in balance:
        for quantity in reading.free(max(0, wanted.start - 30), wanted.end + 40):
            around = reading.request.masked[max(0, quantity.start - 24) : quantity.end + 24]
            if (
                quantity.value >= 2
                and quantity.unit in {"", "rows"}
                and re.search(r"\bper\b|for each|of each|\bpor\b|\bcada\b|每|各|\beach\b|\bevery\b", around)
            ):
                return quantity
            if quantity.value >= 2 and quantity.sign == "le":
                return quantity
    return None


def build_split(reading: Reading, wanted: Wanted) -> list[Node]:
    """`split` with its shares, which are 0.9/0.1 when none are given."""
    held = _held_count(reading, wanted)
    if held is not None:
        return [held]
    ratios, names = _ratios(reading, wanted)
    params: dict[str, Any] = {"ratios": ratios or [0.9, 0.1], "names": names, "seed": seed_of(reading)}
    clause = reading.request.clause_at(wanted.start)
    stretch = reading.request.masked[wanted.start : reading.request.sentence_at(wanted.start).end]
    if re.search(r"stratif|estratific|分层", stretch) and not re.search(
        r"sampl|amostr|muestr|抽样", reading.request.masked
    ):
        by = group_column(reading, wanted.start, clause.end + 80)
        params["stratify_by"] = [by] if by else None
    return [node(reading, wanted, params)]


def _held_count(reading: Reading, wanted: Wanted) -> Node | None:
    """`hold out 500 rows`: a share when the number of rows is known, else a wish that `split` cannot fulfil."""
    clause = reading.request.clause_at(wanted.start)
    count = next((q for q in reading.free(clause.start, clause.end, ("rows",)) if q.value >= 2), None)
    if count is None or not re.match(r"hold|set aside|reserv|留出", reading.request.masked[wanted.start : wanted.end]):
        return None
    reading.take(count)
    rows = sum(facts.rows or 0 for facts in reading.inspection.inputs) if reading.inspection else 0
    seed = {"seed": seed_of(reading)}
    if rows > count.value:
        share = round(count.value / rows, 6)
        return node(reading, wanted, {"ratios": [1 - share, share], **seed})
    built = node(reading, wanted, {"n": count.value, **seed})
    built.unmet = "hold out a number of rows"
    built.offered = "split by shares, such as ratios: [0.9, 0.1]"
    return built


def _ratios(reading: Reading, wanted: Wanted) -> tuple[list[float] | None, list[str] | None]:
    text = reading.request.masked
    listed = re.search(
        (
            r"(?<![\d.])(\d+(?:\.\d+)?)\s?%?\s*[/:\-]\s*(\d+(?:\.\d+)?)\s?%?(?:\s*[/:\-]\s*(\d+(?:\.\d+)?)\s?%?)?(?!\d|"
            r"\.\d)"
        ),
        text,
    )
    values: list[float] = []
    if listed:
        values = [float(part) for part in listed.groups() if part]
        for quantity in reading.free(listed.start(), listed.end()):
            reading.take(quantity)
    else:
        sentence = reading.request.sentence_at(wanted.start)
        shares = [
            q
            for q in reading.free(sentence.start, sentence.end)
            if q.unit == "percent" or (q.unit == "" and 0 < q.value < 1)
        ]
        values = [reading.take(q).share * 100 for q in shares[:3]]
        if len(values) == 1:
            held = re.search(
                r"test|valid|\bval\b|\bdev\b|hold|eval|teste|prueba|验证|测试|留出",
                text[max(0, shares[0].start - 24) : shares[0].end + 30],
            )
            values = [100 - values[0], values[0]] if held and values[0] < 50 else [values[0], 100 - values[0]]
    total = sum(values)
    if len(values) < 2 or total <= 0:
        return None, None
    ratios = [round(value / total, 6) for value in values]
    return ratios, _side_names(text[wanted.start : wanted.end + 60], len(ratios))


def _side_names(text: str, count: int) -> list[str] | None:
    if count == 2 and re.search(r"test|prueba|测试", text) and not re.search(r"valid|\bval\b|\bdev\b|验证", text):
        return ["train", "test"]
    return None


def build_head(reading: Reading, wanted: Wanted) -> list[Node]:
    """`the first 1000 rows`: after a shuffle a random sample; otherwise a wish that no operator fulfils."""
    clause = reading.request.clause_at(wanted.start)
    size = next((q for q in reading.free(wanted.start, clause.end) if q.value >= 1), None)
    if size is None:
        return []
    built = node(reading, wanted, {"n": reading.take(size).value, "seed": seed_of(reading)}, "sample.random")
    if not any(w.capability == "shuffle" for w in reading.mentions):
        built.unmet, built.offered = "take rows by their place in the file", "a random sample of the same size"
    return [built]


def build_topk(reading: Reading, wanted: Wanted) -> list[Node]:
    """`filter.topk` by a score column; the share or number right beside."""
    if re.match(r"前", reading.request.masked[wanted.start : wanted.end]) and not re.search(
        r"分|最|score|loss|按", reading.request.masked[max(0, wanted.start - 30) : wanted.end + 12]
    ):
        return build_head(reading, wanted)
    clause = reading.request.clause_at(wanted.start)
    near = [q for q in reading.free(clause.start, clause.end + 1) if q.unit in {"percent", "rows", ""} and not q.sign]
    quantity = reading.take(near[0]) if near else None
    judged = any(
        w.capability
        in {"score.llm_judge", "score.ifd", "score.deita", "score.reward", "score.classifier", "filter.perplexity"}
        and not w.forbidden
        for w in reading.mentions
    )
    named = re.search(
        r"(?:\bby|\bon|\bpor|\bsegun|按)\s*(?:the |their |o |a |el |la |column )?[\"'`“]?(?P<col>[a-z_]\w*)",
        reading.request.readable[wanted.end :],
    )
    near_columns = [name for name, at in reading.columns if clause.start <= at < clause.end + 40]
    column = (
        near_columns[0]
        if near_columns
        else column_for("score", reading.facts)
        if judged or not named
        else reading.request.text[wanted.end + named.start("col") : wanted.end + named.end("col")]
    )
    params: dict[str, Any] = {"column": column or "score"}
    if quantity:
        params |= {"fraction": quantity.share} if quantity.unit == "percent" else {"n": quantity.value}
    if judged:
        return [
            Node(
                "filter.topk",
                params,
                wanted.start,
                reading.request.quote(wanted.start, wanted.end),
                unmet="keep the best by that score",
                offered="the same step on a score column you have",
            )
        ]
    return [node(reading, wanted, params, "filter.topk")]


def build_longest(reading: Reading, wanted: Wanted) -> list[Node]:
    """`the longest 500 conversations`: a length column, then the rows with the greatest or least of it."""
    quantity = next((q for q in reading.free(wanted.start, wanted.end + 12) if q.value >= 1), None)
    if quantity is None:
        return []
    reading.take(quantity)
    column = (reading.columns_near(wanted) or reading.text() or ("text",))[0]
    shortest = re.match(r"short|mais curt|mas cort|最短", reading.request.masked[wanted.start : wanted.end]) is not None
    size = {"fraction": quantity.share} if quantity.unit == "percent" else {"n": quantity.value}
    best = node(reading, wanted, {"column": "length", **size, "order": "lowest" if shortest else None}, "filter.topk")
    best.follows = ("columns.map",)
    return [node(reading, wanted, {"column": "length", "expr": f"len({column})"}, "columns.map"), best]


BUILDERS: dict[str, Builder] = {
    "split": build_split,
    "topk": build_topk,
    "head": build_head,
    "longest": build_longest,
}
