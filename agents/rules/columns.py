"""Column names in a request: named outright, or implied by nouns such as "answers" and 指令.

With an inspection only columns of the file are chosen; without one the names usual in the field stand in.
"""

import re

from datamill.agents.inspection import InputFacts, Inspection, Role
from datamill.agents.rules.request import Request
from datamill.agents.rules.vocabulary import DROP, KEEP

_WORD = r"[\"'`“‘「]?(?P<name>[A-Za-z_](?:[\w.-]*\w)?|[一-鿿]{1,6})[\"'`”’」]?"
_COLUMN = r"(?:columns?|fields?|cols?|colunas?|columnas?|campos?)"
_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        (
            rf"{_COLUMN} (?:(?:is |are |é |e |es |se |que se )?(?:called|named|chama(?:da|do)?|llama(?:da|"
            rf"do)?) ?|(?:is|are|é|es) (?=[\"'`]?\w+[\"'`]?\s*(?:[,.;)]|$|and\b|e\b|y\b))|[:=] ?)? ?{_WORD}"
        ),
        (
            rf"(?:the |da |do |na |no |a |o |la |el )?{_WORD} {_COLUMN}(?![\w])(?!\s*(?:is |are |é |e |es |"
            rf"que |se )*(?:called|named|chama|llama|=|:|is\b(?= [\"'`]?\w+[\"'`]?\s*(?:[,.;)]|$|and\b))"
            rf"(?! (?:blank|empty|null|missing|filled|present|true|false))))"
        ),
        (
            rf"(?:texts?|textos?|predictions?|answers?|questions?|gold|references?|instructions?|prompts?|"
            rf"responses?|outputs?|respostas?|respuestas?|perguntas?|preguntas?) (?:is |are |lives? |está |"
            rf"esta |estan |estao |stored )+(?:in|under|em|en) {_WORD}(?= |,|\.|$)"
        ),
        (
            rf"(?:where|when|whose|onde|donde|cuando|quando) (?:the |o |a |el |la |both "
            rf")*{_WORD}(?!\w)(?=(?:\s*(?:,|and|e|y|&) ?[\w-]+)* (?:is|est[aáeé]\w*|are|both|match|agree|repeat|sao|"
            rf"são|é|son|"
            rf"es|coincid))"
        ),
        (
            r"(?<![\w.])(?P<name>[A-Za-z_]\w*) (?:is|are|é|es|está|esta) (?:missing|null|empty|blank|nan|NaN|vazi[oa]|"
            r"vac[ií][oa])\b"
        ),
        r"(?:^|[\s，,。、：:按在把对用])(?P<name>[一-鿿]{1,6})\s(?:这一?)?(?:列|字段)",
        r"[\"'`“「]?(?P<name>[A-Za-z_][\w-]*)[\"'`”」]?\s?(?:这|那|两|三|四|几|个|一)*(?:列|字段)",
        (
            r"(?:cast|convert|turn|change|parse)\s+(?:the )?[\"'`“]?(?P<name>[A-Za-z_]\w*)[\"'`”]?(?: columns?|"
            r" fields?)?\s+"
            r"(?:in)?to\s+(?:an? )?(?:int|float|num|str|bool)"
        ),
        (
            r"(?<![\w.])(?P<name>[A-Za-z_]\w*)\s?(?:都|也)?(?:为空|为 ?null|是空|非空|缺失|里的?|中的?|内容|"
            r"完全(?:相同|重复|一样)|"
            r"重复|相同|一样|太短|太长|长度|字数|少于|不足|短于|长于)"
        ),
        r",\s*(?:by|on|por) (?:the )?(?P<name>[A-Za-z_]\w*)(?= ?(?:,|&|\+|(?:and|together|combined|instead|juntos)\b))",
        (
            r"(?:\b(?:in|on|by|over|using|under|is|em|en|no|na|por|and|e|y|against|vs|with|contra|com|con|from|called)|"
            r"[=,:])\s*(?:the |both |o |a |el |la )?[\"'`](?P<name>[A-Za-z_]\w*)[\"'`]"
        ),
        r"(?:列名?|字段)(?:是|为|叫|:|：)\s?[\"'`“「]?(?P<name>[A-Za-z_][\w-]*|[一-鿿]{1,4})[\"'`”」]?",
        r"(?:列名?|字段)\s?[\"'`“「]?(?P<name>[A-Za-z_][\w-]*)[\"'`”」]?",
        (
            r"(?:de-?dup\w*|near-?dup\w*|exact|minhash|duplic\w*|duplicad\w*|unique|uniq|去重) (?:[^\s,;]+ "
            r"){0,3}?(?:by|on|based on|using|por|pelo|pela|segun|con base en) (?:the |o |a |el |la |its "
            r")?[\"'`“]?(?P<name>[A-Za-z_][\w-]*)[\"'`”]?"
        ),
        r"(?:按|根据|基于)\s?[\"'`“]?(?P<name>[A-Za-z_][\w-]*)[\"'`”]?\s?(?:列|字段)?[一-鿿]{0,4}?(?:去重|分层|均衡)",
    )
)
_MORE = re.compile(
    rf"^\s*(?:,\s*(?:and|e|y)(?=\s)|,|/|&|和|与|、|\+|(?:and|e|y|or|ou|o)(?=\s))\s*{_WORD}", re.IGNORECASE
)
_STOP = frozenset(
    [
        "the",
        "a",
        "an",
        "and",
        "or",
        "of",
        "in",
        "is",
        "are",
        "all",
        "each",
        "every",
        "other",
        "only",
        "just",
        "text_",
        "column",
        "columns",
        "field",
        "fields",
        "called",
        "named",
        "o",
        "as",
        "os",
        "um",
        "uma",
        "e",
        "y",
        "el",
        "la",
        "los",
        "las",
        "de",
        "do",
        "da",
        "un",
        "una",
        "that",
        "this",
        "with",
        "for",
        "by",
        "to",
        "from",
        "which",
        "my",
        "our",
        "its",
        "their",
        "que",
        "nao",
        "sem",
        "com",
        "con",
        "sin",
        "por",
        "exact",
        "near",
        "minhash",
        "pela",
        "pelo",
        "pelas",
        "pelos",
        "nossa",
        "nosso",
        "nuestra",
        "esa",
        "essa",
        "esta",
        "este",
        "cada",
        "hay",
        "there",
        "any",
        "das",
        "dos",
        "mas",
        "pero",
        "e",
        "ou",
        "sem",
        "del",
        "al",
        "se",
        "si",
        "en",
        "em",
        "na",
        "no",
        "nas",
        "nos",
        "what",
        "where",
        "when",
        "than",
        "as",
        "at",
        "is",
        "it",
        "i",
        "we",
        "you",
        "first",
        "new",
        "key",
        "same",
        "both",
        "two",
        "three",
        "these",
        "those",
        "extra",
        "unused",
        "any",
        "each",
        "single",
        "target",
        "language",
        "only",
        "id_",
        "keep",
        "drop",
        "remove",
        "delete",
        "select",
        "apenas",
        "solo",
        "chama",
        "llama",
        "se",
        "not",
        "if",
        "then",
        "also",
        "but",
        "into",
        "blank",
        "empty",
        "null",
        "missing",
        "vazia",
        "vazio",
        "vacia",
        "vacío",
        "on",
        "over",
        "using",
        "per",
        "across",
        "json",
        "csv",
        "tsv",
        "pdf",
        "html",
        "logs",
        "log",
        "data",
        "dataset",
        "llm",
        "gpt",
        "sft",
        "dpo",
        "lora",
        "hash",
        "ngram",
        "gram",
        "token",
        "tokens",
        "jaccard",
        "threshold",
        "meaning",
        "embedding",
    ]
)

_NOUNS: tuple[tuple[Role, str], ...] = (
    (
        "instruction",
        (
            r"\binstructions?\b(?! (?:set|data|tun|follow|dataset|pairs))|\bprompts?\b|\binstruc(?:ao|oes|"
            r"cion|ciones)\b|指令(?!集|数据|微调)|提示词"
        ),
    ),
    (
        "output",
        (
            r"\boutputs?\b(?! (?:to|dir|path|file|folder|as|in))|\banswers?\b|\bresponses?\b|\brepl(?:y|"
            r"ies)\b|\bcompletions?\b|\brespostas?\b|\brespuestas?\b|\bsaidas?\b|\bsalidas?\b|输出(?!到|为|成)|"
            r"回答|回复|答复"
        ),
    ),
    ("question", r"\bquestions?\b|\bproblems?\b|\bperguntas?\b|\bpreguntas?\b|\bproblemas?\b|问题|题目"),
    ("messages", r"\bconversations?\b|\bdialog\w*|\bchats?\b|\bconversas?\b|\bconversaciones\b|对话|会话"),
)
CONVENTION: dict[Role, str] = {
    "instruction": "instruction",
    "output": "output",
    "question": "question",
    "answer": "answer",
    "messages": "messages",
    "text": "text",
    "solution": "solution",
    "source": "source",
    "score": "score",
    "chosen": "chosen",
    "rejected": "rejected",
    "input": "input",
    "prediction": "prediction",
    "language": "lang",
    "id": "id",
}


def named_columns(request: Request) -> tuple[tuple[str, int], ...]:
    """`(name, position)` of columns the request names outright, in order.

    >>> [name for name, _ in named_columns(Request("tire CPF das colunas pergunta e resposta"))]
    ['pergunta', 'resposta']
    """
    found: dict[int, str] = {}
    for pattern in _PATTERNS:
        for match in pattern.finditer(request.text):
            name, start = match["name"], match.start("name")
            if _acceptable(name) and not _is_path(request, start):
                found.setdefault(start, name)
                if re.search(
                    r"columns|fields|cols|colunas|columnas|campos|列|字段|\b(?:by|por|on|where|when|onde|donde)\b",
                    match.group(),
                    re.IGNORECASE,
                ):
                    _add_listed(request, match.end(), found)
                    _add_earlier(request, match.start("name"), match.group(), found)
    _add_repeated(request, found)
    return tuple((found[start], start) for start in sorted(found))


def _add_repeated(request: Request, found: dict[int, str]) -> None:
    """A column once named is meant again by `from message only` or `on message`."""
    for name in {name for name in found.values() if len(name) >= 3 and name.isascii()}:
        again = re.compile(
            rf"(?:\b(?:in|on|by|from|of|over|em|na|no|en|por|da|do|de|del|leave|the|la|el|a|"
            rf"o)\s+)(?P<name>{re.escape(name)})(?![\w.])"
        )
        for match in again.finditer(request.text):
            if not _is_path(request, match.start("name")):
                found.setdefault(match.start("name"), name)


def _acceptable(name: str) -> bool:
    return name.lower() not in _STOP and not re.fullmatch(
        r"columns?|fields?|colunas?|columnas?|campos?|(?:verify|check|compar|validat|fix|clean|dedup|normali[sz]|"
        r"strip|redact|"
        r"translat|anonymi[sz]|renam|cast|conver|remov)\w*",
        name,
        re.IGNORECASE,
    )


def _is_path(request: Request, position: int) -> bool:
    return any(span.start <= position < span.end for span in (*request.paths, *request.urls))


def _add_listed(request: Request, end: int, found: dict[int, str]) -> None:
    """Take `b` and `c` of `columns a, b and c`."""
    while match := _MORE.match(request.text[end:]):
        start = end + match.start("name")
        bare = "," in match.group()[: match.start("name")] and not re.search(
            r"\b(?:and|e|y)\b", match.group()[: match.start("name")]
        )
        if bare and not re.match(
            r"\s*(?:[,.;:)，。；、]|$|(?:and|e|y|&|columns?|fields?|colunas|columnas)\b|和|与)",
            request.text[end + match.end() :],
        ):
            return
        if not _acceptable(match["name"]) or _is_path(request, start) or _is_verb(request, start, end + match.end()):
            return
        found.setdefault(start, match["name"])
        end += match.end()


def _add_earlier(request: Request, start: int, matched: str, found: dict[int, str]) -> None:
    """Take `a` of `the a and b columns`."""
    if not re.search(r"(?:columns|fields|colunas|columnas|campos|列|字段)$", matched, re.IGNORECASE):
        return
    before = re.search(r"[\"'`“]?([A-Za-z_][\w-]*)[\"'`”]?\s*(?:,|and|e|y|&|和|与)\s*[\"'`“]?$", request.text[:start])
    if before and _acceptable(before.group(1)):
        found.setdefault(before.start(1), before.group(1))


def _is_verb(request: Request, start: int, end: int) -> bool:
    """A listed word that begins the next wish (`column body, keep ...`) is no column."""
    word = request.folded[start:end].strip("\"'`")
    verbs = (
        r"(?:keep|remov|drop|writ|sav|export|split|sampl|train|translat|filter|dedup|then|mant|fiqu|"
        r"salv|divid|guard|quit|elimin|conserv|mask|replace|output|use|report|only|no|don|min|max|at|"
        r"shuffl|sort|giv|tak|drop|scrub|redact|convert|format|check|verif|fix|merg|also|finally|then|"
        r"embaralh|baraj|orden|tira|remov|apag|exporta|traduz|traduc|amostr|muestr|"
        r"case|ignor|threshold|seed)[\w-]*"
    )
    return re.fullmatch(verbs, word) is not None or re.fullmatch(rf"(?:{DROP})|(?:{KEEP})", word) is not None


def implied_roles(request: Request, start: int, end: int, around: tuple[int, int]) -> tuple[Role, ...]:
    """Roles of the nouns in `[start, end)`, nearest to the words at `around` first."""
    hits = [
        (max(around[0] - match.end() - start, start + match.start() - around[1], 0), role)
        for role, pattern in _NOUNS
        for match in re.finditer(pattern, request.masked[start:end])
    ]
    return tuple(dict.fromkeys(role for _, role in sorted(hits)))


def column_for(role: Role, facts: InputFacts | None) -> str | None:
    """The column that plays `role`: from the inspected file, else the usual name; None when the file has none."""
    if facts is None or not facts.columns:
        return CONVENTION[role]
    found = facts.column(role)
    if found:
        return found
    stand_in: dict[Role, tuple[Role, ...]] = {
        "output": ("answer", "solution"),
        "instruction": ("question",),
        "question": ("instruction", "text"),
        "answer": ("output", "solution"),
        "solution": ("answer", "output"),
    }
    return next((name for other in stand_in.get(role, ()) if (name := facts.column(other))), None)


def text_columns(facts: InputFacts | None, instruction_like: bool) -> tuple[str, ...]:
    """Columns a text operator reads when the request names none.

    Args:
        facts: the inspected file.
        instruction_like: without inspection, whether the request speaks of instruction data.
    """
    if facts is None or not facts.columns:
        return ("instruction", "output") if instruction_like else ("text",)
    if facts.column("text"):
        return (str(facts.column("text")),)
    pairs = [facts.column(role) for role in ("instruction", "question", "output", "solution", "answer")]
    chosen = tuple(dict.fromkeys(name for name in pairs if name and _is_text(facts, name)))
    if chosen:
        return chosen
    longest = sorted((c for c in facts.columns if c.dtype == "string"), key=lambda c: -c.mean_chars)
    return (longest[0].name,) if longest else ()


def _is_text(facts: InputFacts, name: str) -> bool:
    return any(column.name == name and column.dtype == "string" for column in facts.columns)


def facts_for(inspection: Inspection | None, path: str | None = None) -> InputFacts | None:
    """Facts of the input at `path`, or of the first one."""
    if inspection is None or not inspection.inputs:
        return None
    return next((facts for facts in inspection.inputs if facts.path == path), inspection.inputs[0])
