"""Builders for filters on length, language and quality, and for personal data."""

import re
from dataclasses import replace
from typing import Any

from datamill.agents.rules.columns import column_for, implied_roles
from datamill.agents.rules.intents import Wanted, polarity
from datamill.agents.rules.nodes import Builder, Node, node
from datamill.agents.rules.quantities import Quantity
from datamill.agents.rules.reading import Reading
from datamill.agents.rules.sources import model_name
from datamill.agents.rules.vocabulary import DROP, KEEP, ONLY

LENGTH_UNITS = ("chars", "words", "tokens", "turns")

PII_ENTITIES: dict[str, str] = {
    "email": r"e-?mails?\b|correos?(?: electronicos?)?|邮箱|电子邮件|邮件",
    "phone": r"(?:tele)?phones?(?: numbers?)?\b|telefones?\b|telefonos?\b|celular\w*|movil\w*|手机号?|电话(?:号码)?",
    "ip": r"\bips?\b(?: address\w*)?|enderecos? ip|direcciones ip|ip ?地址",
    "credit_card": (
        r"(?:credit |debit )?card(?: numbers?|s)\b|credit cards?|cart(?:ao|oes)(?: de credito)?|"
        r"tarjetas?(?: de credito)?|银行卡|信用卡"
    ),
    "cpf": r"\bcpfs?\b",
    "cn_id": r"身份证(?:号码?)?|chinese ids?\b|national ids? \(china\)|id cards?\b",
}
PII_UNKNOWN: dict[str, str] = {
    "names": (
        r"(?<!of )(?<!file )(?<!column )\bnames?\b(?! of)|\bnomes?\b(?! de (?:coluna|arquivo))|\bnombres?\b|姓名|人名"
    ),
    "addresses": (
        r"(?:home |street |postal )address\w*|\benderecos?\b(?! ip)|\bdirecciones?\b(?! ip)|住址|"
        r"地址(?<!ip地址)(?<!ip 地址)"
    ),
    "other identity numbers": (
        r"\bssns?\b|social security|passports?|passaportes?|pasaportes?|\brg\b|\bcnpj\b|\bdni\b|"
        r"\bcurp\b|护照"
    ),
}


def length_nodes(reading: Reading) -> list[Node]:
    """One `filter.length` per unit and column from the bounds in the request, such as "under 10 characters"."""
    nodes: list[Node] = []
    for quantity in (*_bound_alike(reading), *reading.free(units=LENGTH_UNITS)):
        bounds = _bounds(reading, quantity)
        if not bounds or (quantity.unit == "tokens" and quantity.value >= 10**5):
            continue
        reading.take(quantity)
        columns = _measured(reading, quantity)
        same = next(
            (n for n in nodes if n.params["unit"] == quantity.unit and n.params.get("columns") == columns), None
        )
        if same:
            same.params |= bounds
        else:
            why = reading.request.quote(quantity.start, quantity.end)
            params: dict[str, Any] = {"unit": quantity.unit, **bounds}
            if quantity.unit == "tokens":
                params["tokenizer"] = (
                    (reading.training.model if reading.training else "")
                    or model_name(reading.request)
                    or "tokenizer.json"
                )
            nodes.append(Node("filter.length", params | ({"columns": columns} if columns else {}), quantity.start, why))
    return nodes


def _bound_alike(reading: Reading) -> list[Quantity]:
    """`at least 500 and at most 100 characters`: the first bound has the unit of the second."""
    found = []
    for other in reading.free(units=("",)):
        later = next((q for q in reading.free(other.end, None, LENGTH_UNITS)), None)
        between = reading.request.masked[other.end : later.start] if later else ""
        joined = re.fullmatch(
            r"\s*(?:,|and|or|but|e|y|o|ou|mas|pero|且|并且|、|和|或)+\s*[a-z一-鿿 <>=≤≥]{0,24}", between
        )
        if later and other.sign and later.sign and joined and other.value >= 1:
            found.append(replace(other, unit=later.unit))
            continue
        earlier = next((q for q in reversed(reading.free(0, other.start, LENGTH_UNITS))), None)
        gap = reading.request.masked[earlier.end : other.start] if earlier else ""
        follows = re.fullmatch(r"\s*(?:,|and|or|but|e|y|o|ou|mas|pero|且|并且|、|和|或)+\s*[a-z一-鿿 <>=≤≥]{0,24}", gap)
        if earlier and other.sign and earlier.sign and follows and other.value > 1:
            found.append(replace(other, unit=earlier.unit))
    return found


def _bounds(reading: Reading, quantity: Quantity) -> dict[str, Any]:
    pair = _pair(reading, quantity)
    if pair:
        return pair
    if not quantity.sign:
        return {}
    verb = polarity(reading.request, quantity.start, quantity.end)
    sign = quantity.sign
    clause = reading.request.clause_at(quantity.start)
    strict = re.search(DROP, reading.request.masked[clause.start : clause.end]) is not None
    if sign == "lt":
        return {"min": quantity.value} if verb == "drop" else {"max": quantity.value}
    if sign == "gt":
        return {"max": quantity.value} if verb == "drop" else {"min": quantity.value}
    if sign == "le":
        return (
            {"min": quantity.value + 1}
            if strict
            and verb == "drop"
            and reading.request.language == "en"
            and "most" in reading.request.masked[clause.start : quantity.start]
            else {"max": quantity.value}
        )
    return (
        {"max": quantity.value - 1}
        if strict and verb == "drop" and _or_more(reading, quantity)
        else {"min": quantity.value}
    )


def _or_more(reading: Reading, quantity: Quantity) -> bool:
    return (
        re.search(r"or more|ou mais|o mas|以上", reading.request.masked[quantity.start : quantity.end + 14]) is not None
    )


def _pair(reading: Reading, quantity: Quantity) -> dict[str, Any]:
    """`between 50 and 2000 words`, `50-2000 words`, `50 到 2000 字`."""
    for other in reading.free():
        between = reading.request.masked[other.end : quantity.start]
        if (
            other.end <= quantity.start
            and re.fullmatch(r"\s*(?:-|~|to|and|e|y|a|ate|hasta|到|至|和)\s*", between)
            and other.unit in {"", quantity.unit}
        ):
            reading.take(other)
            return {"min": other.value, "max": quantity.value}
    return {}


def _measured(reading: Reading, quantity: Quantity) -> list[str]:
    clause = reading.request.clause_at(quantity.start)
    named = [name for name, at in reading.columns if clause.start <= at < clause.end]
    if named:
        return named
    if quantity.unit == "turns":
        return [column_for("messages", reading.facts) or "messages"]
    roles = implied_roles(reading.request, clause.start, clause.end, (quantity.start, quantity.end))
    found = [column for role in roles if (column := column_for(role, reading.facts))]
    return found[:1] or list(reading.text())


_TRANSLATING = re.compile(r"(?:translat\w*|traduc\w*|traduz\w*|翻译|译)[^.;。]*$")
_BARE_LIST = re.compile(r"\s*(?:and |or |the |all |just )?(?:[a-z]+(?:,| and| or|/| \+|,? and) ?)*$")
_PART = re.compile(
    r"\s*(?:part|portion|subset|rows|half|documents|docs|pages|texts|posts|articles|samples|section|split|部分|"
    r"的部分|那部分|parte)"
)


def language_nodes(reading: Reading) -> list[Node]:
    """`lang.detect` and `filter.lang` (or an expression, when languages are to be left out)."""
    allow: list[str] = []
    deny: list[str] = []
    first = -1
    for position, code, stand in _stands(reading):
        if stand:
            (allow if stand == "keep" else deny).append(code)
            first = position if first < 0 else first
    generic = next((w for w in reading.mentions if w.capability == "filter.lang_generic" and not w.forbidden), None)
    if not allow and not deny and generic is None:
        return []
    start = first if first >= 0 else generic.start if generic else 0
    why = reading.request.quote(start, start + 1)
    detect = Node("lang.detect", {"column": (reading.text() or ("text",))[0]}, start, why)
    tag_only = "keep_all_rows" in reading.prohibitions or "read_only" in reading.prohibitions
    if tag_only and (allow or deny):
        reading.left_out.append("filter language")
    if tag_only or not (allow or deny):
        return [detect]
    if deny and not allow:
        quoted = ", ".join(f'"{code}"' for code in dict.fromkeys(deny))
        return [
            detect,
            Node(
                "filter.expr",
                {"expr": f"not (lang in [{quoted}])", "on_null": "keep"},
                start,
                why,
                follows=("lang.detect",),
            ),
        ]
    params: dict[str, Any] = {"allow": list(dict.fromkeys(allow))}
    score = reading.after_word(
        r"confidence|(?:lang\w*|language) (?:id )?score|min_score|confianca|confianza|置信度|score "
        r"(?:above|over|of|>=?|at least)"
    )
    score = score or next(
        (
            q
            for q in reading.free()
            if 0 < q.share <= 1
            and re.match(
                r"\s*(?:min(?:imum)? )?(?:confidence|score|confianca|confianza|置信度)", reading.request.masked[q.end :]
            )
        ),
        None,
    )
    if score and 0 <= score.share <= 1:
        params["min_score"] = reading.take(score).share
    return [detect, Node("filter.lang", params, start, why, follows=("lang.detect",))]


def _stands(reading: Reading) -> list[tuple[int, str, str]]:
    """Stand of every language named; the members of a list (`en, zh and pt only`) share one."""
    found: list[tuple[int, str, str]] = []
    group: list[tuple[int, str]] = []
    text = reading.request.masked
    for position, code in (*reading.languages, (len(text) + 99, "")):
        joined = group and re.fullmatch(
            r"[a-z一-鿿-]+?\s*(?:,|/|\+|&|and|or|e|y|o|ou|和|与|或)+\s*(?:and |or |e |y )?",
            text[group[-1][0] : position],
        )
        if group and not joined:
            stands = [_stand(reading, at) for at, _ in group]
            shared = next((stand for stand in stands if stand), "")
            found += [(at, name, shared) for at, name in group]
            group = []
        group.append((position, code))
    return found


_OTHER_THAN = re.compile(
    r"(?:non-?|not (?:in )?|isn'?t (?:in )?|aren'?t (?:in )?|other than |except |outside |"
    r"nao (?:seja\w* |esteja\w* em |for\w* |em )?|que no (?:sea\w*|este\w*)(?: en)? |no |fuera de |fora do |"
    r"difer\w+ de |distint\w+ de|非|不是|除了?)(?:the |el |o |em |en )?$"
)
_LISTED_OTHER = re.compile(
    r"(?:non-?\w+|not \w+|que no \w+(?: en)? \w+|nao \w+ \w+|不是\w+|非\w+)\s*(?:,|or|nor|ou|o|ni|或|和)\s*$"
)


def _stand(reading: Reading, position: int) -> str:
    """`keep`, `drop` or nothing for a language named at `position`."""
    request = reading.request
    clause, sentence = request.clause_at(position), request.sentence_at(position)
    before, text = request.masked[sentence.start : position], request.masked
    if _TRANSLATING.search(before) and not re.search(rf"{ONLY}|{KEEP}", before[_last_translation(before) :]):
        return ""
    name_end = position + 3
    while name_end < len(text) and text[name_end].isalpha():
        name_end += 1
    within, inside = text[clause.start : position], text[clause.start : clause.end]
    part = _PART.match(text[name_end : name_end + 12])
    bare = clause.start == sentence.start and _BARE_LIST.fullmatch(within) is not None
    if part and (bare or re.search(r"\b(?:the|na|no|la|a|parte|in|on)\b|对|把", within)):
        if re.search(DROP, within):
            return "drop"
        wished = rf"{ONLY}|{KEEP}|\b(?:need|want|quero|quiero|necesito|preciso)\b|要"
        only = re.search(wished, within) or re.match(rf"\s*\w+\s*(?:{ONLY})", text[name_end:])
        return "keep" if bare or (only and "leave" not in within) else ""
    if _OTHER_THAN.search(text[max(0, position - 26) : position]) or _LISTED_OTHER.search(within):
        return "keep"
    if re.search(ONLY, inside):
        return "keep"
    nearby = re.search(rf"(?:{DROP}|{KEEP})[^,;.]*$", within)
    if nearby is None and request.language == "zh":
        nearby = re.search(f"{DROP}|{KEEP}", inside)
    return polarity(request, position, name_end) if nearby else _inherited_stand(reading, position, clause.start)


def _last_translation(before: str) -> int:
    matches = list(re.finditer(r"translat\w*|traduc\w*|traduz\w*|翻译|译", before))
    return matches[-1].end() if matches else 0


def _inherited_stand(reading: Reading, position: int, clause_start: int) -> str:
    """`keep only Portuguese, Spanish and French`: list items share the verb of the first."""
    text = reading.request.masked
    if clause_start == 0 or not re.fullmatch(r"\s*(?:and |e |y |or |和|以及)?\s*", text[clause_start:position]):
        previous = [at for at, _ in reading.languages if at < position]
        between = text[previous[-1] : position] if previous else ""
        if not previous or not re.fullmatch(
            r"[a-z一-鿿]+\s*(?:,|and|e|y|or|ou|o|和|与|、|/)+\s*(?:and |e |y )?", between
        ):
            return ""
        return _stand(reading, previous[-1])
    earlier = [at for at, _ in reading.languages if at < clause_start]
    return _stand(reading, earlier[-1]) if earlier and clause_start - earlier[-1] < 16 else ""


def pii_nodes(reading: Reading) -> list[Node]:
    """`pii.redact` with the kinds named; kinds it cannot find are reported as missing."""
    wanted = next((w for w in reading.mentions if w.capability == "pii.redact"), None)
    if wanted is not None and wanted.forbidden:
        return []
    text = reading.request.masked
    spots = {
        kind: match for kind, pattern in PII_ENTITIES.items() if (match := re.search(rf"(?<![a-z])(?:{pattern})", text))
    }
    verbs = (
        rf"{DROP}|\b(?:cambi\w*|troc\w*|sustitu\w*|swap\w*|censor\w*|blank out|black out|tach\w*|mask\w*|replac\w*|"
        rf"hid\w*|substitu\w*|reempla\w*|mascar\w*|enmascar\w*|"
        rf"ocult\w*)\b|替换|掩|隐藏|打码"
    )
    if wanted is None:
        pronoun = re.search(rf"(?:{verbs})\s?(?:them|those|these|all of them|isso|eles|elas|los|las|它们|这些)\b", text)
        acted = [m for m in spots.values() if pronoun or re.search(verbs, _sentence(reading, m.start()))]
        if not acted or all(kind == "ip" for kind in spots):
            return []
        start = acted[0].start()
        wanted = Wanted("pii.redact", start, acted[0].end())
    built = node(
        reading,
        wanted,
        {
            "columns": list(_pii_columns(reading, wanted)) or None,
            "entities": list(spots) or None,
            "mode": _pii_mode(reading),
        },
    )
    sentence = _sentence(reading, wanted.start)
    unknown = [
        kind
        for kind, pattern in PII_UNKNOWN.items()
        if (said := re.search(rf"(?<![a-z])(?:{pattern})", sentence))
        and not re.search(
            rf"(?:{KEEP}|don'?t touch|not|nao|no|except)\s*(?:the |os |los |in |as |las )*$", sentence[: said.start()]
        )
    ]
    extra = (
        [Node("pii.redact", {"entities": unknown}, wanted.start, built.why, unmet="redact " + ", ".join(unknown))]
        if unknown
        else []
    )
    return [built, *extra]


def _sentence(reading: Reading, position: int) -> str:
    piece = reading.request.sentence_at(position)
    return reading.request.masked[piece.start : piece.end]


def _pii_columns(reading: Reading, wanted: Wanted) -> tuple[str, ...]:
    named = tuple(dict.fromkeys(name for name, at in reading.columns if at in _owned(reading, wanted)))
    return named or reading.text()


def _owned(reading: Reading, wanted: Wanted) -> set[int]:
    """Positions of columns in the sentence that no other operator word of their clause claims."""
    piece = reading.request.sentence_at(wanted.start)
    others = [w.start for w in reading.mentions if w.capability != "pii.redact" and not w.forbidden]
    found = {at for _, at in reading.columns if piece.start <= at < piece.end}
    own = reading.request.clause_at(wanted.start)
    for at in tuple(found):
        clause = reading.request.clause_at(at)
        rival = any(clause.start <= start < clause.end for start in others)
        kept = re.search(
            r"leave\s+(?:the )?$|(?:except|not|but not|menos|salvo|exceto)\s+(?:the |in )?$",
            reading.request.masked[:at],
        )
        if (clause.start != own.start and rival) or kept:
            found.discard(at)
    inside = {at for at in found if own.start <= at < own.end}
    return inside or found


def _pii_mode(reading: Reading) -> str:
    text = reading.request.masked
    if re.search(r"pseudonym\w*|\bconsistent\b|\bfake\b|\balias\w*|pseudonim\w*|seudonim\w*|假名|化名", text):
        return "pseudonymise"
    if (
        re.search(
            (
                rf"(?:{DROP})\s*(?:the |all |any |every |as |las |todas )*(?:whole )?(?:rows?|lines?|records?|"
                rf"linhas?|filas?|registros?)[^.;]*(?:with|contain\w*|that|com|con|que)"
            ),
            text,
        )
        and "keep_all_rows" not in reading.prohibitions
    ):
        return "drop"
    if re.search(r"\bmask\w*|mascar\w*|enmascar\w*|asterisk\w*|asterisco\w*|掩码|打码|星号", text):
        return "mask"
    return "replace"


def build_empty(reading: Reading, wanted: Wanted) -> list[Node]:
    """Empty values: a lower bound of one character on the column they stand in."""
    columns = reading.columns_near(wanted) or reading.text()
    if polarity(reading.request, wanted.start, wanted.end) != "drop":
        return []
    return [node(reading, wanted, {"columns": list(columns) or None, "unit": "chars", "min": 1}, "filter.length")]


def build_plain(reading: Reading, wanted: Wanted) -> list[Node]:
    """A step without parameters of its own in the request; columns where the operator takes them."""
    return [node(reading, wanted)]


def build_text(reading: Reading, wanted: Wanted) -> list[Node]:
    """Text repair on the columns named near, else on the text columns."""
    clause = reading.request.clause_at(wanted.start)
    named = [name for name, at in reading.columns if clause.start <= at < clause.end]
    params: dict[str, Any] = {"columns": named or list(reading.text()) or None}
    if wanted.capability == "text.normalize" and re.search(r"lower-?cas|minuscul|小写", reading.request.masked):
        params["lowercase"] = True
    return [node(reading, wanted, params)]


def build_refusal(reading: Reading, wanted: Wanted) -> list[Node]:
    """Model refusals, in the answer column."""
    return [node(reading, wanted, {"column": column_for("output", reading.facts) or (reading.text() or ("text",))[-1]})]


def build_quality(reading: Reading, wanted: Wanted) -> list[Node]:
    """Gopher's rules on the main text column."""
    return [node(reading, wanted, {"column": (reading.columns_near(wanted) or reading.text() or ("text",))[0]})]


BUILDERS: dict[str, Builder] = {
    "filter.empty": build_empty,
    "text.fix_unicode": build_text,
    "text.normalize": build_text,
    "filter.refusal": build_refusal,
    "filter.gopher_quality": build_quality,
    **dict.fromkeys(
        (
            "text.strip_boilerplate",
            "filter.c4",
            "filter.fineweb",
            "filter.gopher_repetition",
            "filter.url",
            "filter.flagged_words",
        ),
        build_plain,
    ),
}
