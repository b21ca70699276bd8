"""Numbers in a request: value, unit, comparison, and where they stand.

Reads `5,000`, `20k`, `0,85` (Portuguese, Spanish), `1.2e-4`, `15 %`, `百分之二十`, `三轮`, `two`, `50M tokens`.
A comma or point before three digits separates thousands or decimals by the language of the request.
"""

import re
from dataclasses import dataclass, replace

from datamill.agents.rules.request import Request

Number = int | float

_SCALE = {
    "k": 10**3, "mil": 10**3, "thousand": 10**3, "m": 10**6, "million": 10**6, "mi": 10**6, "milhoes": 10**6,
    "milhao": 10**6, "millones": 10**6, "millon": 10**6, "b": 10**9, "billion": 10**9, "bilhoes": 10**9,
    "千": 10**3, "万": 10**4, "百万": 10**6, "亿": 10**8,
}  # fmt: skip
_WORDS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "twelve": 12, "twenty": 20, "fifty": 50, "hundred": 100, "once": 1, "twice": 2, "thrice": 3,
    "dois": 2, "duas": 2, "tres": 3, "quatro": 4, "cinco": 5, "seis": 6, "sete": 7, "oito": 8, "nove": 9, "dez": 10,
    "dos": 2, "cuatro": 4, "siete": 7, "ocho": 8, "nueve": 9, "diez": 10, "veinte": 20, "vinte": 20,
    "cien": 100, "cem": 100,
}  # fmt: skip
_FOREIGN = {"pt": ("dos", "once", "one", "ten"), "es": ("one", "ten", "once"), "en": ("dos", "tres", "mil", "cem")}
"""Number words that mean something else in a language: `dos` is "of the" in Portuguese."""
_HAN = {"零": 0, "一": 1, "二": 2, "两": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9}
_HAN_NUMBER = r"[零一二两三四五六七八九十百千万]+"

_NUMBER_RE = re.compile(
    r"(?<![\w.])(?P<num>\d+(?:\.\d+)?e[-+]?\d+|[1-9]\d{0,2}(?:,\d{3})+(?!\d)(?:\.\d+)?|"
    r"[1-9]\d{0,2}(?:\.\d{3})+(?!\d)(?:,\d+)?|\d+[.,]\d+|\d+|\.\d+)"
    r"(?:\s?(?P<scale>k|mil|thousand|million|milhoes|milhao|millones|millon|billion|bilhoes|"
    r"mi|m|b|百万|千|万|亿)(?![a-z]))?"
)
_NUMBER_AFTER_HAN_RE = re.compile(r"(?<=[一-鿿])(?P<num>\d+(?:\.\d+)?)(?:\s?(?P<scale>k|m|b|百万|千|万|亿)(?![a-z]))?")
_WORD_RE = re.compile(rf"(?<![a-z])(?P<word>{'|'.join(sorted(_WORDS, key=len, reverse=True))})(?![a-z])")
_HAN_RE = re.compile(
    rf"(?P<han>{_HAN_NUMBER})(?=\s?(?:轮|个|条|字|词|遍|次|步|行|倍|篇|种|句|段|份|组|样本|类|成|epoch|token|gram))"
)
_FRACTION_RE = re.compile(r"(?<![\d./])(?P<part>\d)/(?P<whole>\d{1,3})(?=\s*(?:of|de|do|da|das|dos|del|的)(?![a-z]))")
_SHARE_WORDS = {"half": 50, "third": 33.333333, "quarter": 25, "fifth": 20, "tenth": 10, "metade": 50, "mitad": 50}
_SHARE_WORD_RE = re.compile(
    r"(?:worst|best|bottom|top|lowest|highest|pior|melhor|peor|mejor) (?P<word>half|third|quarter|fifth|tenth|"
    r"metade|mitad)\b"
)
_PERCENT_HAN_RE = re.compile(rf"百分之\s?(?P<num>\d+(?:\.\d+)?|{_HAN_NUMBER})")

UNITS: tuple[tuple[str, str], ...] = (
    ("percent", r"\s?(?:%|percent\b|per\s?cent\b|por\s?cent[oa]\b|porcento\b|pct\b|个百分点)"),
    ("tenths", r"\s?成(?!为)"),
    (
        "gram",
        (
            r"[\s-]?(?:(?:words?|chars?|characters?|tokens?)[\s-])?(?:shingles?|n?-?grams?)(?![a-z])|"
            r"[\s-]?(?:gram(?:a)?s?|n-?gram(?:a)?s?|grams?|元(?!数)|字gram)(?![a-z])"
        ),
    ),
    ("chars", r"\s?-?(?:characters?|chars?|caracter(?:e|es)?|letters?|个?字符|个?字(?!段|典))"),
    ("words", r"\s?-?(?:words?|palavras?|palabras?|个?单?词(?!表))"),
    ("tokens", r"\s?-?(?:tokens?|个?token|个?词元)"),
    ("turns", r"\s?-?(?:turns?|turnos?|rounds? of (?:dialog|conversation)\w*|轮(?:以上|以下|对话|的|$|,)?)"),
    ("epochs", r"\s?-?(?:epochs?|epocas?|passes over|个?\s?epoch|个?轮次)"),
    (
        "warmup",
        (
            r"\s?-?(?:warm-?\s?up steps?|steps? (?:of )?warm-?\s?up|passos de (?:warmup|aquecimento)|"
            r"pasos de (?:warmup|calentamiento))"
        ),
    ),
    ("steps", r"\s?-?(?:(?:training |optimizer |optimiser )?steps?|passos?|pasos?|iterations?|iters?|iterac\w+|步)"),
    (
        "rounds",
        (
            r"\s?-?(?:(?:update |selection |refresh )?rounds?|rodadas?|rondas?|updates?|refreshes|selections|"
            r"actualizaciones|atualizac\w+|"
            r"times|vezes|veces|次|遍)"
        ),
    ),
    ("permutations", r"\s?-?(?:permutations?|perms?|hash(?:es)?(?: functions)?|permutac\w+|个?哈希(?:函数)?)"),
    ("bands", r"\s?-?(?:bands?|bandas?)"),
    ("votes", r"\s?-?(?:votes?|votos?|票)"),
    (
        "rows",
        (
            r"\s?-?(?:(?:random |rarest |best |top |unique |different |aleatori\w+ |new |raw )*"
            r"(?:rows?|samples?|examples?|records?|docs?|documents?|linhas?|filas?|exemplos?|ejemplos?|"
            r"registros?|amostras?|"
            r"muestras?|instructions?|instruc\w+|pairs?|pares|texts?|questions?|problems?|intents?|"
            r"entries|items|lines?|"
            r"documentos?|perguntas?|preguntas?|conversations?|conversas?|conversaciones)|条|行|个?样本|篇|个?例子|份)"
        ),
    ),
    ("dims", r"\s?-?(?:dims?|dimensions?|dimens\w+|d\b|维)"),
    ("money", r"\s?-?(?:usd|dollars?|dolar(?:es)?|\$|eur|euros?|美元|美金)"),
    ("minutes", r"\s?-?(?:minutes?|mins?|minutos?|分钟)"),
)
_UNIT_RE = tuple((unit, re.compile(pattern)) for unit, pattern in UNITS)

_BEFORE = (
    (
        "le",
        (
            r"(?:at most|no more than|not more than|up to|max(?:imum)?(?:imo|ima)?(?: of| de)?|<=|≤|no "
            r"maximo|ate|como (?:maximo|mucho)|a lo sumo|hasta|"
            r"不超过|最多|至多|不多于|上限|最大)"
        ),
    ),
    (
        "ge",
        (
            r"(?:at least|no (?:less|fewer) than|min(?:imum|imo|ima)?\.?(?: of| de)?|>=|≥|no minimo|pelo "
            r"menos|ao menos|al menos|como minimo|por lo menos|"
            r"至少|不少于|不低于|最少|最低|不小于|下限)"
        ),
    ),
    (
        "lt",
        (
            r"(?:less than|fewer than|shorter than|smaller than|lower than|under|below|<|menos de|"
            r"men(?:or|ores) (?:que|do que|de|a)|"
            r"mais (?:curt\w+|baix\w+) (?:que|do que)|mas (?:cort\w+|baj\w+) (?:que|de)|abaixo de|debajo "
            r"de|inferior(?:es)? a|少于|低于|小于|不足|不到|短于|不满)"
        ),
    ),
    (
        "gt",
        (
            r"(?:more than|longer than|larger than|greater than|higher than|over|above|exceed\w*|>|mais "
            r"de|maior(?:es)? (?:que|do que)|mais long\w+ (?:que|do que)|"
            r"acima de|mas de|mayor(?:es)? (?:que|de|a)|mas larg\w+ (?:que|de)|por encima de|"
            r"superior(?:es)? a|超过|多于|大于|高于|长于|超出)"
        ),
    ),
)
_BEFORE_RE = tuple(
    (
        sign,
        re.compile(r"(?<![a-z])" + pattern + r"\s*(?:the |of |de |os |las |los |as |取|抽取?|保留|留|选|只?要)?\s*$"),
    )
    for sign, pattern in _BEFORE
)
_AFTER = (
    (
        "ge",
        (
            r"\s?(?:\w+ )?(?:or (?:more|above|higher|better|longer|greater)|and (?:up|above|more|over)|ou "
            r"mais|o mas\b|para cima|en adelante|分?或以上|分?及以上|分?以上)|\+"
        ),
    ),
    ("lt", r"\s?(?:or (?:less|fewer|below|shorter|lower)|ou menos|o menos\b|分?以下)"),
    ("le", r"\s?(?:max(?:imum|imo)?\b|以内|之内|tops\b|no maximo|como maximo)"),
    ("ge", r"\s?(?:min(?:imum|imo)?\b|no minimo|como minimo)"),
)
_AFTER_RE = tuple((sign, re.compile(pattern)) for sign, pattern in _AFTER)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number of the request.

    Attributes:
        value: int where written whole, else float; percentages as written (20 for 20 %).
        unit: one of `UNITS` or an empty string.
        sign: `lt`, `le`, `ge`, `gt` or an empty string.
        start: first character in the request.
        end: one past the unit.
    """

    value: Number
    unit: str
    sign: str
    start: int
    end: int

    @property
    def share(self) -> float:
        """As a share of one: 0.2 for `20 %`, unchanged for `0.2`."""
        return round(self.value / 100, 6) if self.unit == "percent" else float(self.value)


_NEGATIVE = re.compile(r"(?:[a-z一-鿿]|[=:(])\s?(?<!\w-)(?<![\d])(?:(?<=\s)|(?<=[=:(]))-$")


def quantities(request: Request) -> tuple[Quantity, ...]:
    """Every number of a request outside paths, addresses and identifiers, in order."""
    text = request.masked
    found: dict[int, Quantity] = {}
    for match in (*_NUMBER_RE.finditer(text), *_NUMBER_AFTER_HAN_RE.finditer(text)):
        value = _value(match["num"], match["scale"], request.language)
        sign = -1 if _NEGATIVE.search(text[: match.start()]) else 1
        found.setdefault(match.start(), _placed(text, sign * value, match.start(), match.end()))
    found = {start: quantity for start, quantity in found.items() if not _one_per(text, quantity)}
    for quantity in _shares(text):
        found = {start: q for start, q in found.items() if not quantity.start <= start < quantity.end}
        found[quantity.start] = quantity
    for quantity in (*_han_numbers(text), *_spelled(text, request.language)):
        if not any(q.start <= quantity.start < q.end for q in found.values()):
            found[quantity.start] = quantity
    return tuple(found[start] for start in sorted(found))


def _shares(text: str) -> list[Quantity]:
    """`1/10 of`, 百分之二十: percentages that are not written with a sign."""
    found = [
        Quantity(_whole(round(100 * int(m["part"]) / int(m["whole"]), 6)), "percent", "", m.start(), m.end())
        for m in _FRACTION_RE.finditer(text)
        if 0 < int(m["part"]) < int(m["whole"])
    ]
    found += [
        Quantity(_SHARE_WORDS[m["word"]], "percent", "", m.start(), m.end()) for m in _SHARE_WORD_RE.finditer(text)
    ]
    for match in _PERCENT_HAN_RE.finditer(text):
        value = float(match["num"]) if match["num"][0].isdigit() else float(_han(match["num"]))
        placed = _placed(text, _whole(value), match.start(), match.end())
        found.append(replace(placed, unit="percent"))
    return found


def _whole(value: float) -> Number:
    return int(value) if value == int(value) else value


def _han_numbers(text: str) -> list[Quantity]:
    return [_placed(text, _han(match["han"]), match.start(), match.end()) for match in _HAN_RE.finditer(text)]


def _spelled(text: str, language: str) -> list[Quantity]:
    """Number words with a unit, with `per`, or that are a count by themselves (`twice`)."""
    found = []
    for match in _WORD_RE.finditer(text):
        quantity = _placed(text, _WORDS[match["word"]], match.start(), match.end())
        per = re.match(
            r"\s*(?:[a-z]+ )?(?:per|for each|for every|each|por|a cada|para cada|de cada)\b", text[match.end() :]
        )
        counts = quantity.unit or per or match["word"] in {"once", "twice", "thrice"}
        if counts and match["word"] not in _FOREIGN.get(language, ()) and not _one_per(text, quantity):
            found.append(replace(quantity, unit=quantity.unit or ("" if per else "rounds")))
    return found


def _one_per(text: str, quantity: Quantity) -> bool:
    """Whether this is the `one` of "one record per section", which counts nothing."""
    return quantity.value == 1 and re.match(r"\s*(?:per|for each|por|para cada)\b", text[quantity.end :]) is not None


def _value(number: str, scale: str | None, language: str) -> Number:
    value = _plain_number(number, language)
    if scale:
        value *= _SCALE[scale]
    if isinstance(value, float) and value == int(value) and (scale or value >= 1) and "." not in number:
        return int(value)
    return round(value, 12) if isinstance(value, float) else value


def _plain_number(number: str, language: str) -> Number:
    comma_decimal = language in {"pt", "es"}
    if "e" in number:
        return float(number)
    if number.count(",") + number.count(".") > 1 or (re.fullmatch(r"[1-9]\d{0,2},\d{3}", number) and not comma_decimal):
        thousands = (
            "," if number.find(",") != -1 and (number.find(",") < number.find(".") or "." not in number) else "."
        )
        plain = number.replace(thousands, "").replace(",", ".")
        return float(plain) if "." in plain else int(plain)
    if re.fullmatch(r"[1-9]\d{0,2}\.\d{3}", number) and comma_decimal:
        return int(number.replace(".", ""))
    plain = number.replace(",", ".")
    return float(plain) if "." in plain else int(plain)


def _han(text: str) -> int:
    """Value of a small Chinese numeral such as 二十五 or 三千."""
    total, section, digit = 0, 0, 0
    for character in text:
        if character in _HAN:
            digit = _HAN[character]
        elif character == "万":
            total, section, digit = (total + section + digit) * 10**4, 0, 0
        else:
            section += (digit or 1) * {"十": 10, "百": 100, "千": 1000}[character]
            digit = 0
    return total + section + digit


def _placed(text: str, value: Number, start: int, end: int) -> Quantity:
    unit = ""
    for name, pattern in _UNIT_RE:
        match = pattern.match(text, end)
        if match:
            unit, end = name, match.end()
            break
    if unit == "tenths":
        unit, value = "percent", value * 10
    spoken = re.search(r"(?:训练|微调)[^。;,，]*$", text[max(0, start - 40) : start]) and text[end : end + 2] != "对话"
    if (
        unit == "turns"
        and spoken
        and not re.search(r"(?:少于|不足|超过|至少|低于|多于)\s*$", text[max(0, start - 4) : start])
    ):
        unit = "epochs"
    if unit == "turns" and re.search(r"训练\s*$|train\w*( for)?\s*$|微调\s*$|跑\s*$", text[max(0, start - 14) : start]):
        unit = "epochs"
    before = text[max(0, start - 28) : start]
    sign = next((name for name, pattern in _BEFORE_RE if pattern.search(before)), "")
    if not sign:
        sign = next((name for name, pattern in _AFTER_RE if pattern.match(text, end)), "")
    return Quantity(value, unit, sign, start, end)
