"""Domain weights in a request: `70% code 20% math`, `code 0.5, math 0.5`, `7:2:1 of code, math, chat`."""

import re

from datamill.agents.rules.reading import Reading

_NAME = r"(?P<name>[a-z_][\w-]*|[一-鿿]{2,4})"
_SHARE_FIRST = re.compile(
    rf"(?P<share>\d+(?:[.,]\d+)?)\s?(?:%|percent|por cento|por ciento)\s?(?:of |de |do |da |from |的)?(?:the )?{_NAME}"
)
_NAME_FIRST = re.compile(
    rf"{_NAME}\s?(?:at |to |com |con |占|:|=|的)?\s?(?P<share>\d+(?:[.,]\d+)?)\s?(?:%|percent|por cento|por ciento)"
)
_FRACTION = re.compile(rf"{_NAME}\s?(?:at |=|:|com |con |占)?\s?(?P<share>0?[.,]\d+)(?!\d)")
_FRACTION_FIRST = re.compile(rf"(?<![\d.,])(?P<share>0?[.,]\d+)\s+(?:of |de )?(?:the )?{_NAME}")
_PARTS = re.compile(r"(?<![\d.])(\d+)\s?[:/]\s?(\d+)(?:\s?[:/]\s?(\d+))?(?:\s?[:/]\s?(\d+))?(?!\d|\.\d)(?! ?split)")
_STOP = frozenset(
    [
        "and",
        "or",
        "y",
        "e",
        "of",
        "the",
        "rows",
        "total",
        "more",
        "each",
        "data",
        "sample",
        "samples",
        "at",
        "to",
        "in",
        "mix",
        "mistura",
        "mezcla",
        "train",
        "with",
        "ratio",
        "of",
        "threshold",
        "de",
        "do",
        "da",
    ]
)


_ENGLISH = {
    "代码": "code",
    "编程": "code",
    "数学": "math",
    "对话": "chat",
    "聊天": "chat",
    "通用": "general",
    "网页": "web",
    "书籍": "books",
    "图书": "books",
    "新闻": "news",
    "百科": "wiki",
    "维基": "wiki",
    "法律": "law",
    "医疗": "medicine",
    "医学": "medicine",
    "金融": "finance",
    "英文": "en",
    "中文": "zh",
    "noticias": "news",
    "leis": "laws",
}
"""Domain names that make readable ids."""


def domain_weights(reading: Reading) -> dict[str, float]:
    """Weights by domain, as shares of one in the order written; empty when the request names fewer than two.

    They need not sum to one: that is for a question to settle.
    """
    beside = _beside(reading)
    if len(beside) >= 2:
        return beside
    text = reading.request.folded
    for pattern, scale in ((_SHARE_FIRST, 100), (_NAME_FIRST, 100), (_FRACTION, 1), (_FRACTION_FIRST, 1)):
        found = {
            _ENGLISH.get(match["name"], match["name"]): round(float(match["share"].replace(",", ".")) / scale, 6)
            for match in pattern.finditer(text)
            if match["name"] not in _STOP
        }
        if len(found) >= 2:
            return found
    return _in_turn(reading) or _from_parts(reading)


def _beside(reading: Reading) -> dict[str, float]:
    """`a.jsonl (60%), b.jsonl (40%)` and `60% a.jsonl`: the share that stands right by an input."""
    shares = [q for q in reading.numbers if q.unit == "percent" or (q.unit == "" and 0 < q.value < 1)]
    found: dict[str, float] = {}
    for source in (s for s in reading.sources if s.purpose == "input"):
        text = reading.request.masked
        after = next(
            (
                q
                for q in shares
                if re.fullmatch(r"\s*[(:=]?\s*(?:at |com |con |占)?", text[source.end : q.start])
                and q.start >= source.end
            ),
            None,
        )
        before = next(
            (
                q
                for q in shares
                if q.end <= source.start
                and re.fullmatch(r"\s*(?:of |from |de |do |da |的)?(?:the )?", text[q.end : source.start])
            ),
            None,
        )
        share = after or before
        if share is not None:
            found[source.name.rsplit("/", 1)[-1].split(".")[0].lower()] = share.share
    return found


def claim_shares(reading: Reading) -> None:
    """Mark the shares of a mixture as used, so that a split or a sample does not take them."""
    weights = domain_weights(reading)
    for quantity in reading.numbers:
        if (quantity.unit == "percent" or 0 < quantity.value < 1) and quantity.share in weights.values():
            weights = (
                {name: share for name, share in weights.items() if share != quantity.share} if len(weights) > 1 else {}
            )
            reading.take(quantity)


def _in_turn(reading: Reading) -> dict[str, float]:
    """`a.jsonl and b.jsonl at 60 % and 40 %`: shares in the order of the inputs."""
    names = [source.name for source in reading.sources if source.purpose == "input"]
    shares = [q.share for q in reading.numbers if q.unit == "percent"]
    if len(names) < 2 or len(names) != len(shares):
        return {}
    return {name.rsplit("/", 1)[-1].split(".")[0].lower(): share for name, share in zip(names, shares, strict=True)}


def _from_parts(reading: Reading) -> dict[str, float]:
    match = _PARTS.search(reading.request.folded)
    if not match:
        return {}
    parts = [int(part) for part in match.groups() if part]
    names = [
        source.name.rsplit("/", 1)[-1].split(".")[0].lower() for source in reading.sources if source.purpose == "input"
    ]
    if len(names) != len(parts):
        names = _listed(reading.request.folded[match.end() :], len(parts)) or _listed(
            reading.request.folded[: match.start()], len(parts)
        )
    if len(names) != len(parts) or sum(parts) == 0:
        return {}
    return {_ENGLISH.get(name, name): round(part / sum(parts), 6) for name, part in zip(names, parts, strict=True)}


def _listed(text: str, count: int) -> list[str]:
    """`count` names in a row, joined by commas or `and`: 代码,数学和对话数据."""
    name = r"(?:[a-z_]\w*|[一-鿿]{1,4}?)"
    joint = r"\s*(?:,|/|\band\b|\be\b|\by\b|和|与|及)\s*"
    found = re.search(
        (
            rf"(?:混合|合并|配比|\bmix\w*|\bof\b|"
            rf"\bde\b)?\s*({name}(?:{joint}{name}){{{count - 1}}})(?=数据|语料|\s|[,.;]|$)"
        ),
        text,
    )
    if not found:
        return []
    names = [part.removeprefix("混合").strip() for part in re.split(joint, found.group(1))]
    return names if len(names) == count and not set(names) & _STOP else []
