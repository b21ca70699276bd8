"""Builders for columns, formats and statistics."""

import re
from typing import Any

from datamill.agents.rules.intents import Wanted, polarity
from datamill.agents.rules.nodes import Builder, Node, node
from datamill.agents.rules.reading import Reading
from datamill.agents.rules.steps_sample import group_column
from datamill.agents.rules.training_words import number_near

_PAIR = (
    r"(?<!\w)[\"'`“]?([A-Za-z_]\w*)[\"'`”]?(?:\s+(?:column |field )?(?:to|as|into|para|por|como|a)\s+|\s*(?:->|=>|"
    r"→|改成|"
    r"改为|改名为|为|成|重命名为)\s*)[\"'`“]?([A-Za-z_]\w*)[\"'`”]?"
)
_RENAMES = re.compile(
    _PAIR.replace("([", "(?:[")
    + rf"(?:\s*(?:,|;|、|，|\band\b|\be\b|\by\b|&|和)+\s*(?:and |e |y |columns? |the )*{_PAIR.replace('([', '(?:[')})*"
)
"""Pairs of old and new names, one after another."""


def build_rename(reading: Reading, wanted: Wanted) -> list[Node]:
    """`columns.rename` from pairs `a to b`."""
    text = reading.request.text[wanted.end :]
    chain = _RENAMES.search(text)
    pairs = re.findall(_PAIR, chain.group()) if chain else []
    if not pairs:
        text = reading.request.text
        pairs = re.findall(
            (
                r"[\"'`“]?([A-Za-z_]\w*)[\"'`”]?\s*(?:列)?(?:改名为|重命名为|改成|改为|->|"
                r"→)\s*[\"'`“]?([A-Za-z_]\w*)[\"'`”]?"
            ),
            text,
        )
    skip = {"the", "column", "columns", "coluna", "columna", "it", "and"}
    mapping = {old: new for old, new in pairs if old.lower() not in skip and new.lower() not in skip}
    return [node(reading, wanted, {"mapping": mapping})] if mapping else []


def build_select(reading: Reading, wanted: Wanted) -> list[Node]:
    """`columns.select`: the columns to keep, or those to drop."""
    start, end = reading.stretch(wanted)
    named = [name for name, at in reading.columns if start <= at < end]
    if not named:
        return []
    drops = polarity(reading.request, wanted.end, wanted.end) == "drop" or re.match(
        r"drop|remov|delet|apag|elimin|quit|tir|删", reading.request.masked[wanted.start : wanted.end]
    )
    return [node(reading, wanted, {"drop" if drops else "columns": named})]


def build_cast(reading: Reading, wanted: Wanted) -> list[Node]:
    """`columns.cast` of the named columns."""
    text = reading.request.masked[wanted.start : reading.request.clause_at(wanted.start).end]
    kinds = (
        ("int", r"int|整数|inteir|enter"),
        ("float", r"float|decimal|浮点|numer|number|数字"),
        ("bool", r"bool"),
        ("string", r"str|text|字符"),
    )
    kind = next((name for name, pattern in kinds if re.search(pattern, text)), None)
    columns = reading.columns_near(wanted)
    return [node(reading, wanted, {"types": dict.fromkeys(columns, kind)})] if kind and columns else []


def build_stats(reading: Reading, wanted: Wanted) -> list[Node]:
    """`report.stats`, counted by the groups the request names."""
    clause = reading.request.clause_at(wanted.start)
    by = (
        group_column(reading, wanted.start, clause.end)
        if re.search(r"\b(?:by|per|each|por|cada)\b|按|每", reading.request.masked[wanted.start : clause.end])
        else None
    )
    return [node(reading, wanted, {"by": [by] if by else None})]


def build_chat(reading: Reading, wanted: Wanted) -> list[Node]:
    """`format.chat` in OpenAI or ShareGPT style."""
    style = "sharegpt" if re.search(r"share-?gpt", reading.request.masked) else None
    return [node(reading, wanted, chat_params(reading) | ({"style": style} if style else {}))]


def build_generic(reading: Reading, wanted: Wanted) -> list[Node]:
    """`format` without saying how: chats, which every template can read."""
    if any(w.capability in {"format.chat", "format.alpaca", "format.preference"} for w in reading.mentions):
        return []
    return [node(reading, wanted, chat_params(reading), "format.chat")]


def chat_params(reading: Reading) -> dict[str, Any]:
    """Columns of `format.chat`: a conversation when there is one, else question and answer."""
    facts = reading.facts
    spoken = re.search(r"conversation|dialog|\bchats?\b|conversa|对话|会话|sharegpt", reading.request.masked)
    if facts and facts.column("messages"):
        return {"messages": facts.column("messages")}
    if facts is None and spoken:
        return {"messages": "messages"}
    user = (facts.column("instruction") or facts.column("question")) if facts else "instruction"
    answer = (facts.column("output") or facts.column("solution") or facts.column("answer")) if facts else "output"
    params = {"user": user, "assistant": answer, "input": facts.column("input") if facts else None}
    return {name: value for name, value in params.items() if value}


def build_alpaca(reading: Reading, wanted: Wanted) -> list[Node]:
    """`format.alpaca` from columns, or from conversations when the request converts chats."""
    facts = reading.facts
    chats = re.search(r"share-?gpt|\bchats?\b|conversation|messages|conversa|对话", reading.request.masked)
    if (facts and facts.column("messages")) or (facts is None and chats):
        return [node(reading, wanted, {"messages": (facts.column("messages") if facts else None) or "conversations"})]
    params: dict[str, Any] = {}
    if facts:
        params = {
            "instruction": facts.column("instruction") or facts.column("question"),
            "input": facts.column("input"),
            "output": facts.column("output") or facts.column("solution") or facts.column("answer"),
        }
    return [node(reading, wanted, params)]


def build_preference(reading: Reading, wanted: Wanted) -> list[Node]:
    """`format.preference`: ready pairs, or pairs made from scored answers."""
    text = reading.request.masked
    params: dict[str, Any] = {}
    scored = re.search(
        (
            r"\bbest\b.{0,12}\bworst\b|by (?:their |the )?(?:score|rating)|melhor.{0,12}pior|"
            r"mejor.{0,12}peor|最好.{0,8}最差|最高.{0,8}最低|scored? answers|all pairs|every pair"
        ),
        text,
    )
    if scored:
        params = {"chosen": None, "rejected": None, "answers": "answers", "scores": "scores"}
        rule = (
            "all_pairs"
            if re.search(r"all pairs|every pair|todos (?:os|los) pares|所有(?:的)?(?:对|组合)", text)
            else "best_vs_worst"
        )
        params["rule"] = rule
        gap = number_near(
            reading.request,
            list(reading.numbers),
            r"(?:gap|margin|differ\w*|margem|margen|diferen\w*|差距?|分差)(?: of| de| at least| >=?|至少)*",
        )
        if gap:
            params |= {"rule": "threshold", "min_gap": float(reading.take(gap).value)}
        return [Node("format.preference", params, wanted.start, reading.request.quote(wanted.start, wanted.end))]
    facts = reading.facts
    named = list(dict.fromkeys(name for name, _ in reading.columns))
    if len(named) >= 3:
        return [node(reading, wanted, _pair_columns(named))]
    if facts:
        params = {
            "prompt": facts.column("instruction") or facts.column("question"),
            "chosen": facts.column("chosen"),
            "rejected": facts.column("rejected"),
        }
    return [node(reading, wanted, params)]


def _pair_columns(names: list[str]) -> dict[str, Any]:
    """Prompt, chosen and rejected among three named columns: by their names, else in that order."""
    patterns = {
        "prompt": r"prompt|question|instruc|pergunt|pregunt|input",
        "chosen": r"chosen|good|best|prefer|win|bom|melhor|buen|mejor",
        "rejected": r"reject|bad|worst|lose|lost|ruim|pior|mal|peor",
    }
    found = {
        role: next((n for n in names if re.search(pattern, n.lower())), None) for role, pattern in patterns.items()
    }
    rest = [name for name in names if name not in found.values()]
    return {role: name or rest.pop(0) for role, name in found.items() if name or rest}


def build_join(reading: Reading, wanted: Wanted) -> list[Node]:
    """`join the title and body columns into text`: one column from a template."""
    clause = reading.request.clause_at(wanted.start)
    names = [name for name, at in reading.columns if clause.start <= at < clause.end]
    target = re.search(
        (
            r"(?:into|as|to|em|en|para|como|成|为)\s+(?:a |one |uma |una |the )?(?:column |coluna |columna "
            r")?[\"'`“]?(?P<col>[a-z_]\w*)"
        ),
        reading.request.masked[wanted.end : clause.end],
    )
    direct = re.search(
        r"(?P<parts>[A-Za-z_]\w*(?:\s*(?:,|and|e|y|&|\+|和|与|、)\s*[A-Za-z_]\w*)+)\s*(?:columns? |fields? |两?列)?\s*"
        r"(?:(?:in)?to|as|em|en|para|拼成一列|拼接成|拼成|合并成|合并为)\s*(?:one |a |the |uma |una )?(?:column |"
        r"coluna |"
        r"columna )?(?P<into>[A-Za-z_]\w*)",
        reading.request.text[clause.start : clause.end],
    )
    if direct:
        names = [name for name in re.split(r"\s*(?:,|\band\b|\be\b|\by\b|&|\+|和|与|、)\s*", direct["parts"]) if name]
        parts = [re.sub(r"^(?:join|merge|combine|concatenate|concat) ", "", name) for name in names]
        template = "\n".join(f"{{{name}}}" for name in parts)
        return [node(reading, wanted, {"column": direct["into"], "template": template})]
    if len(names) < 2:
        return []
    column = (
        reading.request.text[wanted.end + target.start("col") : wanted.end + target.end("col")] if target else "text"
    )
    parts = [name for name in names if name != column]
    return [node(reading, wanted, {"column": column, "template": "\n".join(f"{{{name}}}" for name in parts)})]


def build_plain(reading: Reading, wanted: Wanted) -> list[Node]:
    """A step without parameters."""
    return [node(reading, wanted)]


BUILDERS: dict[str, Builder] = {
    "columns.rename": build_rename,
    "columns.select": build_select,
    "columns.cast": build_cast,
    "columns.map": build_join,
    "report.stats": build_stats,
    "format.chat": build_chat,
    "format.generic": build_generic,
    "format.alpaca": build_alpaca,
    "format.preference": build_preference,
}
