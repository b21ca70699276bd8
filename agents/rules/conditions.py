"""Conditions on columns in a request, as expressions: `rating >= 4 and lang == "en"`, "where score is above 0.5"."""

import re

from datamill.agents.rules.columns import column_for, implied_roles
from datamill.agents.rules.intents import polarity
from datamill.agents.rules.nodes import Node
from datamill.agents.rules.reading import Reading

_RESERVED = frozenset(
    [
        "target",
        "seed",
        "semente",
        "semilla",
        "threshold",
        "limiar",
        "umbral",
        "beta",
        "lr",
        "rate",
        "r",
        "rank",
        "similarity",
        "jaccard",
        "ngram",
        "n",
        "k",
        "epochs",
        "epoch",
        "batch",
        "size",
        "model",
        "modelo",
        "key",
        "token",
        "password",
        "cutoff",
        "ratio",
        "alpha",
        "words",
        "chars",
        "characters",
        "tokens",
        "rows",
        "steps",
        "step",
        "warmup",
        "temperature",
        "overlap",
        "timeout",
        "p",
        "ppl",
        "perplexity",
        "cos",
        "cosine",
        "eps",
        "rouge",
        "scale",
        "t",
        "temp",
        "and",
        "or",
        "with",
        "than",
        "is",
        "if",
        "where",
        "keep",
        "only",
    ]
)
_SYMBOLS = re.compile(
    r"(?<![\w.>-])(?P<column>[A-Za-z_]\w*)\s?(?P<sign>>=|<=|==|!=|=|>(?!>)|<(?!<)|≥|"
    r"≤)\s?(?P<value>\"[^\"]{1,40}\"|'[^']{1,40}'|-?\d+(?:[.,]\d+)?|[A-Za-z_]\w*)(?![\w>=]|\s?->)"
)
_WORDS = re.compile(
    r"(?:where|with|whose|if|when|having|have|has|onde|com|cuja?|con|donde|cuy[oa]|que tengan?|"
    r"que tenham?|tienen|tem)\s+(?:the |an? |o |a |el |la |un |una |um |uma |its |their "
    r")?(?P<column>[a-z_]\w*)(?: (?:column|field|score|coluna|columna))?\s+"
    r"(?:is |are |of |es |e |sea |seja |de )?(?P<words>at least|at most|above|over|below|under|"
    r"greater than|higher than|more than|less than|lower than|equal to|equals|maior que|menor que|"
    r"mayor que|acima de|abaixo de|pelo menos|al menos|por encima de|por debajo de|superior a|"
    r"inferior a)\s+(?P<value>-?\d+(?:[.,]\d+)?)(?!\s?(?:%|words|char|token|palavra|palabra|"
    r"caracter|turn|row|linha|fila))"
)
_HAN = re.compile(
    r"(?P<column>[A-Za-z_]\w*)\s?(?:列|字段|分数?)?\s?(?P<words>大于等于|小于等于|大于|小于|"
    r"高于|低于|不低于|不高于|等于|"
    r"至少)\s?(?P<value>\d+(?:\.\d+)?)"
)
_TEXT = re.compile(
    r"(?:(?:the|a|o|la|el|whose|where|that|which|rows|cuja?|cuy[oa])\s+)?(?P<column>[A-Za-z_]\w*|"
    r"[一-鿿]{2,4})(?: (?:column|field))?\s*(?:列|字段)?\s*"
    r"(?P<words>starts? with|begins? with|ends? with|contains?|includes?|mentions?|comeca\w* com|termina\w* com|"
    r"contem|contenha\w*|empieza\w* con|"
    r"comienza\w* con|contien\w+|contenga\w*|以|包含|含有)\s+?(?:the (?:word|phrase|text|string) |the |a palavra |"
    r"la palabra )?$"
)
_FUNCTIONS = (("starts_with", r"start|begin|comec|empiez|comienz|以"), ("ends_with", r"end|termin"), ("contains", r""))
_SIGNS = {
    "at least": ">=",
    "at most": "<=",
    "above": ">",
    "over": ">",
    "greater than": ">",
    "higher than": ">",
    "more than": ">",
    "below": "<",
    "under": "<",
    "less than": "<",
    "lower than": "<",
    "equal to": "==",
    "equals": "==",
    "maior que": ">",
    "mayor que": ">",
    "acima de": ">",
    "por encima de": ">",
    "superior a": ">",
    "menor que": "<",
    "abaixo de": "<",
    "por debajo de": "<",
    "inferior a": "<",
    "pelo menos": ">=",
    "al menos": ">=",
    "大于等于": ">=",
    "小于等于": "<=",
    "大于": ">",
    "小于": "<",
    "高于": ">",
    "低于": "<",
    "不低于": ">=",
    "不高于": "<=",
    "等于": "==",
    "至少": ">=",
    "=": "==",
    "≥": ">=",
    "≤": "<=",
}


def condition_nodes(reading: Reading) -> list[Node]:
    """One `filter.expr` from all conditions on columns; those that say what goes are negated."""
    found = _conditions(reading)
    if not found:
        return []
    expressions = [text for _, text in found]
    start = found[0][0]
    drops = polarity(reading.request, start, start) == "drop"
    joined = " and ".join(expressions)
    if re.search(r"\bor\b|\bou\b|\bo\b|或", reading.request.masked[start : found[-1][0]]) and len(found) > 1:
        joined = " or ".join(expressions)
    for quantity in reading.numbers:
        if found[0][0] <= quantity.start <= found[-1][0] + 60 and any(
            f" {quantity.value:g}" in text for text in expressions
        ):
            reading.take(quantity)
    return [
        Node(
            "filter.expr",
            {"expr": f"not ({joined})" if drops else joined},
            start,
            reading.request.quote(start, start + 1),
        )
    ]


def _conditions(reading: Reading) -> list[tuple[int, str]]:
    """`(position, expression)` of every condition, in order."""
    symbols = [
        (match.start(), _expression(reading, match, match["sign"]))
        for match in _SYMBOLS.finditer(reading.request.text)
        if not _taken(reading, match) and _comparable(match["sign"], match["value"])
    ]
    words = [
        (match.start(), _expression(reading, match, match["words"]))
        for pattern in (_WORDS, _HAN)
        for match in pattern.finditer(reading.request.masked)
        if not _taken(reading, match)
    ]
    return sorted(dict(symbols + words + _quoted(reading) + _equal(reading)).items())


_EQUAL = re.compile(
    r"(?:where|whose|onde|donde|cuja|cujo|cuya|cuyo|with)\s+(?:the |o |a |el |la )?(?P<column>[A-Za-z_]\w*) (?:is|"
    r"are|equals|é|es|e|==?)(?: either)? "
    r"(?P<values>[\"']?[\w-]+[\"']?(?:(?:, | or | ou | o )[\"']?[\w-]+[\"']?){0,5})(?=\s*(?:[,.;]|$|and\b|then\b|"
    r"in\b|from\b))"
)
_NO_VALUE = re.compile(
    r"(?:missing|empty|null|blank|nan|not|in|too|short\w*|long\w*|less|more|over|under|above|below|at|the|"
    r"duplicat\w*|repeat\w*|wrong|bad|good|same|"
    r"identical|vazi[oa]|vaci[oa]|vac[ií][oa]|toxic|correct|incorrect|english|spanish|chinese|portuguese|likely|very|"
    r"spam|true|false|\d[\d.,]*)",
    re.IGNORECASE,
)


def _equal(reading: Reading) -> list[tuple[int, str]]:
    """`whose license is MIT or Apache`: equality with bare values."""
    found = []
    for match in _EQUAL.finditer(reading.request.text):
        values = [value.strip("\"'") for value in re.split(r", | or | ou | o ", match["values"])]
        if any(_NO_VALUE.fullmatch(value) for value in values) or _taken(reading, match):
            continue
        listed = ", ".join(f'"{value}"' for value in values)
        column = match["column"]
        found.append((match.start("column"), f"{column} in [{listed}]" if len(values) > 1 else f"{column} == {listed}"))
    return found


def _quoted(reading: Reading) -> list[tuple[int, str]]:
    """`where the answer starts with "As an AI"`: a text function on a quoted piece."""
    found = []
    for span in reading.request.quoted:
        match = _TEXT.search(reading.request.masked[: span.start])
        if match is None:
            continue
        column = reading.request.text[match.start("column") : match.end("column")]
        role = next(
            iter(implied_roles(reading.request, match.start("column"), match.end("column"), match.span("column"))), None
        )
        plain = column_for(role, reading.facts) if role and not any(n == column for n, _ in reading.columns) else None
        if column.lower() in {
            "that",
            "which",
            "rows",
            "lines",
            "it",
            "text",
            "texts",
            "docs",
            "documents",
            "que",
            "linhas",
            "filas",
        }:
            plain = (reading.text() or ("text",))[0]
        name = next(name for name, pattern in _FUNCTIONS if re.match(pattern, match["words"]))
        found.append((match.start("column"), f'{name}({plain or column}, "{span.text}")'))
    return found


def _taken(reading: Reading, match: re.Match[str]) -> bool:
    column = match["column"].lower()
    inside = any(s.start <= match.start() < s.end for s in (*reading.request.paths, *reading.request.urls))
    following = reading.request.masked[match.end() : match.end() + 14]
    unit = re.match(r"\s?(?:%|words|char|token|palavra|palabra|caracter|turn|gram|字|词|轮)", following)
    return column in _RESERVED or inside or unit is not None


def _comparable(sign: str, value: str) -> bool:
    """`a = b` with bare words is rarely a condition; `lang == en` is."""
    return sign != "=" or value[0] in "\"'-0123456789"


def _expression(reading: Reading, match: re.Match[str], words: str) -> str:
    column = reading.request.text[match.start("column") : match.end("column")]
    value = match["value"]
    if re.fullmatch(r"-?\d+(?:[.,]\d+)?", value):
        value = value.replace(",", ".")
    elif value.lower() not in {"true", "false", "null"}:
        value = '"' + value.strip("\"'") + '"'
    return f"{column} {_SIGNS.get(words, words)} {value}"
