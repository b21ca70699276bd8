"""Builders for answers to check, model-written text, judges, and documents to parse: installed or still missing."""

import re
from typing import Any

from datamill.agents.rules.columns import column_for
from datamill.agents.rules.intents import Wanted, polarity
from datamill.agents.rules.language import languages_named
from datamill.agents.rules.nodes import Builder, Node, node
from datamill.agents.rules.quantities import Quantity
from datamill.agents.rules.reading import Reading
from datamill.agents.rules.steps_judge import build_judge
from datamill.agents.rules.training_words import number_near

_UNITS = (
    ("section", r"sections?|sec(?:ao|oes)|seccion\w*|章节|章|小节"),
    ("page", r"pages?|paginas?|页"),
    ("paragraph", r"paragraphs?|paragraf\w*|parraf\w*|段落?"),
    ("chapter", r"chapters?|capitul\w*"),
)
_CODES = r"en|zh|pt|es|de|fr|it|ja|ko|ru|ar|hi|nl|pl|tr|vi|th|id"


def build_math(reading: Reading, wanted: Wanted) -> list[Node]:
    """`math.verify`: prediction against gold, or calculator annotations inside solutions."""
    facts, text = reading.facts, reading.request.text
    params: dict[str, Any] = {}
    if (
        "<<" in text
        or re.search(r"annotation|calculator|anotac|calculadora|算式|标注的计算", reading.request.masked)
        or (facts and facts.column("solution") and not facts.column("prediction"))
    ):
        params["annotations"] = True
    named = [name for name, _ in reading.columns]
    gold_word = re.search(
        (
            r"(?:gold|reference|ground truth|correct|expected|gabarito|referenc\w*|correta|标准答案|"
            r"参考答案)[^,.;，。]*?[\"'`“ ]([a-z_]\w*)[\"'`”]?(?: column)?"
        ),
        reading.request.folded,
    )
    if len(named) >= 2:
        gold = next(
            (n for n in named if re.search(r"gold|ref|truth|label|gabarito|expected|target", n.lower())), named[-1]
        )
        checked = next((n for n in named if n != gold), named[0])
        params |= {"prediction": checked, "gold": gold}
    elif named and gold_word and gold_word.group(1) == named[0].lower():
        params["gold"] = named[0]
    elif named:
        params["prediction"] = named[0]
    elif facts and facts.columns:
        prediction = (
            facts.column("prediction") or facts.column("solution") or facts.column("output") or facts.column("answer")
        )
        answer = facts.column("answer")
        params |= {"prediction": prediction, "gold": answer if answer != prediction else None}
    if "keep_all_rows" in reading.prohibitions or re.search(
        r"(?:only|just) (?:flag|mark|tag)|\bflag\b|\bmark\b|\bmarque\b|\bmarca\b|标记|打标", reading.request.masked
    ):
        params["on_wrong"] = "tag"
    return [node(reading, wanted, params)]


def build_code(reading: Reading, wanted: Wanted) -> list[Node]:
    """`code.execute`."""
    seconds = number_near(reading.request, list(reading.numbers), r"time-?out|limite de tempo|tiempo limite|超时")
    before = re.search(
        r"(\d+)\s?-?(?:s|secs?|seconds?|segundos?|秒)\s?(?:of |de )?(?:time-?out|limit|每|per|por|超时)",
        reading.request.masked,
    )
    limit = reading.take(seconds).value if seconds else int(before.group(1)) if before else None
    return [node(reading, wanted, {"timeout_s": limit})]


def build_translate(reading: Reading, wanted: Wanted) -> list[Node]:
    """`rewrite.llm` as translation: target, and the chain of languages for back-translation."""
    text = reading.request.masked
    chain = re.search(rf"\b((?:{_CODES})(?:\s*(?:->|=>|>|-)\s*(?:{_CODES}))+)\b", text)
    if chain:
        path = re.findall(_CODES, chain.group(1))
        return [node(reading, wanted, {"task": "translate", "path": path, "target": path[-1]})]
    if re.match(r"summar|resum|simplif|写|生成|摘要|概括", text[wanted.start : wanted.end]):
        return [
            node(reading, wanted, {"task": "simplify" if "simplif" in text[wanted.start : wanted.end] else "summarise"})
        ]
    sentence = reading.request.sentence_at(wanted.start)
    named = languages_named(text, wanted.end, sentence.end)
    source = (
        re.search(r"(?:from|do|del|desde|从|把)\s*(?:the |o |el )?$", text[wanted.end : named[0][0]]) if named else None
    )
    target = (named[1][1] if source and len(named) > 1 else named[0][1]) if named else None
    into = [
        code
        for at, code in named
        if re.search(r"(?:\b(?:to|into|in|para|pro|ao?|al|em|en)|成|为|到)\s*(?:the |o |el )?$", text[wanted.end : at])
    ]
    if into:
        target = into[0]
    return [
        node(
            reading,
            wanted,
            {"task": "translate", "target": target, "source": named[0][1] if source and len(named) > 1 else None},
        )
    ]


def build_paraphrase(reading: Reading, wanted: Wanted) -> list[Node]:
    """`augment.paraphrase`: how many, how long, what must survive."""
    clause = reading.request.clause_at(wanted.start)
    count = _count(reading, clause.start, reading.request.sentence_at(wanted.start).end)
    named = [name for name, at in reading.columns if clause.start <= at < clause.end]
    params: dict[str, Any] = {
        "column": (named or list(reading.columns_near(wanted)) or list(reading.text()) or ["text"])[0],
        "n": count.value if count else None,
    }
    most = next((q for q in reading.numbers if q.unit == "words" and q.sign in {"le", "lt"}), None)
    params["max_words"] = most.value if most else None
    if re.search(
        r"replac\w*|instead of|in place|substitu|reempla|替换|questions?\b|perguntas|preguntas",
        reading.request.masked[clause.start : clause.end],
    ):
        params["keep_original"] = False
    nodes = [node(reading, wanted, params)]
    guarded = re.search(
        (
            r"(?:keep|leave|preserv\w*|mant\w+|conserv\w*|保留|保持)\s+(?:the |os |as |los |las "
            r")?([\w ]{3,30}?)\s+(?:untouched|unchanged|intact\w*|as (?:they|it) (?:are|is)|as is|sem "
            r"alterac\w*|sin cambios|不变)"
        ),
        reading.request.masked,
    )
    if guarded and not re.search(r"number|answer|numero|respost|respuest|数字|答案", guarded.group(1)):
        nodes.append(
            Node(
                "augment.paraphrase",
                {"protect": guarded.group(1).strip()},
                wanted.start,
                reading.request.quote(guarded.start(), guarded.end()),
                unmet=f"find {guarded.group(1).strip()} by itself",
                offered="name the words or a /regular expression/ in `protect`",
            )
        )
    return nodes


def _count(reading: Reading, start: int, end: int, each: bool = False) -> Quantity | None:
    """A count of things to make; with `each` only one that says per what."""
    for quantity in reading.free(start, end):
        if each and not re.match(
            r"\s*(?:\w+ )?(?:per|for each|each|por|cada|每)", reading.request.masked[quantity.end :]
        ):
            continue
        if (
            1 <= quantity.value <= 100
            and quantity.unit in {"", "rows", "rounds"}
            and not quantity.sign
            and isinstance(quantity.value, int)
        ):
            return reading.take(quantity)
    return None


def build_evol(reading: Reading, wanted: Wanted) -> list[Node]:
    """`synth.evol_instruct`: rounds and direction."""
    clause = reading.request.clause_at(wanted.start)
    rounds = next(
        (
            q
            for q in reading.free(clause.start, clause.end + 12)
            if q.unit in {"rounds", "turns", "epochs", ""} and q.value <= 20
        ),
        None,
    )
    text = reading.request.masked
    mode = (
        "depth"
        if re.search(r"(?:in[- ])?depth|profundidad\w*|深度", text)
        else "breadth"
        if re.search(r"breadth|amplitude|amplitud|广度", text)
        else None
    )
    return [node(reading, wanted, {"rounds": reading.take(rounds).value if rounds else None, "mode": mode})]


def build_self_instruct(reading: Reading, wanted: Wanted) -> list[Node]:
    """`synth.self_instruct`: how many new instructions, how novel."""
    clause = reading.request.clause_at(wanted.start)
    near = [q for q in reading.free(clause.start, clause.end + 30) if q.unit in {"rows", ""} and q.value >= 1]
    near = [q for q in near if q.start >= wanted.start] or [
        q
        for q in near
        if not re.match(r"\s*(?:\w+ )?(?:seeds?|tasks? in|semillas|sementes|种子)", reading.request.masked[q.end :])
    ]
    count = near[0] if near else None
    rouge = number_near(
        reading.request,
        list(reading.numbers),
        r"rouge(?:-?l)?(?: below| under| over| above| <| >| score| similarity| of| max)*",
    )
    return [
        node(
            reading,
            wanted,
            {
                "n": reading.take(count).value if count else None,
                "max_rouge_l": reading.take(rouge).value if rouge else None,
            },
        )
    ]


def build_qa(reading: Reading, wanted: Wanted) -> list[Node]:
    """`synth.qa_from_doc`: pairs per document, and whether answers must stand in the text."""
    clause = reading.request.clause_at(wanted.start)
    count = _count(reading, clause.start, clause.end) or _count(
        reading, clause.end, reading.request.sentence_at(wanted.start).end, each=True
    )
    text = reading.request.masked
    grounded = re.search(
        (
            r"grounded|(?:using|based on|with|from|use|about) (?:only|just|nothing but|solely|strictly)|only (?:from|"
            r"what|use|using|based)|"
            r"(?:no|without) (?:outside|external|extra) (?:knowledge|info\w*|facts)|supported by|(?:apenas|somente|"
            r"so|solo|solamente) (?:com |con |a partir |"
            r"d?o que |lo que )|只(?:用|能?根据|依据|基于)|严格(?:根据|依据|基于)|(?:answer|evidence|"
            r"span)\w* (?:must|has to|should|"
            r"needs? to) (?:be |appear |occur "
            r")?(?:found |present )?(?:in|inside)|verbatim|(?:resposta|respuesta)s? (?:deve\w*|debe\w*|"
            r"tem que|tiene que) (?:estar|aparecer)|(?:原文|文中|文章).{0,6}(?:找到|出现|有|依据)|"
            r"能在.{0,4}(?:原文|文中)"
        ),
        text,
    )
    per = re.search(
        (
            r"(?:per|each|every|for each|por|cada|每(?:个|一)?)\s*(?:the )?(section|page|chapter|paragraph|"
            r"doc\w*|sec\w+|pagina|capitul\w+|章|页|段|篇)"
        ),
        text,
    )
    unit = next((name for name, pattern in _UNITS if per and re.search(pattern, per.group(1))), None)
    params: dict[str, Any] = {"n": count.value if count else None, "per": unit, "grounded": True if grounded else None}
    nodes = [node(reading, wanted, params)]
    if grounded:
        nodes.append(
            Node(
                "filter.expr",
                {"expr": "contains(text, answer)"},
                grounded.start(),
                reading.request.quote(grounded.start(), grounded.end()),
                unmet="check that each answer stands in the text",
                offered="the same expression once there are answers",
                follows=("synth.qa_from_doc",),
            )
        )
    return nodes


def build_generate(reading: Reading, wanted: Wanted) -> list[Node]:
    """`llm.generate`."""
    return [node(reading, wanted)]


def build_tags(reading: Reading, wanted: Wanted) -> list[Node]:
    """`annotate.llm` with its labels."""
    end = reading.request.sentence_at(wanted.start).end
    stretch = reading.request.masked[wanted.start : end]
    inside = re.search(r"\(([^)]{3,120})\)", stretch) or re.search(
        (
            r"(?:into|as|in|em|en|como|:|成|为)\s*([a-z一-鿿]+(?:\s*(?:,|/|;|、| or | and | e | y | o | ou |和|"
            r"或)\s*(?:or |and |e |y |o |ou )?(?!(?:show|give|count|then|keep|drop|report|tell|balanc|"
            r"remov|write|save|split|mostr|d[ae]me|conta|cuent)\w*\b)[a-z一-鿿]+){1,12})"
        ),
        stretch,
    )
    labels = (
        [
            part.strip()
            for part in re.split(r"\s*(?:,|/|;|、|\bor\b|\band\b|\be\b|\by\b|\bou\b|和|或)\s*", inside.group(1))
            if part.strip()
        ]
        if inside
        else None
    )
    field = next(
        (
            name
            for name, pattern in (
                ("domain", r"domain|dominio|领域"),
                ("topic", r"topic|topico|tema|主题"),
                ("difficulty", r"difficult|dificul|难度"),
                ("intent", r"intent|意图"),
                ("category", r"categor|类别|分类"),
            )
            if re.search(pattern, stretch)
        ),
        None,
    )
    return [node(reading, wanted, {"output": field, "labels": labels}, "annotate.llm")]


def build_perplexity(reading: Reading, wanted: Wanted) -> list[Node]:
    """`filter.perplexity`: the share left out, a bound, and the language it is about."""
    sentence = reading.request.sentence_at(wanted.start)
    params: dict[str, Any] = {}
    share = next((q for q in reading.free(sentence.start, sentence.end, ("percent",))), None)
    if share:
        verb = polarity(reading.request, share.start, share.end)
        around = reading.request.masked[max(0, share.start - 30) : share.end + 16]
        drops = verb == "drop" or re.search(r"worst|highest|pior|peor|最差|最高", around)
        params["drop_quantile" if drops else "keep_quantile"] = reading.take(share).share
    else:
        bound = next((q for q in reading.free(sentence.start, sentence.end) if q.unit == "" and q.value >= 1), None)
        if bound:
            params["max"] = reading.take(bound).value
    spoken = [code for position, code in reading.languages if sentence.start <= position < sentence.end]
    if spoken:
        params["language"] = spoken[0]
    return [node(reading, wanted, params)]


def build_parse(reading: Reading, wanted: Wanted) -> list[Node]:
    """`parse.*`: which files and one record per what."""
    text = reading.request.masked
    unit = next(
        (
            name
            for name, pattern in _UNITS
            if re.search(rf"(?:per|each|by|por|cada|按|每)\s?(?:a |one |um[a]? |个|一)?(?:{pattern})", text)
        ),
        None,
    )
    path = next((s.name for s in reading.sources if s.purpose == "input"), None)
    return [
        node(
            reading,
            wanted,
            {
                "path": path,
                "unit": unit,
                "ocr": True if re.search(r"\bocr\b", text) else None,
                "tables": True if re.search(r"\btables?\b|tabelas?|tablas?|表格", text) else None,
            },
        )
    ]


def build_chunk(reading: Reading, wanted: Wanted) -> list[Node]:
    """`text.chunk`: size and overlap."""
    overlap = next(
        (
            q
            for q in reading.numbers
            if re.match(r"\s*(?:tokens? )?(?:of |de )?(?:overlap|sobrepos|solap|重叠)", reading.request.masked[q.end :])
        ),
        None,
    ) or number_near(
        reading.request, list(reading.numbers), r"overlap\w*(?: of)?|sobreposic\w*(?: de)?|solap\w*(?: de)?|重叠"
    )
    size = next(
        (q for q in reading.free(units=("tokens", "words", "chars")) if overlap is None or q.start != overlap.start),
        None,
    )
    if overlap:
        reading.take(overlap)
    by = "sentence" if re.search(r"by sentence|por (?:frase|orac)|按句", reading.request.masked) else None
    return [
        node(
            reading,
            wanted,
            {
                "size": reading.take(size).value if size else None,
                "unit": size.unit if size else None,
                "overlap": overlap.value if overlap else None,
                "by": by,
            },
        )
    ]


def build_diverse(reading: Reading, wanted: Wanted) -> list[Node]:
    """`select.diverse`: how many rows, or which share."""
    clause = reading.request.clause_at(wanted.start)
    size = next(
        (q for q in reading.free(clause.start, clause.end) if q.unit in {"rows", "percent", ""} and q.value > 1), None
    )
    if size is None:
        return [node(reading, wanted)]
    reading.take(size)
    return [node(reading, wanted, {"fraction": size.share} if size.unit == "percent" else {"n": size.value})]


def build_score(reading: Reading, wanted: Wanted) -> list[Node]:
    """A score by a model, with the bound said for it."""
    start, end = reading.stretch(wanted)
    bound = next((q for q in reading.free(start, end) if q.sign and q.unit in {"", "percent"}), None)
    return [node(reading, wanted, {"bound": reading.take(bound).share if bound else None})]


def build_vote(reading: Reading, wanted: Wanted) -> list[Node]:
    """`math.solve_vote`: samples."""
    count = next((q for q in reading.free(units=("votes", "rounds", "rows")) if q.value <= 256), None)
    return [node(reading, wanted, {"n": reading.take(count).value if count else None})]


def build_plain(reading: Reading, wanted: Wanted) -> list[Node]:
    """A step without parameters said."""
    return [node(reading, wanted)]


def answer_columns(reading: Reading) -> tuple[str | None, str | None]:
    """Prediction and gold columns of the inspected file."""
    return column_for("prediction", reading.facts), column_for("answer", reading.facts)


BUILDERS: dict[str, Builder] = {
    "math.verify": build_math,
    "code.execute": build_code,
    "rewrite.llm": build_translate,
    "augment.paraphrase": build_paraphrase,
    "synth.evol_instruct": build_evol,
    "synth.self_instruct": build_self_instruct,
    "synth.qa_from_doc": build_qa,
    "llm.generate": build_generate,
    "score.llm_judge": build_judge,
    "annotate.llm": build_tags,
    "annotate.difficulty": build_tags,
    "filter.perplexity": build_perplexity,
    "parse.pdf": build_parse,
    "parse.html": build_parse,
    "parse.office": build_parse,
    "text.chunk": build_chunk,
    "score.classifier": build_score,
    "score.ifd": build_score,
    "score.deita": build_score,
    "score.reward": build_score,
    "math.solve_vote": build_vote,
    "select.diverse": build_diverse,
    **dict.fromkeys(
        ("fetch.http", "crawl.site", "annotate.human", "embed.text", "synth.backtranslate"),
        build_plain,
    ),
}
