"""What only the person can decide: missing inputs, values out of range, wishes that contradict one another.

A question is asked when two readings give different plans; anything else becomes an assumption.
"""

import re
from collections.abc import Sequence
from typing import Protocol

from datamill.agents.draft import Question, Topic
from datamill.agents.rules.capabilities import CAPABILITIES
from datamill.agents.rules.messages import say
from datamill.agents.rules.mixtures import domain_weights
from datamill.agents.rules.nodes import Node
from datamill.agents.rules.reading import Reading
from datamill.agents.rules.safety import upload_place
from datamill.agents.rules.steps_dedup import threshold_said

NEEDS_TARGET = frozenset({"less", "cluster_less", "nice", "tsds", "near", "rds_plus", "bm25", "icons"})

NEEDS_MODEL = frozenset(
    {
        "score.llm_judge", "rewrite.llm", "llm.generate", "augment.paraphrase", "annotate.llm", "math.solve_vote",
        "synth.self_instruct", "synth.evol_instruct", "synth.qa_from_doc", "synth.backtranslate",
    }
)  # fmt: skip
"""Steps that call a language model."""

_DESTROY = re.compile(
    r"back (?:in)?to (?:the (?:original|input|same|source)|(?:the file |file )?\ue000)|\bsame file\b|mesmo arquivo|"
    r"mismo archivo|into the (?:original|input|same) file|"
    r"over the original|no mesmo arquivo|en el mismo archivo|写回原|overwrit\w*|over-write|"
    r"replac\w* (?:the |my |our )?(?:input|original|source|raw|\ue000+)|same (?:file ?name|filename|path|name)\b|"
    r"mesmo nome|mismo nombre|同名|"
    r"(?:no|without a|without any|don'?t keep a|sem|sin) (?:back-?ups?|copia de seguridad)|"
    r"in[- ]place|(?:delet\w*|eras\w*|wipe|remov\w*|rm) (?:the |my |our |all )*(?:raw|original\w*|"
    r"input|source|old)s?(?: data| files?| folder| dir\w*| set)?\b|"
    r"delet\w* (?:the |my |all )*(?:\w+ )?(?:folder|director\w+|files?|bucket|database)|"
    r"sobrescrev\w*|sobrescrib\w*|(?:apag|delet|remov|exclu)\w* (?:o |os |a |as )*(?:pasta|"
    r"arquivos?|originai?s?|brutos?|entrada)|(?:borr|elimin)\w* (?:el |los |la |las )*(?:carpeta|"
    r"archivos?|original\w*|crudos?|entrada)|no lugar d[oa] original|en el mismo archivo|"
    r"覆盖|替换(?:掉)?原|(?:删除?|清空)(?:掉)?.{0,4}(?:原始?(?:文件|数据)|源文件|目录|文件夹)"
)
_TOOLS = re.compile(
    r"tool[- ]?calls?|function[- ]?calls?|chamadas? de (?:ferramenta|func\w+)|llamadas? a "
    r"(?:herramienta|func\w+)\w*|工具调用|函数调用"
)
_LANGUAGE_FILTER = re.compile(
    r"filter\w* (?:it |them |rows )?(?:by|on|for) (?:the )?languages?|language filter\w*|(?:by|right|correct|wrong|"
    r"one|certain) languages?\b(?! (?:tag|stat|col))|"
    r"filtr\w* (?:por |o |el )?(?:idioma|lingua|lengua)|按语言(?:过滤|筛选)|语言过滤|过滤语言"
)
_ATTACHED = re.compile(
    r"(?:carry|contain|with|have|hold|include|com|con|tem|tienen|有|带|含)\s*(?:some |inline |the )?(images?|audio|"
    r"imagens|imagenes|attachments?|图片|附件)"
)
_PLAIN_TEXT = re.compile(
    (
        r"(?:^|[/_.-])(?:wiki\w*|c4|mc4|oscar|web|books?|corpus|crawl|news|fineweb\w*|redpajama|"
        r"slimpajama|pile|dolma|noticias|livros|libros)(?:[/_.-]|$)"
    ),
    re.IGNORECASE,
)
_USUAL = re.compile(
    r"\b(?:usual|standard|default|typical|common|normal|sensible|recommended)\b (?:settings?|"
    r"pipeline|recipe|cleaning|steps|procedure|defaults|way|filters?)|configurac\w+ (?:padrao|"
    r"usual\w*|por defecto|habitual\w*|estandar)|receita padrao|lo de siempre|como de costume|o "
    r"de sempre|\bas usual\b|\bthe usual\b|like (?:always|last time|before)\b|como siempre|como "
    r"sempre|照旧|按惯例|跟(?:以前|上次)一样|常规|默认(?:设置|配置|流程|参数)|标准流程|老样子|一般流程"
)
_VAGUE = re.compile(
    r"\b(?:the )?(?:good|nice|interesting|better|useful|bad|weird|best) (?:ones|rows|samples|"
    r"examples|stuff|data|parts|quality)\b|make (?:it|this|the data) (?:better|good|nicer)|"
    r"improve (?:it|the data|quality)|high[- ]quality|the important (?:ones|rows|parts)|"
    r"(?:os|as|los|las) (?:melhores|mejores|bons|buenos|boas|buenas|ruins|malos|malas)(?! \d)(?: "
    r"(?:dados|datos|exemplos|ejemplos|linhas|filas))?|dados bons|datos buenos|de (?:boa|alta|"
    r"buena) (?:qualidade|calidad)|(?<!不)好的?(?:数据|样本)|不好的|坏(?:的)?(?:数据|样本)|"
    r"(?:质量)?差的|没用的|高质量|优质|"
    r"弄好(?:一点)?|处理一下"
)


TOLERANCE = 1.0
"""Percent by which shares such as 33/33/33 may miss 100 without a question."""


class AskFunction(Protocol):
    """Signature of the callback that collects questions."""

    def __call__(
        self, topic: Topic, key: str, options: Sequence[str] = (), blocking: bool = True, **values: object
    ) -> None:
        """Collect one question."""


def usual_settings(reading: Reading) -> re.Match[str] | None:
    """Words such as "the usual settings"."""
    return _USUAL.search(reading.request.masked)


def destroys(reading: Reading) -> re.Match[str] | None:
    """Words that ask to delete or overwrite inputs."""
    return _DESTROY.search(reading.request.masked)


def questions(
    reading: Reading,
    nodes: Sequence[Node],
    cycle: tuple[str, str] | None,
    has_input: bool,
    unresolved: Sequence[str],
    new_path: str,
    recipe: bool,
) -> tuple[Question, ...]:
    """All open questions, most important first."""
    asked: list[Question] = []
    language = reading.request.language

    def ask(topic: Topic, key: str, options: Sequence[str] = (), blocking: bool = True, **values: object) -> None:
        asked.append(
            Question(topic=topic, text=say(key, language, **values), options=tuple(options), blocking=blocking)
        )

    if destroys(reading) or any(s.purpose == "delete" for s in reading.sources):
        ask("destructive", "destructive", ("new path", "stop"), path=new_path)
    if (place := upload_place(reading)) is not None:
        ask("upload", "upload", ("local file",), where=place)
    _ask_contradictions(reading, nodes, cycle, ask)
    _ask_ranges(reading, ask)
    lost = _TOOLS.search(reading.request.masked) or _ATTACHED.search(reading.request.masked)
    if lost and any(n.capability == "format.alpaca" for n in nodes):
        ask(
            "lossy",
            "lossy",
            ("sharegpt", "text"),
            what=_word(language) if _TOOLS.search(lost.group()) else lost.group(),
        )
    _ask_training(reading, ask)
    _ask_checks(reading, nodes, ask)
    _ask_terms(reading, nodes, recipe, asked, ask)
    fetched = reading.request.urls and any(n.capability in {"crawl.site", "fetch.http"} for n in nodes)
    if not has_input and not fetched:
        ask("input", "input")
    for name in unresolved:
        ask("input", "input_named", name=name)
    if not reading.languages and _LANGUAGE_FILTER.search(reading.request.masked):
        ask("languages", "languages", ("en",))
    if usual_settings(reading):
        ask("languages", "languages", ("all",))
        if any(q.value >= 10**9 for q in reading.numbers):
            ask("engine", "engine", ("local", "ray", "spark"))
    return tuple(_distinct(asked))


def _ask_terms(
    reading: Reading, nodes: Sequence[Node], recipe: bool, asked: Sequence[Question], ask: AskFunction
) -> None:
    """Words without a meaning of their own, and requests in which no step was found."""
    elsewhere = any(question.topic in {"destructive", "upload"} for question in asked) or any(
        s.purpose == "output" for s in reading.sources
    )
    if recipe or elsewhere:
        return
    if reading.left_out:
        return
    vague = _VAGUE.search(reading.request.masked)
    what = reading.request.text[vague.start() : vague.end()] if vague else ""
    if not nodes and reading.training is None:
        ask("term", "term" if vague else "nothing", what=what)
    elif vague and not _settled(reading, nodes):
        ask("term", "term", ("filter.gopher_quality",), what=what)


def _word(language: str) -> str:
    return {"zh": "工具调用", "pt": "chamadas de ferramentas", "es": "llamadas a herramientas"}.get(
        language, "tool calls"
    )


def _distinct(asked: list[Question]) -> list[Question]:
    return list({(question.topic, question.text): question for question in asked}.values())


def _settled(reading: Reading, nodes: Sequence[Node]) -> bool:
    """Whether a vague word has been given a meaning by another step or by training."""
    judged = {
        "filter.gopher_quality",
        "score.llm_judge",
        "filter.topk",
        "filter.score",
        "score.ifd",
        "score.deita",
        "score.classifier",
        "score.reward",
        "filter.perplexity",
    }
    return reading.training is not None or any(node.capability in judged for node in nodes)


def _ask_contradictions(
    reading: Reading, nodes: Sequence[Node], cycle: tuple[str, str] | None, ask: AskFunction
) -> None:
    if "keep_all_rows" in reading.prohibitions or "read_only" in reading.prohibitions:
        for what in removals(reading, nodes):
            ask("contradiction", "rows_kept", ("mark", "remove"), what=what)
            break
    if "no_llm" in reading.prohibitions:
        model = next((n for n in nodes if n.capability in NEEDS_MODEL), None)
        if model is not None:
            ask("contradiction", "no_llm", ("rules", "model"), what=CAPABILITIES[model.capability].label)
    _ask_shares(reading, nodes, ask)
    if cycle:
        labels = [CAPABILITIES[c].label if c in CAPABILITIES else c for c in cycle]
        ask("order", "order", ("after", "both"), first=labels[0], second=labels[1])
    for node in nodes:
        low, high = node.params.get("min"), node.params.get("max")
        if low is not None and high is not None and low > high:
            ask("contradiction", "shares", (), first=f"min {low}", second=f"max {high}")


def _ask_shares(reading: Reading, nodes: Sequence[Node], ask: AskFunction) -> None:
    """`the top 10 % but at least half of the rows`, `20 % and 500 rows`: sizes that cannot both hold."""
    shares = [q for q in reading.numbers if q.unit == "percent"]
    for most in shares:
        for least in shares:
            top = re.search(
                r"\btop\b|\bbest\b|highest|only|melhores|mejores|最好|最高|前|只保留|keep\s*$",
                reading.request.masked[max(0, most.start - 14) : most.start],
            )
            if (
                top
                and least.sign == "ge"
                and least.value > most.value
                and re.search(
                    r"keep|mant|fique|conserv|qued|保留|留",
                    reading.request.masked[max(0, least.start - 40) : least.start],
                )
            ):
                ask(
                    "contradiction",
                    "shares",
                    (f"{most.value} %", f"{least.value} %"),
                    first=f"{most.value} %",
                    second=f">= {least.value} %",
                )
    sizes = {q.unit for q in reading.numbers if q.unit in {"percent", "rows"} and not q.sign}
    kinds = {n.capability for n in nodes}
    if len(sizes) == 2 and kinds == {"sample.random"}:
        two = [next(q for q in reading.numbers if q.unit == unit and not q.sign) for unit in ("percent", "rows")]
        said = [reading.request.text[q.start : q.end] for q in two]
        ask("contradiction", "shares", said, first=said[0], second=said[1])


def removals(reading: Reading, nodes: Sequence[Node]) -> list[str]:
    """Steps asked for that take rows out, also those left out of the draft because of the prohibition."""
    tagging = {"action": "tag", "on_wrong": "tag"}
    named = list(reading.left_out)
    named += [
        CAPABILITIES[n.capability].label
        for n in nodes
        if n.capability in CAPABILITIES
        and CAPABILITIES[n.capability].removes_rows
        and not any(n.params.get(k) == v for k, v in tagging.items())
    ]
    said = {"dedup": "dedup.exact", "sample": "sample.random", "topk": "filter.topk", "filter.empty": "filter.length"}
    named += [
        CAPABILITIES[c].label
        for w in reading.mentions
        if not w.forbidden
        and (c := said.get(w.capability, w.capability)) in CAPABILITIES
        and CAPABILITIES[c].removes_rows
        and c not in {"decon.ngram", "math.verify"}
    ]
    return named


def _ask_ranges(reading: Reading, ask: AskFunction) -> None:
    threshold = threshold_said(reading)
    quantity = reading.similarity
    if (
        threshold is not None
        and quantity is not None
        and not 0 < threshold <= 1
        and any(w.capability.startswith("dedup") and not w.forbidden for w in reading.mentions)
    ):
        guess = threshold / 10 if 1 < threshold < 10 else threshold / 100 if 10 <= threshold <= 100 else 0.8
        ask("threshold", "threshold", (f"{guess:g}",), value=f"{quantity.value:g}", guess=f"{guess:g}")
    if threshold is None:
        _ask_loose_threshold(reading, ask)
    bare = sorted({q.value for q in reading.numbers if q.unit == "" and 0 < q.value < 1})
    kinds = {w.capability for w in reading.mentions if not w.forbidden}
    if (
        len(bare) > 1
        and kinds <= {"dedup", "dedup.minhash", "dedup.exact"}
        and not reading.languages
        and reading.training is None
    ):
        ask("contradiction", "shares", tuple(f"{v:g}" for v in bare), first=f"{bare[0]:g}", second=f"{bare[1]:g}")
    odd = next(
        (
            q
            for q in reading.numbers
            if (q.unit == "percent" and q.value > 100) or (q.unit in {"rows", "percent"} and q.value < 0)
        ),
        None,
    )
    if (odd is not None and kinds & {"sample", "topk", "balance", "mix.concat"}) or (odd is not None and not kinds):
        ask("size", "how_many")
    split = any(w.capability == "split" and not w.forbidden for w in reading.mentions)
    shares = [q.value for q in reading.numbers if q.unit == "percent"]
    listed = re.search(r"(?<![\d.])(\d+)\s*/\s*(\d+)(?:\s*/\s*(\d+))?(?!\d|\.\d)", reading.request.masked)
    total: float = (
        sum(int(part) for part in listed.groups() if part)
        if listed and split
        else sum(shares)
        if len(shares) >= 3 or (split and len(shares) == 2)
        else 100
    )
    mixing = any(w.capability == "mix.concat" for w in reading.mentions)
    weights = domain_weights(reading) if mixing else {}
    if len(weights) >= 2:
        total = round(100 * sum(weights.values()), 6)
    if split and shares and max(shares) > 100:
        total = max(shares)
    if (split or mixing) and total not in {1, 10, 100} and abs(total - 100) > TOLERANCE:
        ask("mixture", "mixture", ("scale",), total=f"{total:g}")


def _ask_loose_threshold(reading: Reading, ask: AskFunction) -> None:
    """`dedup at -0.5`: a number right behind the word that cannot be a similarity."""
    for quantity in reading.numbers:
        before = reading.request.masked[max(0, quantity.start - 30) : quantity.start]
        said = re.search(
            r"(?:de-?dup\w*|duplicates?|dups?|minhash|duplicad\w*|duplicatas|去重)(?: \ue000+)?\s*"
            r"(?:at|@|with|em|en|a|com|con|"
            r"到)?\s*-?$",
            before,
        )
        if said and quantity.unit == "" and not 0 < quantity.value <= 1:
            guess = abs(quantity.value) / (1 if abs(quantity.value) < 1 else 10 if abs(quantity.value) < 10 else 100)
            ask("threshold", "threshold", (f"{guess:g}",), value=f"{quantity.value:g}", guess=f"{guess:g}")
            return


def _ask_training(reading: Reading, ask: AskFunction) -> None:
    wish = reading.training
    if wish is None:
        return
    names = [s.name for s in reading.sources if s.purpose == "input"]
    plain = next((name for name in names if _PLAIN_TEXT.search(name)), None)
    only_text = (
        reading.facts is not None
        and reading.facts.columns
        and not any(
            c.role in {"instruction", "question", "messages", "output", "chosen"} for c in reading.facts.columns
        )
    )
    if (
        wish.stage == "sft"
        and "stage" in wish.said
        and (plain or only_text)
        and not any(w.capability.startswith("synth.") for w in reading.mentions)
    ):
        ask("stage", "stage", ("pt", "instructions"), name=plain or (reading.facts.path if reading.facts else ""))
    if wish.method == "delta_loss" and re.search(
        r"menor|mas baj|mais baix|lowest|smallest|least|最小|最低", reading.request.masked
    ):
        ask("method", "direction", ("highest", "lowest"), method="delta loss")
    if wish.paradigm == "mix" and not re.search(r"repeat|repeti|重复", reading.request.masked):
        ask("mixture", "mixture_short", ("stop", "repeat"), blocking=False)
    elif wish.paradigm == "mix":
        ask("mixture", "mixture_short", ("stop",))
    if wish.method in NEEDS_TARGET and wish.method != "near" and wish.target is None and not _known_target(reading):
        ask("target", "target", method=wish.method.upper())
    if not wish.model and not _default_model_fits(reading):
        ask("model", "model", ("tiny", "smollm2"))


def _known_target(reading: Reading) -> bool:
    return reading.inspection is not None and bool(reading.inspection.evaluation_sets)


def _default_model_fits(reading: Reading) -> bool:
    """With inputs attached the demo model stands in, as an assumption; without any the answer is needed anyway."""
    return reading.inspection is not None and bool(reading.inspection.inputs)


_AMOUNTS = frozenset({"n", "fraction", "max", "drop_quantile", "keep_quantile"})


def _ask_place(reading: Reading, node: Node, ask: AskFunction) -> None:
    """Where a step finds what it works on: columns of code, an address to crawl, the text to translate."""
    unseen = not reading.columns and reading.facts is None
    if node.capability == "code.execute" and unseen:
        ask("columns", "code_columns")
    if node.capability == "crawl.site" and not reading.request.urls:
        ask("input", "address")
    if node.capability != "rewrite.llm":
        return
    if unseen:
        ask("columns", "text_column", blocking=False)
    if node.params.get("task") == "translate" and not node.params.get("target"):
        ask("languages", "translate_to")


def _ask_checks(reading: Reading, nodes: Sequence[Node], ask: AskFunction) -> None:
    for node in nodes:
        if node.capability == "decon.ngram" and not node.params.get("against"):
            ask("target", "benchmark")
        if (
            node.capability == "math.verify"
            and not node.params.get("annotations")
            and not (node.params.get("gold") and node.params.get("prediction"))
            and (reading.facts is None or not reading.facts.columns)
        ):
            ask("columns", "columns")
        _ask_place(reading, node, ask)
        scale, least = node.params.get("scale"), node.params.get("min_score")
        if node.capability == "score.llm_judge" and scale and least is not None and not scale[0] <= least <= scale[1]:
            ask("threshold", "scale", (f"{scale[1]}",), value=least, low=scale[0], high=scale[1])
        if node.params.get("tokenizer") == "tokenizer.json":
            ask("model", "tokenizer")
        if node.capability in {"filter.topk", "filter.perplexity"} and not _AMOUNTS & set(node.params):
            ask("size", "how_many")
        if node.capability == "sample.stratified" and node.params.get("fraction") == 1.0:
            ask("size", "balance")
        rows = sum(facts.rows or 0 for facts in reading.inspection.inputs) if reading.inspection else 0
        wanted = node.params.get("n")
        if node.capability.startswith("sample.") and isinstance(wanted, int) and rows and wanted > rows:
            ask("size", "size", ("all",), blocking=False, wanted=wanted, rows=rows)
