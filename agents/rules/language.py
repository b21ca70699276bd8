"""Language of a request, and names of languages in English, Chinese, Portuguese and Spanish."""

import re

_PT = (
    r"nao|o|tire|uma?|das|dos|da|do|arquivo|linhas?|colunas?|pergunta|resposta|limiar|fique|apenas|com|"
    r"sem|dados|treine|treinar|"
    r"remova|tira|mas|pra|para|perda|semente|saida|depois|antes|ate|em|os|as|e|gere|mantenha|quero|idioma|texto"
)
_ES = (
    r"el|la|los|las|una?|del|filas?|columnas?|pregunta|respuesta|umbral|quita|elimina|solo|con|"
    r"sin|datos|entrena|ajusta|"
    r"pero|para|perdida|semilla|salida|despues|antes|hasta|en|y|por|traduce|selecciona|mantén|"
    r"quiero|idioma|texto|archivo|al"
)
_EN = (
    r"the|a|an|and|of|to|in|for|with|without|rows?|column|file|keep|only|remove|drop|train|then|from|is|it|all|by|on|"
    r"pls|please|use|each|every|into|but|my|this|that|first"
)

LANGUAGE_NAMES: dict[str, str] = {
    "en": r"english|ingles[ae]?s?|英语|英文",
    "zh": r"chinese|mandarin|chines(?:a|es)?|chin[oa]s?|中文|汉语|汉文|华语",
    "pt": r"portuguese|portugues[ae]?s?|葡萄牙语|葡语|葡文",
    "es": r"spanish|espanhol|espanol[ae]?s?|castellano|西班牙语|西语|西文",
    "de": r"german|alem(?:ao|an|anes)|aleman|德语|德文",
    "fr": r"french|franc(?:es|esa)|法语|法文",
    "it": r"italian[oa]?|意大利语",
    "ja": r"japanese|japon(?:es|esa)|日语|日文",
    "ko": r"korean|corean[oa]|韩语|韩文",
    "ru": r"russian|russ[oa]|rus[oa]|俄语|俄文",
    "ar": r"arabic|arabe|阿拉伯语|阿语",
    "hi": r"hindi|印地语",
    "nl": r"dutch|holandes|neerland(?:es|s)|荷兰语",
    "pl": r"polish|polones|polaco|波兰语",
    "tr": r"turkish|turco|土耳其语",
    "vi": r"vietnamese|vietnamita|越南语",
    "th": r"thai|tailandes|泰语",
    "id": r"indonesian|indonesio|印尼语",
    "ca": r"catalan|catala|加泰罗尼亚语",
    "gl": r"galician|galego|gallego",
}
"""Folded patterns of names by ISO 639-1 code."""

_NAME_RE = {code: re.compile(rf"(?<![a-z])(?:{names})(?![a-z])") for code, names in LANGUAGE_NAMES.items()}


def detect_language(folded: str, text: str) -> str:
    """Language of a request by its function words; `en` when nothing speaks for another.

    >>> detect_language("tira as linhas vazias", "tira as linhas vazias")
    'pt'
    """
    han = sum("一" <= character <= "鿿" for character in text)
    latin = sum(character.isascii() and character.isalpha() for character in text)
    if han >= 2 and han * 8 >= latin:
        return "zh"
    counts = {
        code: len(re.findall(rf"\b(?:{words})\b", folded)) for code, words in (("en", _EN), ("pt", _PT), ("es", _ES))
    }
    counts["pt"] += 2 * sum(text.count(mark) for mark in ("ã", "õ", "ç", "ê"))
    counts["es"] += 2 * sum(text.count(mark) for mark in ("ñ", "¿", "¡"))
    return max(("en", "pt", "es"), key=lambda code: counts[code])


_CODE_LIST = re.compile(
    rf"(?<![a-z])(?:{'|'.join(LANGUAGE_NAMES)})(?:\s*(?:,|/|\+|&|、|\band\b|\bor\b|和|与|或)\s*(?:and |"
    rf"or )?(?:{'|'.join(LANGUAGE_NAMES)}))+(?![a-z])"
)
_CODE = re.compile(rf"(?<![a-z])(?:{'|'.join(LANGUAGE_NAMES)})(?![a-z])")


def languages_named(masked: str, start: int = 0, end: int | None = None) -> tuple[tuple[int, str], ...]:
    """`(position, code)` of every language named in a stretch of folded text, in order.

    Bare ISO codes count in lists only (`en, zh and pt`): alone, `es` or `de` are words.
    """
    stretch = masked[start:end]
    codes = [
        (start + listed.start() + match.start(), match.group())
        for listed in _CODE_LIST.finditer(stretch)
        for match in _CODE.finditer(listed.group())
    ]
    both = [
        (start + m.start(), code) for m in re.finditer(r"中英(?!格)|英中|双语中英", stretch) for code in ("zh", "en")
    ]
    found = (
        codes
        + both
        + [(start + match.start(), code) for code, name in _NAME_RE.items() for match in name.finditer(stretch)]
    )
    return tuple(sorted(found))
