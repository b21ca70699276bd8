"""Generic capability names, question topics and refusal reasons of request files, mapped to datamill's, once."""

import re

QUALITY = frozenset(
    {
        "filter.gopher_quality",
        "filter.gopher_repetition",
        "filter.c4",
        "filter.fineweb",
        "filter.refusal",
        "filter.expr",
        "filter.score",
        "filter.topk",
        "filter.url",
        "filter.flagged_words",
        "score.classifier",
        "format.preference",  # drops ties and one-sided rows by itself
    }
)

CAPABILITIES: dict[str, frozenset[str]] = {
    "minhash_dedup": frozenset({"dedup.minhash"}),
    "near_dedup": frozenset({"dedup.minhash"}),
    "exact_dedup": frozenset({"dedup.exact"}),
    "semantic_dedup": frozenset({"dedup.semantic"}),
    "paragraph_dedup": frozenset({"dedup.paragraph"}),
    "length_filter": frozenset({"filter.length"}),
    "language_filter": frozenset({"filter.lang", "lang.detect"}),
    "quality_filter_rules": QUALITY,
    "quality_filter_llm": frozenset({"score.llm_judge"}),
    "quality_classifier": frozenset({"score.classifier"}),
    "toxicity_filter": frozenset({"score.classifier", "filter.flagged_words"}),
    "perplexity_filter": frozenset({"filter.perplexity"}),
    "decontaminate": frozenset({"decon.ngram", "decon.embed"}),
    "pii_redact": frozenset({"pii.redact"}),
    "math_verify": frozenset({"math.verify"}),
    "code_execute": frozenset({"code.execute"}),
    "code_verify": frozenset({"code.execute"}),
    "execute_code": frozenset({"code.execute"}),
    "tag_domain": frozenset({"annotate.llm"}),
    "annotate_llm": frozenset({"annotate.llm"}),
    "annotate_difficulty": frozenset({"annotate.llm"}),
    "annotate_human": frozenset({"annotate.human"}),
    "translate": frozenset({"rewrite.llm"}),
    "rewrite": frozenset({"rewrite.llm", "augment.paraphrase"}),
    "paraphrase": frozenset({"augment.paraphrase"}),
    "evol_instruct": frozenset({"synth.evol_instruct"}),
    "self_instruct": frozenset({"synth.self_instruct"}),
    "synthesize_qa": frozenset({"synth.qa_from_doc"}),
    "synthesize": frozenset({"llm.generate", "synth.self_instruct", "synth.qa_from_doc"}),
    "generate": frozenset({"llm.generate"}),
    "llm_generate": frozenset({"llm.generate"}),
    "solve_vote": frozenset({"math.solve_vote"}),
    "parse_pdf": frozenset({"parse.pdf"}),
    "parse_html": frozenset({"parse.html"}),
    "parse_office": frozenset({"parse.office"}),
    "scrape": frozenset({"crawl.site", "fetch.http"}),
    "crawl": frozenset({"crawl.site", "fetch.http"}),
    "download": frozenset({"fetch.http"}),
    "chunk": frozenset({"text.chunk"}),
    "clean_text": frozenset({"text.fix_unicode", "text.normalize", "text.strip_boilerplate"}),
    "normalise": frozenset({"text.fix_unicode", "text.normalize"}),
    "normalize": frozenset({"text.fix_unicode", "text.normalize"}),
    "fix_unicode": frozenset({"text.fix_unicode"}),
    "strip_boilerplate": frozenset({"text.strip_boilerplate"}),
    "embed": frozenset({"embed.text"}),
    "score_ifd": frozenset({"score.ifd"}),
    "score_deita": frozenset({"score.deita"}),
    "select_diverse": frozenset({"select.diverse"}),
    "sample": frozenset({"sample.random", "sample.stratified", "filter.topk"}),
    "balance": frozenset({"sample.stratified"}),
    "topk": frozenset({"filter.topk"}),
    "split": frozenset({"split"}),
    "mix": frozenset({"mix.concat"}),
    "merge": frozenset({"mix.concat"}),
    "concat": frozenset({"mix.concat"}),
    "stats": frozenset({"report.stats"}),
    "map": frozenset({"columns.map", "columns.rename", "columns.select", "format.alpaca", "format.chat"}),
    "rename": frozenset({"columns.rename"}),
    "select_columns": frozenset({"columns.select"}),
    "cast": frozenset({"columns.cast"}),
    "filter": frozenset({"filter.expr", "filter.score", "filter.length"}),
    "pairs": frozenset({"format.preference"}),
    "preference_pairs": frozenset({"format.preference"}),
    "similarity": frozenset({"dedup.semantic", "dedup.minhash", "synth.self_instruct"}),
    "text_normalize": frozenset({"text.normalize", "text.fix_unicode"}),
    "format": frozenset({"format.chat", "format.alpaca", "format.preference", "format.pt"}),
    "convert": frozenset({"format.chat", "format.alpaca", "format.preference", "format.pt"}),
}


def capabilities_of(name: str) -> frozenset[str]:
    """Operator ids for a generic capability; an operator id stands for itself."""
    return CAPABILITIES.get(name, frozenset({name}))


_TOPICS: tuple[tuple[frozenset[str], str], ...] = (
    (
        frozenset({"threshold"}),
        (
            r"outside (?:the )?(?:[(\[0-9]|range)|out of range|\brange\b|超出|范围|fora d[eo] "
            r"(?:interval|"
            r"faixa|[(\[0-9])|fuera de(?:l)? (?:rango|interval)"
        ),
    ),
    (frozenset({"contradiction"}), r"contradict\w*|conflict|contradi\w+|矛盾|冲突"),
    (frozenset({"destructive"}), r"destructive|deletion|overwrite|delete|apagar|borrar|sobrescr\w*|删除|覆盖"),
    (frozenset({"upload"}), r"outside service|export target|upload|enviar|上传|外部服务"),
    (frozenset({"lossy"}), r"no place for|would be lost|cannot hold|loses|perde|pierde|放不下|丢失"),
    (frozenset({"order"}), r"one dedup after|before as well|which order|order of|em que ordem|en que orden|顺序"),
    (frozenset({"stage"}), r"plain text|pre-?training instead|build instructions|纯文本|texto (?:puro|plano)"),
    (
        frozenset({"method", "capability"}),
        (
            r"menor o mayor|lowest or highest|is supported|supported\b|which method|qual metodo|qué "
            r"método|que metodo|哪种方法"
        ),
    ),
    (frozenset({"languages"}), r"languages\b|which language|quais idiomas|que idiomas|qué idiomas|哪些语言|哪种语言"),
    (frozenset({"engine"}), r"backend|engine|executor|cluster"),
    (frozenset({"mixture", "size"}), r"too small|proportion|weights|sum to|too few|shares|proporc\w+|比例|太少|不足"),
    (frozenset({"size"}), r"more rows asked|how many|sample with repeats|quant[oa]s|cuant[oa]s|多少"),
    (
        frozenset({"target", "input"}),
        r"target set|which target|dev set|validation set|conjunto (?:alvo|objetivo)|目标集",
    ),
    (frozenset({"columns"}), r"columns?\b|列名|哪一?列|colunas?|columnas?"),
    (
        frozenset({"term"}),
        (
            r"what (?:does|is|do you) .*mean|criteri\w+|what counts|definition|define|significa|quer "
            r"dizer|标准是|指什么|怎么算|含义"
        ),
    ),
    (frozenset({"model"}), r"\bmodels?\b|modelo|模型"),
    (
        frozenset({"input"}),
        (
            r"\bfiles?\b|data ?sets?|\bpaths?\b|input|arquivo|archivo|conjunto de dat?dos|conjunto de "
            r"datos|which data|路径|数据集|文件|哪(?:个|份)数据"
        ),
    ),
)

_REFUSALS: tuple[tuple[str, str], ...] = (
    ("leakage", r"leak\w*|test set|泄漏|泄露|vazamento|fuga"),
    ("outside_project", r"outside (?:the )?(?:workspace|project)|path outside|工作区|项目之?外|fora do|fuera del"),
    (
        "infringing_source",
        (
            r"infring\w*|pirat\w*|copyright|licen[cs]e|paywall|robots|盗版|版权|direitos autorais|"
            r"derechos de "
            r"autor"
        ),
    ),
    ("hiding_provenance", r"hiding|provenance|conceal|隐藏来源|隐瞒|ocultar|esconder"),
    ("personal_data_collection", r"personal (?:data|info\w*)|privacy|个人信息|隐私|dados pessoais|datos personales"),
    ("secret_in_request", r"secrets?\b|credential|api key|password|密钥|密码|senha|contraseña"),
    ("impossible_medium", r"video|audio|speech|image|voice|no capability|视频|音频|图像|语音"),
    ("unsafe_use", r"harm\w*|malware|phishing|arbitrary code|shell|re-?identif\w*|任意代码|有害"),
    ("outside_service", r"outside service|upload|third party|外部服务|serviço externo|servicio externo"),
)


def topics_of(sentence: str) -> list[frozenset[str]]:
    """Topics an expected question speaks of; each entry lists spellings of one topic."""
    text = sentence.lower()
    found = [topics for topics, pattern in _TOPICS if re.search(pattern, text)]
    if frozenset({"stage"}) in found or frozenset({"lossy"}) in found:
        found = [topics for topics in found if topics & {"stage", "lossy"}]
    if frozenset({"method", "capability"}) in found:
        found = [topics for topics in found if topics != {"columns"}]
    if frozenset({"destructive"}) in found or frozenset({"contradiction"}) in found:
        found = [topics for topics in found if topics & {"destructive", "contradiction"}]
    return found


def refusal_kinds(sentence: str) -> frozenset[str]:
    """Kinds of refusal an expected reason speaks of."""
    text = sentence.lower()
    return frozenset(kind for kind, pattern in _REFUSALS if re.search(pattern, text))
