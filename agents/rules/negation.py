"""What a request forbids: negation in front of an operator word, and prohibitions that hold for the whole plan.

"no near-duplicates" asks for deduplication and "no fuzzy dedup" forbids it; "don't remove any rows" and 先不要动数据
rule out whole classes of steps. Approach: cues with a scope of one clause, ended by a contrast word (NegEx,
Chapman et al. 2001, adapted to four languages).
"""

import re

from datamill.agents.rules.request import Request
from datamill.agents.rules.vocabulary import DROP, KEEP, Kind

_VERBAL = {
    "en": (
        r"\b(?:do not|don'?t|dont|does not|doesn'?t|must not|mustn'?t|should not|shouldn'?t|never|not|"
        r"skip|avoid|omit|leave out|no need (?:to|for|of)|instead of|rather than|forget|refrain "
        r"from)\b"
    ),
    "pt": r"\b(?:nao|nunca|jamais|evit\w+|pul[ae]\w*|dispens\w+|em vez de|ao inves de|nem|nada de)\b",
    "es": r"\b(?:no|nunca|jamas|evit\w+|salt[ae]\w*|omit\w+|en vez de|en lugar de|ni|nada de)\b",
    "zh": (
        r"不要|不用|不需要|不必|无需|无须|不想|不做|不能|别(?!人|的)|勿|跳过|先不|不(?=去重|过滤|"
        r"翻译|训练|改写|删|动|抽样|采样|切|混)"
    ),
}
_DETERMINER = {
    "en": r"\b(?:no|without|zero|neither|nor|any more)\b",
    "pt": r"\b(?:sem|nenhum[a]?|nem)\b",
    "es": r"\b(?:sin|ningun[ao]?|ni)\b",
    "zh": r"没有|无(?!需|须|论)|免",
}
_NOT_NEGATIVE = re.compile(
    r"\bnot (?:just|only|merely)\b|\bno (?:more|less|fewer|later|longer) than\b|\bnot more than\b|"
    r"\bno (?:minimo|maximo)\b|\bnao so\b|\bno solo\b|不仅|不只|不超过|不少于|不低于|不多于|"
    r"不小于|不一致|不同|不对|不到"
)
_CONTRAST = re.compile(
    r"\b(?:but|however|just|only|mas|porem|so|apenas|somente|pero|solo|solamente|sino|and then)\b|但|只|而是|就"
)
_LIST_WORD = re.compile(r"^\s*(?:or|nor|ou|nem|ni|o)\b|^\s*(?:或|也不|和|、)")
_POSITIVE_VERB = re.compile(
    rf"{KEEP}|\b(?:run|do|make|use|write|save|export|train|translate|split|take|want|need|apply|"
    rf"haz|quiero|usa|faz|faca|quero|use)\b|用|做|要|保存|输出"
)

_KEEP_ROWS = re.compile(
    r"(?:don'?t|do not|dont|never) (?:remov\w*|delet\w*|drop)(?=\s*(?:[.,;!]|$|them\b|anything))|"
    r"(?:don'?t|do not|dont|never|without|not) (?:\w+ )?(?:remov\w*|delet\w*|drop\w*|los\w*|"
    r"throw\w* away|discard\w*|filter\w*)(?: out)? (?:any |a |the |single |a single |of the |"
    r"whole )*(?:rows?|lines?|records?|samples?|examples?|data|documents?|anything)\b"
    r"|no (?:rows?|lines?|records?|samples?|data) (?:may |should |must |can )?(?:be |is |are |get "
    r")?(?:remov|delet|drop|lost)\w*|no (?:row|record|line) (?:removal|deletion)|keep (?:all|"
    r"every)(?: \w+)? (?:the )?(?:rows?|lines?|records?|samples?|data|examples?|one)\b"
    r"|(?:nao|sem|nunca) (?:\w+ )?(?:apag|remov|delet|exclu|perd|descart|tir|elimin)\w* "
    r"(?:nenhum\w* |as |os |qualquer |uma |a )*(?:linhas?|registros?|exemplos?|amostras?|dados|"
    r"nada)"
    r"|(?:all|every) (?:the |of the )?(?:rows?|lines?|records?|samples?|examples?|data) (?:must|"
    r"should|have to|has to|need to|needs to|shall)(?: all)? (?:be kept|stay|remain|survive)"
    r"|todas as linhas (?:devem|tem que|precisam) (?:\w+ )?(?:ficar|permanecer|mantid\w*)|todas "
    r"las filas (?:deben|tienen que) (?:quedar\w*|permanecer|conservar\w*)|所有(?:的)?(?:行|数据|"
    r"样本)(?:都)?(?:要|必须|得)(?:保留|留)"
    r"|mant\w+ todas as linhas|todas as linhas (?:devem )?fic\w+|(?:no|sin|nunca) (?:\w+ "
    r")?(?:borr|elimin|quit|perd|descart)\w* (?:ningun\w* |las |los |filas?|nada )*(?:filas?|"
    r"registros?|ejemplos?|muestras?|datos|lineas?|nada)"
    r"|(?:conserv|mant)\w+ todas las filas|(?:不要|不能|别|不可以?|不)(?:删除?|丢弃?|去掉|减少|移除)(?:任何|掉|一|"
    r"数据)?(?:行|条|数据|样本|记录)|(?:一条|一行|行数?)(?:都|也)?(?:不要|不能|别|不)(?:删|丢|"
    r"少|变)|保留(?:所有|全部)(?:的)?(?:行|数据|"
    r"样本|记录)"
)
_READ_ONLY = re.compile(
    r"(?:don'?t|do not|dont|without) (?:touch|chang|modif|alter|edit)\w*(?: \w+)?(?: the| any| "
    r"my)? ?(?:data|file|rows?|anything|it|dataset|yet)\b|(?:leave|keep) (?:the )?(?:data|file|"
    r"dataset) (?:as (?:it )?is|untouched|alone|unchanged)|read[- ]?only"
    r"|(?:just|only) (?:look|inspect|show|report|the (?:stats|statistics|report|numbers)|stats|"
    r"statistics)\b|nothing (?:else )?(?:is |should be |gets )?(?:changed|modified|touched)"
    r"|(?:nao|sem) (?:\w+ )?(?:mex\w*|toc\w*|alter\w*|modific\w*|mud\w*)(?: (?:em|nos?|nas?|os?|"
    r"as?|meus?|minha|estes|esses))*(?: (?:dados?|arquivos?|dataset|base|nada|isso|linhas?|"
    r"originai?s?)\b|\s*(?:[.;,!]|$))|so (?:quero )?(?:olhar|ver|estatistic\w*|as estatistic\w*)|"
    r"(?:no|sin) (?:\w+ )?(?:toc\w*|modific\w*|cambi\w*|alter\w*)(?: (?:los?|las?|el|mis?|"
    r"estos?))*(?: (?:datos?|archivos?|dataset|nada|eso|filas?|original\w*)\b|\s*(?:[.;,!]|$))|"
    r"solo (?:quiero )?(?:mirar|ver|estadistic\w*|las estadistic\w*)"
    r"|(?:先)?(?:不要?|别|不用|勿)(?:先)?(?:动(?!词|作|态|别的|其[他它]|另)(?:原)?(?:始)?(?:数据|文件)?|(?:改动?|"
    r"修改|碰|改变|"
    r"处理)(?:原)?(?:始)?(?:数据|文件|任何))|只(?:看|统计|是看)|仅统计|原样"
)
_NO_TRAINING = re.compile(
    r"(?:no|don'?t|do not|without|skip|not) (?:\w+ )?(?:train\w*|fine-?tun\w*)|(?:nao|sem) (?:\w+ "
    r")?trein\w*|(?:no|sin) (?:\w+ )?(?:entren\w*|ajust\w*)|(?:不|别|先不|不要|不用|暂不)(?:要|用|需要)?(?:训练|"
    r"微调)"
)


_NO_LLM = re.compile(
    r"\b(?:no|without|zero|never|don'?t|do not|sem|sin|nada de|nenhum|ningun|nao|not)\s+(?:(?:any|an?|usar?|uses?|"
    r"use|using|call\w*|um|un|chamar?) )*"
    r"(?:llms?|gpt\w*|ai models?|language models?|modelos? de (?:linguagem|lenguaje))\b(?: calls?| steps?|"
    r" whatsoever| at all)?"
    r"|(?:不|别|不要|不用|不想|禁止)(?:使用|调用|用)?(?:任何)?(?:大模型|llm|语言模型|gpt)"
)


def prohibitions(request: Request) -> tuple[str, ...]:
    """Prohibitions over the whole plan: `keep_all_rows`, `read_only`, `no_training`, `no_llm`.

    >>> prohibitions(Request("mask the emails but don't remove any rows"))
    ('keep_all_rows',)
    """
    rules = (
        ("keep_all_rows", _KEEP_ROWS), ("read_only", _READ_ONLY), ("no_training", _NO_TRAINING), ("no_llm", _NO_LLM),
    )  # fmt: skip
    return tuple(name for name, pattern in rules if pattern.search(request.masked))


def prohibition_spans(request: Request) -> tuple[tuple[int, int], ...]:
    """Where the whole-plan prohibitions stand; operator words inside ask for nothing."""
    patterns = (_KEEP_ROWS, _READ_ONLY, _NO_TRAINING, _NO_LLM)
    return tuple(match.span() for pattern in patterns for match in pattern.finditer(request.masked))


def negated(request: Request, start: int, kind: Kind) -> bool:
    """Whether the operator word that begins at `start` is forbidden rather than asked for."""
    clause = request.clause_at(start)
    before = _NOT_NEGATIVE.sub(lambda match: "#" * len(match.group()), request.masked[clause.start : start])
    contrast = list(_CONTRAST.finditer(before))
    if contrast:
        before = before[contrast[-1].end() :]
    verbal = re.search(_cue(_VERBAL, request.language), before)
    determined = re.search(_cue(_DETERMINER, request.language), before)
    if kind == "defect":
        return _keeps_defect(request, before, verbal)
    if verbal or determined:
        return True
    return not contrast and _inherits(request, clause.start, before)


def _cue(table: dict[str, str], language: str) -> str:
    """Cues of the request's language, and English ones that mean nothing else in Latin scripts."""
    if language == "en":
        return table["en"]
    extra = r"|\b(?:don'?t|without|skip)\b" if language == "zh" else r"|\b(?:without|skip)\b"
    return table[language] + extra


def _keeps_defect(request: Request, before: str, verbal: re.Match[str] | None) -> bool:
    if verbal and re.search(DROP, before[verbal.end() :]):
        return True
    skip = re.search(r"\b(?:without|sem|sin|skip)\b", before)
    if skip and re.search(DROP, before[skip.end() :]):
        return True
    keeps = re.search(rf"{KEEP}\s+(?:the |all |os |as |los |las )*$", before)
    return bool(keeps) and not re.search(r"\b(?:only|just|so|apenas|solo)\b|只|仅", before) and request.language != "zh"


def _inherits(request: Request, clause_start: int, before: str) -> bool:
    """`without dedup, filtering or translation`: a bare list item takes over the negation of the item before."""
    if (
        clause_start == 0
        or _POSITIVE_VERB.search(before)
        or not re.fullmatch(r"\s*(?:(?:or|nor|any|ou|nem|ni|o|a|the)\s+|或|也不)*", before)
    ):
        return False
    following = request.masked[clause_start : request.sentence_at(clause_start).end]
    if not (_LIST_WORD.search(before) or re.search(r"\b(?:or|nor|ou|nem|ni)\b|或|也不", following)):
        return False
    previous = request.clause_at(clause_start - 1)
    text = _NOT_NEGATIVE.sub("", request.masked[previous.start : previous.end])
    cue = rf"(?:{_cue(_VERBAL, request.language)})|(?:{_cue(_DETERMINER, request.language)})"
    return bool(re.match(rf"\s*(?:\w+\s+){{0,2}}(?:{cue})", text))
