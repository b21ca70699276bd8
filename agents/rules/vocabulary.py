"""Words of users for each capability, in English, Chinese, Portuguese and Spanish, as patterns over folded text.

An `operation` names a thing to do ("dedup"), so a negation in front forbids it. A `defect` names what should not be
in the data ("duplicates"): "no duplicates" asks for removal, while "don't remove duplicates" forbids it.
"""

import re
from dataclasses import dataclass
from typing import Literal

from datamill.agents.rules.request import MODEL, NAME, PATH, QUOTED, URL

Kind = Literal["operation", "defect"]


@dataclass(frozen=True, slots=True)
class Cue:
    """A pattern that speaks for a capability."""

    capability: str
    kind: Kind
    pattern: re.Pattern[str]


def _cue(capability: str, kind: Kind, *parts: str) -> Cue:
    named = "".join((PATH, URL, QUOTED, NAME, MODEL))
    spelled = (part.replace(r"\w+ ", rf"[\w{named}]+ ") for part in parts)
    return Cue(capability, kind, re.compile("|".join(spelled)))


DROP = (
    r"(?:\b(?:remov\w*|drop\w*|delet\w*|discard\w*|throw(?:ing)? (?:out|away)|filter(?:ing|ed)? "
    r"out|get(?:ting)? rid|toss|exclud\w*|strip|"
    r"must go\b|(?:go(?:es)?|are|must be|should be) out|cut|eliminat\w*|purge|kill|reject|"
    r"tir[ae]\w*|apag\w*|descart\w*|exclu[ai]\w*|elimin\w*|jog\w* fora|retir[ae]\w*|"
    r"quit[ae]\w*|borr[ae]\w*|saca\w*|desech\w*)\b|删|去掉|去除|剔除|过滤掉|丢弃|丢掉|扔掉|排除|清除|清理掉|移除|筛掉)"
)
KEEP = (
    r"(?:\b(?:keep\w*|retain\w*|only|just|select\w*|preserv\w*|leave|"
    r"mant\w+|fique|fica\w*|so(?:mente)?|apenas|guard[ae]\w*|deix[ae]\w*|preserv\w*|"
    r"qued\w+|conserv\w*|solo|solamente|deja\w*|unicamente)\b|保留|只要|只留|仅|留下|只保留|只选)"
)
ONLY = (
    r"(?:\b(?:only|just|nothing (?:else|but)|so|somente|apenas|solo|solamente|unicamente|nada mas|nada mais)\b|只|仅)"
)

CUES: tuple[Cue, ...] = (
    _cue(
        "dedup.minhash",
        "operation",
        r"near[- ]?de-?dup\w*|near[- ]?dup(?:licate)?s?[- ](?:removal|detection|filter\w*|step|pass)|"
        r"near[- ]identical\w*|fuzzy(?:[- ]?(?:de-?dup\w*|dup\w*|match\w*|stuff|hash\w*))?|"
        r"min-?hash\w*|\blsh\b|simhash",
        r"de-?dup\w* (?:aproximad\w*|difus\w*)|近似去重|模糊去重|模糊匹配|近重复去重|相似去重",
    ),
    _cue(
        "dedup.minhash",
        "defect",
        r"near[- ]duplicat\w*|near[- ]dups?\b|almost (?:the same|identical|duplicate\w*)|nearly "
        r"(?:identical|the same)|very similar \w+|too similar|"
        r"quase[- ](?:iguais|identic\w*|duplicad\w*|repetid\w*)|(?:duplicat\w*|duplicad\w*|copias) "
        r"(?:aproximad\w*|proxim\w*|difus\w*|parecid\w*)|"
        r"casi[- ](?:iguales|identic\w*|duplicad\w*|repetid\w*)|muy parecid\w*|muito parecid\w*|"
        r"近似重复\w*|模糊重复|近重复|高度相似|几乎(?:一样|相同|重复)|差不多一样|(?:just |mere )?copies of|相似(?:度)?(?:很高|过高|较高)",
    ),
    _cue(
        "dedup.exact",
        "operation",
        r"\bexact\b(?= (?:on|by|over|match|por|en|sobre|em)\b)|"
        r"exact(?:ly)?(?:[- ]match)?[- ](?:de-?dup\w*|dups?\b|matching)|exact[- ]only|"
        r"hash[- ]de-?dup\w*|"
        r"de-?dup\w*(?:acion|acao)? exat\w*|deduplic\w* exact\w*|精确去重|严格去重|完全去重|哈希去重",
    ),
    _cue(
        "dedup.exact",
        "defect",
        r"exact(?:ly)? (?:duplicat\w*|repeat\w*|cop(?:y|ies)|same|match(?:es)?|the same)|"
        r"byte[- ]identical|verbatim \w+|"
        r"(?<!near )(?<!near-)(?<!nearly )(?<!almost )\bidentical(?: (?:rows|records|lines|texts?|"
        r"copies|entries|prompts|questions|samples|documents))?|"
        r"(?:duplicat\w*|duplicad\w*|copias|repetid\w*) (?:exat|exact|identic)\w*|(?:exatamente|"
        r"exactamente) iguai?s?(?:les)?|"
        r"(?<!quase )(?<!casi )\bidentic[oa]s\b|完全(?:相同|一样|重复|一致)|一模一样|精确重复",
    ),
    _cue(
        "dedup.semantic",
        "operation",
        r"semantic(?:ally)?[- ](?:de-?dup\w*|duplicat\w*|similar\w*|near)|sem-?dedup|"
        r"embedding[- ](?:based )?de-?dup\w*|"
        r"too (?:close|similar) (?:\([^)]*\) )?(?:to|in meaning)|same meaning|deduplica\w* "
        r"semantic\w*|(?:duplicat\w*|duplicad\w*) semantic\w*|"
        r"demasiado parecid\w*|语义去重|语义重复|语义相似|意思(?:相同|一样|相近)",
    ),
    _cue(
        "dedup.paragraph",
        "operation",
        (
            r"(?:paragraph|line)[- ]?(?:level)?[- ]?de-?dup\w*|(?:repeated|duplicate[d]?) (?:lines|"
            r"paragraphs) (?:within|inside|across)|段落去重|行级去重"
        ),
    ),
    _cue(
        "dedup",
        "operation",
        r"(?<!near )(?<!near-)(?<!exact )(?<!exact-)\bde-?dup\w*|\bdedup\w*|去重|\buniq(?:ue)? (?:rows|lines|by)",
    ),
    _cue(
        "dedup",
        "defect",
        r"(?<!near )(?<!near-)(?<!exact )(?<!exact-)(?<!exactly )\b(?:duplicat\w*|dups?|dupes?|"
        r"doubles)\b|\bduplicad\w*|\brepetid\w*|\brepeated \w+|"
        r"(?<!近似)(?<!模糊)(?<!近)(?<!完全)(?<!精确)(?<!语义)重复(?:的|项|数据|行|样本|问题|内容|题|指令|回答|提问|记录|文本|对话|句子|条目|文档|新闻)",
    ),
    _cue(
        "text.fix_unicode",
        "operation",
        r"\bfix\w* (?:the |up |broken |bad )*(?:unicode|encoding|accents?|mojibake|characters|text)|"
        r"mojibake|ftfy|accents? (?:look|are|is) (?:broken|wrong|garbled|weird)|"
        r"broken (?:accents?|encoding|unicode|characters)|garbled|encoding (?:is |looks )?(?:broken|"
        r"wrong|problem\w*|issues?)|control characters?|surrogates?|"
        r"acent\w* (?:quebrad\w*|estragad\w*|rot[oa]s?|errad\w*|mal)|codificac\w+ (?:quebrad\w*|errad\w*|rota|mal\w*)|"
        r"(?:corrig\w*|consert\w*|arregl\w*|corrij\w*|repar\w*) (?:\w+ ){0,2}(?:unicode|codificac\w+|"
        r"acent\w*|caracteres)|caracteres (?:rar|estranh|rot|quebrad)\w*|乱码|修复编码|编码问题|unicode (?:修复|"
        r"规范)",
    ),
    _cue(
        "text.normalize",
        "operation",
        r"normali[sz]\w* (?:the )?(?:white ?space|text|punctuation|quotes|unicode)|collapse (?:the "
        r")?(?:extra )?(?:white)?spaces?|lower-?cas\w*|strip (?:the )?punctuation|"
        r"normaliz\w* (?:o |el |os |los )?(?:texto|espac\w*|pontuac\w*|puntuac\w*)|minuscul\w*|"
        r"traditional to simplified|全角转?半角|全半角|繁体?转?简体?|规范化|统一标点|归一化",
    ),
    _cue(
        "text.strip_boilerplate",
        "operation",
        (
            r"boiler-?plate|(?:licen[sc]e|copyright) headers?|cookie (?:banners?|notices?|lines?)|"
            r"nav(?:igation)? (?:menus?|bars?)|strip (?:the )?(?:html|tags|urls|links)|headers? and "
            r"footers?|rodapes?|menus de navegac\w+|模板文字|导航栏|页眉页脚|去(?:掉|除)?html"
        ),
    ),
    _cue(
        "text.chunk",
        "operation",
        (
            r"\bchunk\w*|split (?:\w+ ){0,3}into (?:chunks|passages|pieces|segments|windows)|segment\w* "
            r"(?:into|de)|divid\w+ (?:\w+ ){0,3}(?:em|en) (?:pedac\w*|trechos|fragmentos|trozos|blocos)|"
            r"分块|切块|切片|切成"
        ),
    ),
    _cue(
        "filter.refusal",
        "defect",
        (
            r"refus\w+|as an ai(?: language)? model|i(?:'m| am) sorry|\brecus\w+|\brechaz\w+|negativas? "
            r"(?:do|del|de) model\w*|拒答|拒绝(?:回答|回复)?|抱歉类?"
        ),
    ),
    _cue(
        "filter.empty",
        "defect",
        (
            r"\bempty\b|\bblank\b|\bnulls?\b|(?:missing|without(?: an?)?|no) (?:values?|outputs?|answers?|"
            r"responses?|text)\b|\bvazi[oa]s?\b|\bem branco\b|\bvaci[oa]s?\b|\ben blanco\b|空(?:的|值|行|白|输出|"
            r"回答|文本|字符串)|为空|缺失"
        ),
    ),
    _cue(
        "filter.lang_generic",
        "operation",
        (
            r"(?:detect|identify|tag|filter(?: by)?|label) (?:the )?languages?|language[- ](?:id\w*|"
            r"detect\w*|filter\w*)|langid|detect\w* (?:o |el )?idioma|identific\w* (?:o |el )?idioma|"
            r"filtr\w* (?:por )?idioma|语言(?:识别|检测|过滤)|语种(?:识别|过滤)"
        ),
    ),
    _cue(
        "pii.redact",
        "operation",
        (
            r"\bpii\b|anonymi[sz]\w*|de-?identif\w*|redact\w*|\bscrub\b|mask(?:ing)? (?:\w+ "
            r"){0,3}(?:e-?mails?|phones?|names?|personal|pii|numbers?|ips?|cards?)|anonimiz\w*|脱敏|匿名化|打码|"
            r"去隐私|去标识|隐去|掩码"
        ),
    ),
    _cue(
        "pii.redact",
        "defect",
        (
            r"personal (?:data|info\w*|details|identif\w*)|dados pessoais|datos personales|informac\w+ "
            r"(?:pessoa\w+|personal\w*)|个人信息|隐私(?:信息|数据)?|敏感信息"
        ),
    ),
    _cue(
        "filter.gopher_quality",
        "operation",
        (
            r"gopher|quality (?:filter\w*|rules?|heuristics?|check)|heuristic filter\w*|filtr\w* (?:de |"
            r"por )?(?:qualidade|calidad)|质量过滤|质量规则|规则过滤|启发式"
        ),
    ),
    _cue(
        "filter.gopher_quality",
        "defect",
        (
            r"low[- ]quality|poor quality|bad[- ]quality|\bjunk\b|\bgarbage\b|\bgibberish\b|\bspam\w*|"
            r"reference lists?|bibliograph\w*|baixa qualidade|ma qualidade|\blixo\b|baja calidad|mala "
            r"calidad|\bbasura\b|低质|质量(?:差|低|不高)|垃圾|灌水|参考文献|referencias bibliograficas|listas? de "
            r"referencias?"
        ),
    ),
    _cue("filter.c4", "operation", r"\bc4 (?:rules?|filter\w*|heuristics?)|C4规则|c4规则"),
    _cue("filter.fineweb", "operation", r"fineweb (?:rules?|filter\w*|heuristics?|style)"),
    _cue(
        "filter.gopher_repetition",
        "operation",
        (
            r"repetition (?:filter\w*|rules?)|repeated (?:n-?grams|lines)|repetitive (?:text|docs?|"
            r"pages?)|重复(?:行|n-?gram)比例|复读"
        ),
    ),
    _cue(
        "filter.url",
        "operation",
        (
            r"(?:block-?list|blacklist|allow-?list)\w* (?:\w+ ){0,2}(?:domains?|urls?)|(?:url|domain) "
            r"(?:filter\w*|block-?list\w*)|adult sites?"
        ),
    ),
    _cue(
        "filter.flagged_words",
        "defect",
        (
            r"(?:bad|flagged|banned|swear|dirty) ?words?|profan\w*|palavro\w+|palavras proibidas|"
            r"palabrotas|malas palabras|敏感词|脏话|违禁词|屏蔽词"
        ),
    ),
    _cue(
        "score.classifier",
        "defect",
        r"\btoxic\w*|\bnsfw\b|hate speech|offensive|hateful|toxic[oa]s?|discurso de odio|ofensiv\w*|有毒|毒性|色情|暴力内容|仇恨",
    ),
    _cue("filter.perplexity", "operation", r"perplexit\w*|\bppl\b|kenlm|perplexidade|perplejidad|困惑度"),
    _cue(
        "decon.ngram",
        "operation",
        r"de-?contaminat\w*|nothing from|"
        r"(?:not|isn'?t|aren'?t|none of (?:the|it)?(?: \w+)?) (?:\w+ ){0,3}in(?:side)? (?:the "
        r")?(?:test|eval|benchmark)\w*|descontamin\w*|contamina\w*|vazament\w*|fuga de datos|"
        r"filtrac\w+ del test|污染|去污|泄漏|泄露|(?:测试集|评测集|基准).{0,8}(?:重合|重叠|出现)",
    ),
    _cue(
        "decon.ngram",
        "defect",
        (
            r"\bcontaminat\w*|(?:leak\w*|overlap\w*) (?:\w+ ){0,3}(?:with|from|between|into)\b|\bleak(?:s|"
            r"ed|age)?\b|\bcontaminac\w+|污染"
        ),
    ),
    _cue(
        "math.verify",
        "operation",
        r"math[-_. ]?verif\w*|verif\w*[^,.;]{0,24}(?:<<|####)|check\w*[^,.;]{0,24}<<|<<[^>]{0,20}>>|"
        r"verif\w* (?:\w+ ){0,4}(?:answers?|math|solutions?|calculat\w*|arithmetic|results?|finals?|"
        r"annotations?)|check (?:\w+ ){0,4}(?:math|calculations?|arithmetic|final answers?|answers? "
        r"(?:against|match\w*|with))|"
        r"verif\w* (?:\w+ ){0,4}(?:respostas?|respuestas?|contas|cuentas|soluc\w*|resultados?|"
        r"calculos?)|confer\w* (?:\w+ ){0,3}(?:respostas?|contas|resultado\w*)|comprueb\w* (?:\w+ "
        r"){0,4}(?:respuestas?|resultado\w*|cuentas)|"
        r"答案.{0,4}(?:校验|验证|核对|检查)|(?:校验|验证|核对|检查).{0,8}(?:答案|计算|结果|算式)|标准答案",
    ),
    _cue(
        "math.verify",
        "defect",
        r"(?:wrong|incorrect|bad) (?:final )?(?:math )?(?:answers?|solutions?|results?|finals?|"
        r"calculat\w*)|(?:answers?|solutions?|finals?|results?) (?:is|are|that are|which are|that is|"
        r"don'?t match)?\s?(?:wrong|incorrect|match)|"
        r"(?:respostas?|resultados?|soluc\w+|contas) (?:\w+ )?(?:errad|incorret)\w*|(?:respuestas?|"
        r"resultados?|soluciones|cuentas) (?:\w+ )?(?:incorrect|equivocad|errone)\w*|答案(?:错误|不对|不正确|"
        r"错的|算错)|算错|错误答案",
    ),
    _cue(
        "code.execute",
        "operation",
        (
            r"(?:run|execute|exec) (?:\w+ ){0,3}(?:code|tests?|snippets?|programs?|unit tests)|(?:code|"
            r"snippets?|programs?|functions?)[^.;,]{0,50}\b(?:run|compile|parse|execute)s?\b|pass(?:es|"
            r"ing)? (?:\w+ ){0,3}(?:unit )?tests|unit tests|ejecut\w* (?:\w+ ){0,2}(?:codigo|pruebas)|"
            r"execut\w* (?:\w+ ){0,2}(?:codigo|testes)|单元测试|(?:执行|运行)代码|跑通|能运行"
        ),
    ),
    _cue(
        "rewrite.llm",
        "operation",
        r"\btranslat\w*|back-?translat\w*|traduc\w*|traduz\w*|\btraduc(?:e|ir)\b|翻译|回译|译成",
    ),
    _cue(
        "augment.paraphrase",
        "operation",
        (
            r"paraphras\w*|re-?phras\w*|re-?word\w*|rewrit\w*|parafras\w*|reescrev\w*|reescrib\w*|"
            r"reformul\w*|改写|复述|换(?:个|种)说法|同义"
        ),
    ),
    _cue("synth.evol_instruct", "operation", r"\bevol\w*(?:[- ]?instruct)?|wizardlm|evoluc\w*|进化|演化|复杂化"),
    _cue(
        "synth.self_instruct",
        "operation",
        (
            r"self-?instruct|(?:generate|create|make|write|synthesi[sz]e) (?:\w+ ){0,4}new "
            r"(?:instructions?|tasks?)|auto-?instruct|自指令|(?:生成|扩充).{0,6}(?:新指令|新的指令|指令数据)|ger[ae]\w* "
            r"(?:\w+ ){0,3}(?:novas )?instruc\w+|gener[ae]\w* (?:\w+ ){0,3}(?:nuevas )?instruccion\w*"
        ),
    ),
    _cue(
        "synth.qa_from_doc",
        "operation",
        r"(?:q\s?/\s?a|q&a|qa|question[- /]?(?:and[- ])?answers?|question[- ]answering|questions? and "
        r"answers?)(?: pairs?)?|(?:generate|make|create|write|synthesi[sz]e|extract|build) (?:\w+ "
        r"){0,4}questions?|customer questions|"
        r"ger[ae]\w* (?:\w+ ){0,4}(?:perguntas|pares)|gener[ae]\w* (?:\w+ ){0,4}(?:preguntas|pares)|"
        r"pares (?:de )?pergunta\w*|pares (?:de )?pregunta\w*|问答对?|生成.{0,6}(?:问题|问答)|出题",
    ),
    _cue(
        "synth.backtranslate",
        "operation",
        r"humpback|instruction back-?translation|reverse instructions?|指令回译|反向生成指令",
    ),
    _cue(
        "llm.generate",
        "operation",
        (
            r"answer (?:them|each|every|the (?:new|questions?|instructions?))|(?:generate|write|produce|"
            r"complete) (?:\w+ ){0,3}(?:answers?|responses?|solutions?|explanations?|completions?|"
            r"rationales?|chain)|respond\w* com (?:o )?modelo|(?:ger|gener)[ae]\w* (?:\w+ "
            r"){0,3}(?:respostas?|respuestas?|explicac\w+)|生成(?:回答|答案|解释|回复|解析)|补全"
        ),
    ),
    _cue(
        "math.solve_vote",
        "operation",
        (
            r"majority (?:vot\w*|answers?|label)|most (?:common|frequent) answer|self-?consistency|"
            r"\bvotes?\b|votac\w+|maioria|多数投票|投票|自洽"
        ),
    ),
    _cue(
        "score.llm_judge",
        "operation",
        r"llm[- ](?:as[- ]a[- ])?(?:judge\w*|scor\w*|rat\w*|grad\w*|juez|juiz)|\bjudge[sd]?\b|"
        r"\bjuez\b|\bjuiz\b|educational (?:value|quality|score)|valor educativo|(?:scor|rat|grad)(?:e|"
        r"ed|es|ing) (?:\w+ ){0,4}(?:by|with|using) (?:a |an |the )?(?:llm|model|gpt\S*)|"
        r"(?:let|ask|have) (?:a|an|the) (?:llm|model|gpt\S*) (?:to )?(?:rate|score|grade)|rate "
        r"(?:each|every|all|them)|裁判|(?:大模型|llm|gpt\S*|模型).{0,3}(?:打分|评分|评估|评判)|打分|教育价值|avali\w+ "
        r"(?:com|por) (?:um |o )?(?:llm|modelo)",
    ),
    _cue(
        "annotate.difficulty",
        "operation",
        (
            r"(?:annotat\w*|tag|label|estimat\w*|rat\w*|score|add) (?:\w+ ){0,3}difficult\w*|标注难度|难度(?:标注|"
            r"打标|评估|分级)|(?:anot|etiquet|estim)\w* (?:\w+ ){0,2}dificul\w*"
        ),
    ),
    _cue(
        "annotate.llm",
        "operation",
        (
            r"(?:tag|label|classif\w+|categori[sz]\w*|annotat\w*) (?:\w+ ){0,4}(?:domains?|topics?|"
            r"categor\w*|by|with|into|as|intents?|subjects?|fields?)|domain tag\w*|topic (?:tag|model|"
            r"label)\w*|classific\w* (?:\w+ ){0,4}(?:por|em|en|segun)|etiquet\w*|rotul\w*|打标签?|标注(?:领域|主题|"
            r"类别)|分类|按领域(?:分|标)|领域标签"
        ),
    ),
    _cue(
        "annotate.human",
        "operation",
        (
            r"human (?:annotat\w*|label\w*|review\w*)|manual (?:annotat\w*|label\w*|review)|anotac\w+ "
            r"(?:humana|manual)|人工(?:标注|审核|复核)|argilla|label ?studio"
        ),
    ),
    _cue("score.ifd", "operation", r"\bifd\b|instruction[- ]following difficulty|super-?filtering|cherry"),
    _cue("score.deita", "operation", r"\bdeita\b"),
    _cue("score.reward", "operation", r"reward model\w*|modelo de recompensa|奖励模型"),
    _cue("embed.text", "operation", r"\bembed(?:ding)?s?\b(?! de-?dup)|embeddings|向量化|嵌入"),
    _cue(
        "select.diverse",
        "operation",
        (
            r"k-?cent(?:er|re)|most diverse|divers\w+ (?:subset|selection|sampl\w*)|coverage (?:based "
            r")?select\w*|subconjunto divers\w*|多样性(?:采样|选择|筛选)?"
        ),
    ),
    _cue(
        "parse.pdf",
        "operation",
        r"\bpdfs?\b|\bocr\b",
    ),
    _cue(
        "parse.html",
        "operation",
        (
            r"(?:parse|extract|convert) (?:\w+ ){0,4}html|html (?:pages?|files?|dump|to text)|main "
            r"(?:text|content) (?:from|of)|extract\w* (?:the |only the )?(?:main |plain |body |article "
            r")?(?:text|content)\b|texto principal|contenido principal|conteudo principal|trafilatura|"
            r"\bwarcs?\b|common ?crawl|网页正文|提取正文|正文提取|解析网页|解析html"
        ),
    ),
    _cue("parse.office", "operation", r"\b(?:docx?|pptx?|word (?:files?|documents?)|powerpoint\w*)\b|word文档|幻灯片"),
    _cue(
        "crawl.site",
        "operation",
        (
            r"\bcrawl(?:ing)? (?:the|all|every|this|their|my|our|https?|a |\ue001)|\bscrap\w+|\bspider\b|"
            r"爬(?!虫数据)|抓取|rasp[ae]\w* |raspar|rastre[ae]\w*"
        ),
    ),
    _cue("fetch.http", "operation", r"\bdownload\w*|\bbaix[ae]\w*\b(?! qualidade)|\bdescarg\w*|下载"),
    _cue("columns.rename", "operation", r"\brenam\w*|renome\w*|renombr\w*|重命名|改名|列名改"),
    _cue(
        "columns.select",
        "operation",
        (
            r"(?:keep|select|drop|remove|delete) (?:only |just |all |the |other |every |unused )*(?:other "
            r")?(?:columns?|fields?)\b|(?:only|just) (?:the )?(?:columns?|fields?)|(?:mant\w+|fique|"
            r"deixe?|conserv\w*|qued\w*) (?:so |solo |apenas |com |con |las |as |los |os )*(?:colunas|"
            r"columnas|campos)|(?:apag|elimin|remov|quit|tir)\w* (?:as |las |a |la )?(?:coluna|"
            r"columna)s?\b|只保留.{0,12}(?:列|字段)|删(?:除|掉)?.{0,8}(?:列|字段)"
        ),
    ),
    _cue(
        "columns.cast",
        "operation",
        (
            r"\bcast\b|convert (?:\w+ ){0,3}to (?:int\w*|float\w*|number|string|bool\w*|date\w*)\b|"
            r"转成?(?:整数|浮点|数字|字符串)|convert\w* (?:\w+ ){0,3}(?:em|a) (?:numero|inteiro|entero|texto)"
        ),
    ),
    _cue(
        "columns.map",
        "operation",
        (
            r"\bhistory\b(?= |\W)|into (?:the )?history|map (?:the )?columns?|(?:join|concat\w*|merge|"
            r"combine|junt\w*|un[ae]|combin\w*|concaten\w*) (?:\w+ ){0,6}(?:columns?|fields?|colunas|"
            r"columnas|campos)|拼接|合并(?:列|字段)"
        ),
    ),
    _cue(
        "sample",
        "operation",
        r"\bat random\b|\brandomly\b|\bal azar\b|aleatoriamente|ao acaso|(?<!per )(?<!the )(?<!each "
        r")(?<!any )(?<!every )(?<!noisy )(?<!of )(?<!single )\bsampl(?:e|ing|ed)\b(?!s)|random "
        r"(?:sample|subset)|subsampl\w*|down-?sampl\w*|amostr(?:a|e|ar|agem)\b|muestr(?:a|ear|eo|"
        r"ea)\b|sorte\w* |抽样|采样|抽取|随机(?:抽|取|选|挑)|抽\s?\d|"
        r"(?:pick|take|choose|select|grab|keep) (?:only )?(?:the )?(?:first |random |about |around "
        r")*[\d.,]+\s?[km]?(?= (?:random |rarest |best )*(?:rows|samples|examples|records|docs|pairs|"
        r"lines|documents))|rarest",
    ),
    _cue(
        "balance",
        "operation",
        (
            r"\bbalanc\w*|equilibr\w*|(?:at most|max\w*|up to|cap(?:ped)?(?: at)?) [\d.,]+\s?[km]? (?:\w+ "
            r")?(?:per|for each|each|of each)|over-?sampl\w*|up-?sampl\w*|sobremuestre\w*|过采样|\b(?:per|"
            r"each|every|cada) (?:domain|source|class|label|category|language|group|topic|type|intent|"
            r"difficulty|level|subject|user|author|year|dominio|fonte|fuente|classe|clase|categoria|"
            r"idioma|lingua|tema|topico|tipo)\b|stratif\w*|estratific\w*|均衡|平衡|每(?:个|类|种)?(?:领域|来源|类别|类|"
            r"语言|标签).{0,4}(?:最多|至多|不超过|\d)|分层|按(?:来源|领域|类别|语言|source|domain)"
        ),
    ),
    _cue(
        "topk",
        "operation",
        (
            r"\btop[- ]?\d|\btop[- ]?k\b|\bbest [\d.,]+|\b(?:worst|bottom|lowest)(?:[- ]scoring)? [\d.,]+|"
            r"\bhighest[- ]scor\w*|melhores [\d.,]+|mejores [\d.,]+|(?:os|los|las|as) [\d.,]+ ?%? "
            r"(?:melhores|mejores|com maior|con mayor)|分数最高|得分最高|最好的\s?\d|前\s?\d+(?:\.\d+)?\s?(?:%|条|名)"
        ),
    ),
    _cue(
        "longest",
        "operation",
        (
            r"\b(?:longest|shortest) [\d.,]+|[\d.,]+ (?:longest|shortest)|(?:os|as|los|las) [\d.,]+ "
            r"(?:\w+ )?(?:mais|mas) (?:long|curt|larg|cort)\w+|最[长短]的?\s?\d+"
        ),
    ),
    _cue(
        "split",
        "operation",
        (
            r"(?<!test )(?<!dev )(?<!val )(?<!train )(?<!training )(?<!same )\bsplit\b(?! (?:\w+ "
            r"){0,3}into (?:chunks|passages|pieces|segments|windows|sentences|paragraphs))|"
            r"train\s?/\s?(?:test|val|dev)|train[- ]test split|hold(?:ing)?[- ]?out|set aside|"
            r"reserv[ae]\w* \d|divid\w+ (?:\w+ ){0,4}(?:treino|train|entrenamiento|\d)|(?:separ|divid|"
            r"particion)\w* (?:\w+ ){0,6}(?:treino|train|entrenamiento|test|teste|prueba|validac\w+)|划分|"
            r"切分(?:成)?(?:训练|train|\d)|拆分(?:成|为)?(?:训练|train|\d)|训练集.{0,6}(?:验证|测试)集|留出"
        ),
    ),
    _cue(
        "report.stats",
        "operation",
        r"\bstat(?:istic)?s?\b|\breport\b|\bcounts?\b(?! as)|\bsummar(?:y|ise|ize)\b|distribut\w*|"
        r"histogram\w*|profil(?:e|ing)\b|how many|(?:duplicate|dup|duplication) (?:rate|ratio)|"
        r"overview|take a look|have a look|"
        r"estatistic\w*|estadistic\w*|distribuic\w*|distribuc\w*|relator\w*|resumo|resumen|quant[oa]s "
        r"|cuant[oa]s |taxa de (?:duplic|repet)\w*|tasa de (?:duplic|repet)\w*|informe|统计|分布|重复率|重复度|"
        r"概况|看看|报告|有多少|数一下|计数",
    ),
    _cue(
        "mix.concat",
        "operation",
        (
            r"\bmix(?:ing|ed)?\b(?! of experts)|\bmerge\b(?! (?:the )?(?:columns?|fields?))|\bcombin(?:e|"
            r"ing)\b|\bconcat\w*(?! (?:\w+ ){0,3}(?:columns?|fields?))|\bblend\b|interleav\w*|\bmistur\w*|"
            r"\bmezcl\w*|\bjunt[ae]\w*|\bcombin[ae]\w*|\bfusion\w*|混合|合并(?!列|字段)|拼在一起|混在一起|配比"
        ),
    ),
    _cue(
        "format.chat",
        "operation",
        (
            r"share-?gpt|chat[- ]?(?:format\w*|ml|style)|chatml|messages format|openai (?:chat )?format|"
            r"(?:to|as|into|in) (?:the )?(?:chat|messages|conversation)\b(?! data)|formato (?:de "
            r")?(?:chat|conversa\w*|sharegpt|mensagens|mensajes)|对话格式|聊天格式|messages 格式|多轮格式"
        ),
    ),
    _cue(
        "format.generic",
        "operation",
        (
            r"\bformat(?:ting)?\b(?= ?(?:,|$|\.|and |it |them |the rows|everything|for (?:sft|training|"
            r"chat)))|\bformate\w* (?:para|los|os|as|las)|\bformatear\b|格式化|转(?:成|为)?训练格式"
        ),
    ),
    _cue(
        "format.alpaca",
        "operation",
        (
            r"(?:to|into|as|in|>|en|em|para|a|formato|format|成|为)\s*(?:the )?(?:formato )?alpaca(?! "
            r"?(?:en|zh)?\s?(?:demo|data|gpt|clean))|alpaca (?:format|style|json)|alpaca\s?格式|formato "
            r"alpaca"
        ),
    ),
    _cue(
        "format.preference",
        "operation",
        (
            r"preference (?:pairs?|data|format)|dpo (?:pairs?|data|format|set|jsonl|files?)|pares (?:de |"
            r"para )?(?:preferencia|dpo)|\bchosen\b|preferenc\w+|preference|偏好(?:对|数据)|best vs\.? worst|"
            r"best (?:and|versus) worst|melhor (?:vs|contra|e a? ?pior)|mejor (?:vs|contra|y la? ?peor)"
        ),
    ),
    _cue(
        "clean",
        "operation",
        (
            r"\bclean(?:ing|up|ed)?\b(?! (?:set|one|file|version|data\b(?! set)))|\bclean(?:-| )up\b|"
            r"\blimp[aei]\w*|清洗|清理(?!掉)|\bsanitiz\w*|tidy"
        ),
    ),
)
