"""Words for repairing, filtering, deduplicating and checking rows."""

from datamill.agents.rules.cue import Cue, cue

CUES: tuple[Cue, ...] = (
    cue(
        "dedup.minhash",
        "operation",
        r"near[- ]?de-?dup\w*|near[- ]?dup(?:licate)?s?[- ](?:removal|detection|filter\w*|step|pass)|"
        r"near-?dup(?:e|ed|ing)?\b|near[- ]identical\w*|fuzzy(?:[- ]?(?:de-?dup\w*|dup\w*|match\w*|stuff|hash\w*))?|"
        r"min-?hash\w*|\blsh\b|simhash",
        r"de-?dup\w* (?:aproximad\w*|difus\w*)|近似去重|模糊去重|模糊匹配|近重复去重|相似去重",
    ),
    cue(
        "dedup.minhash",
        "defect",
        r"(?:basically|practically|essentially|virtually|pretty much|more or less|roughly|just|mostly) (?:an? |"
        r"the )?(?:cop(?:y|ies)|copied|same|dup\w*|"
        r"identical|repeats?)\b(?: of)?|look(?:s|ing)? (?:almost |nearly |very )?(?:the same|alike)|re-?hash(?:es|"
        r"ed)?\b|"
        r"(?:praticamente|practicamente|basicamente|virtualmente) (?:iguais|iguales|a mesma|lo mismo|copias|"
        r"identic\w*|duplicad\w*)|"
        r"大同小异|雷同|差不多(?:的|一样)?|"
        r"near[- ]?duplicat\w*|near[- ]?(?:cop(?:y|ies)|clones?)\b|near[- ]?dup(?:e?s)\b|near[- ]dup\b|"
        r"almost (?:the same|identical|duplicate\w*)|nearly "
        r"(?:identical|the same)|very similar \w+|too similar|"
        r"quase[- ](?:iguais|identic\w*|duplicad\w*|repetid\w*)|(?:duplicat\w*|duplicad\w*|copias) "
        r"(?:aproximad\w*|proxim\w*|difus\w*|parecid\w*)|"
        r"casi[- ](?:iguales|identic\w*|duplicad\w*|repetid\w*)|muy parecid\w*|muito parecid\w*|"
        r"近似重复\w*|模糊重复|近重复|高度相似|几乎(?:一样|相同|重复)|差不多一样|(?:just |mere "
        r")?copies of|相似(?:度)?(?:很高|过高|较高)",
    ),
    cue(
        "dedup.exact",
        "operation",
        r"\bexact\b(?= (?:on|by|over|match|por|en|sobre|em)\b)|"
        r"exact(?:ly)?(?:[- ]match)?[- ](?:de-?dup\w*|dups?\b|matching)|exact[- ]only|"
        r"(?<![a-z-])hash[- ]de-?dup\w*|"
        r"de-?dup\w*(?:acion|acao)? exat\w*|deduplic\w* exact\w*|精确去重|严格去重|完全去重|哈希去重",
    ),
    cue(
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
    cue(
        "dedup.semantic",
        "operation",
        r"semantic(?:ally)?[- ](?:de-?dup\w*|duplicat\w*|similar\w*|near)|sem-?dedup|"
        r"embedding[- ](?:based )?de-?dup\w*|"
        r"too (?:close|similar) (?:\([^)]*\) )?(?:to|in meaning)|same meaning|deduplica\w* "
        r"semantic\w*|(?:duplicat\w*|duplicad\w*) semantic\w*|"
        r"demasiado parecid\w*|语义去重|语义重复|语义相似|意思(?:相同|一样|相近)",
    ),
    cue(
        "dedup.paragraph",
        "operation",
        (
            r"(?:paragraph|line)[- ]?(?:level)?[- ]?de-?dup\w*|de-?dup\w* (?:the |repeated )*(?:paragraphs|lines)\b|"
            r"(?:repeated|duplicate[d]?) (?:lines|"
            r"paragraphs) (?:within|inside|across)|段落去重|行级去重"
        ),
    ),
    cue(
        "dedup",
        "operation",
        r"(?<!near )(?<!near-)(?<!exact )(?<!exact-)\bde-?dup\w*|\bdedup\w*|去重|\buniq(?:ue)? (?:rows|lines|by)",
    ),
    cue(
        "dedup",
        "defect",
        r"(?<!near )(?<!near-)(?<!exact )(?<!exact-)(?<!exactly )\b(?:duplicat\w*|dups?|dupes?|"
        r"doubles)\b|\bduplicad\w*|\brepetid\w*|\brepeated \w+|"
        r"(?<!近似)(?<!模糊)(?<!近)(?<!完全)(?<!精确)(?<!语义)重复(?:的|项|数据|行|样本|问题|内容|"
        r"题|指令|回答|提问|记录|文本|对话|句子|条目|文档|新闻)",
    ),
    cue(
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
    cue(
        "text.normalize",
        "operation",
        r"normali[sz]\w* (?:the )?(?:white ?space|text|punctuation|quotes|unicode)|collapse (?:the "
        r")?(?:extra )?(?:white)?spaces?|lower-?cas\w*|strip (?:the )?punctuation|"
        r"normaliz\w* (?:o |el |os |los )?(?:texto|espac\w*|pontuac\w*|puntuac\w*)|minuscul\w*|"
        r"traditional to simplified|全角转?半角|全半角|繁体?转?简体?|规范化|统一标点|归一化",
    ),
    cue(
        "text.strip_boilerplate",
        "operation",
        (
            r"boiler-?plate|(?:licen[sc]e|copyright) headers?|cookie (?:banners?|notices?|lines?)|"
            r"nav(?:igation)? (?:menus?|bars?)|(?:strip|remov\w*|delet\w*|drop|get rid of|tir[ae]\w*|quit[ae]\w*|"
            r"elimin\w*) (?:out |the |all |any |as |os |las |los )*"
            r"(?:html|tags|urls?|links?|markdown|emojis?|hashtags|etiquetas html|enlaces)\b|去(?:掉|除)?(?:链接|"
            r"网址|标签|表情)|"
            r"headers? and "
            r"footers?|rodapes?|menus de navegac\w+|模板文字|导航栏|页眉页脚|去(?:掉|除)?html"
        ),
    ),
    cue(
        "text.chunk",
        "operation",
        (
            r"\bchunk\w*|split (?:\w+ ){0,3}into (?:chunks|passages|pieces|segments|windows)|segment\w* "
            r"(?:into|de)|divid\w+ (?:\w+ ){0,3}(?:em|en) (?:pedac\w*|trechos|fragmentos|trozos|blocos)|"
            r"分块|切块|切片|切成"
        ),
    ),
    cue(
        "filter.refusal",
        "defect",
        (
            r"refus\w+|as an ai(?: language)? model|as a (?:large )?language model|i(?:'m| am) sorry|\brecus\w+|"
            r"\brechaz\w+|negativas? "
            r"(?:do|del|de) model\w*|拒答|拒绝(?:回答|回复)?|抱歉类?"
        ),
    ),
    cue(
        "filter.empty",
        "defect",
        (
            r"\bempty\b|\bblank\b|\bnulls?\b|\bnan\b|(?:is|are|isn't) missing\b|(?:missing|without(?: an?)?|"
            r"no) (?:values?|outputs?|answers?|"
            r"responses?|text)\b|\bvazi[oa]s?\b|\bem branco\b|\bvaci[oa]s?\b|\ben blanco\b|空(?:的|值|行|白|输出|"
            r"回答|文本|字符串)|为空|缺失"
        ),
    ),
    cue(
        "filter.lang_generic",
        "operation",
        (
            r"(?:detect|identify|tag|filter(?: by)?|label) (?:the )?languages?|language[- ](?:id\w*|"
            r"detect\w*|filter\w*)|langid|detect\w* (?:o |el )?idioma|identific\w* (?:o |el )?idioma|"
            r"filtr\w* (?:por )?idioma|语言(?:识别|检测|过滤)|语种(?:识别|过滤)"
        ),
    ),
    cue(
        "pii.redact",
        "operation",
        (
            r"\bpii\b|anonymi[sz]\w*|de-?identif\w*|redact\w*|\bscrub\b|mask(?:ing)? (?:\w+ "
            r"){0,3}(?:e-?mails?|phones?|names?|personal|pii|numbers?|ips?|cards?)|anonimiz\w*|脱敏|匿名化|打码|"
            r"去隐私|去标识|隐去|掩码"
        ),
    ),
    cue(
        "pii.redact",
        "defect",
        (
            r"personal (?:data|info\w*|details|identif\w*)|dados pessoais|datos personales|informac\w+ "
            r"(?:pessoa\w+|personal\w*)|个人信息|隐私(?:信息|数据)?|敏感信息"
        ),
    ),
    cue(
        "filter.gopher_quality",
        "operation",
        (
            r"gopher|quality (?:filter\w*|rules?|heuristics?|check)|heuristic filter\w*|filtr\w* (?:de |"
            r"por )?(?:qualidade|calidad)|质量过滤|质量规则|规则过滤|启发式"
        ),
    ),
    cue(
        "filter.gopher_quality",
        "defect",
        (
            r"low[- ]quality|poor quality|bad[- ]quality|\bjunk\b|\bgarbage\b|\bgibberish\b|\bspam\w*|"
            r"reference lists?|bibliograph\w*|baixa qualidade|ma qualidade|\blixo\b|baja calidad|mala "
            r"calidad|\bbasura\b|低质|质量(?:差|低|不高)|垃圾|灌水|参考文献|referencias bibliograficas|listas? de "
            r"referencias?"
        ),
    ),
    cue("filter.c4", "operation", r"\bc4 (?:rules?|filter\w*|heuristics?)|C4规则|c4规则"),
    cue("filter.fineweb", "operation", r"fineweb (?:rules?|filter\w*|heuristics?|style)"),
    cue(
        "filter.gopher_repetition",
        "operation",
        (
            r"repetition (?:filter\w*|rules?)|repeated (?:n-?grams|lines)|repetitive (?:text|docs?|"
            r"pages?)|重复(?:行|n-?gram)比例|复读"
        ),
    ),
    cue(
        "filter.url",
        "operation",
        (
            r"(?:block-?list|blacklist|allow-?list)\w* (?:\w+ ){0,2}(?:domains?|urls?)|(?:url|domain) "
            r"(?:filter\w*|block-?list\w*)|adult sites?"
        ),
    ),
    cue(
        "filter.flagged_words",
        "defect",
        (
            r"(?:bad|flagged|banned|swear|dirty) ?words?|profan\w*|palavro\w+|palavras proibidas|"
            r"palabrotas|malas palabras|敏感词|脏话|违禁词|屏蔽词"
        ),
    ),
    cue(
        "score.classifier",
        "defect",
        (
            r"\btoxic\w*|\bnsfw\b|hate speech|offensive|hateful|toxic[oa]s?|discurso de odio|"
            r"ofensiv\w*|有毒|毒性|色情|暴力内容|仇恨"
        ),
    ),
    cue("filter.perplexity", "operation", r"perplexit\w*|\bppl\b|kenlm|perplexidade|perplejidad|困惑度"),
    cue(
        "decon.ngram",
        "operation",
        r"de-?contaminat\w*|nothing from|(?:shar\w*|has|have|with) (?:an? |any )?\d+[- ]?gram\w* (?:with|in common)|"
        r"\d+[- ]?gram overlap|"
        r"(?:not|isn'?t|aren'?t|none of (?:the|it)?(?: \w+)?) (?:\w+ ){0,3}in(?:side)? (?:the "
        r")?(?:test|eval|benchmark)\w*|descontamin\w*|contamina\w*|vazament\w*|fuga de datos|"
        r"filtrac\w+ del test|污染|去污|泄漏|泄露|(?:测试集|评测集|基准).{0,8}(?:重合|重叠|出现)",
    ),
    cue(
        "decon.ngram",
        "defect",
        (
            r"\bcontaminat\w*|(?:leak\w*|overlap\w*) (?:\w+ ){0,3}(?:with|from|between|into)\b|\bleak(?:s|"
            r"ed|age)?\b|\bcontaminac\w+|污染"
        ),
    ),
    cue(
        "math.verify",
        "operation",
        r"\bmismatch\w*|math[-_. ]?verif\w*|(?:verif\w*|check\w*|compar\w*|valid\w*) (?:the |that |if )?(?:columns? |"
        r"field )?[\w\ue002-\ue003]+ (?:column )?"
        r"(?:against|with|to|vs\.?|contra|com|con|match\w*|equals?) (?:the )?(?:columns? |field )?(?:\ue002|gold|"
        r"reference|ground|expected|label)|"
        r"verif\w*[^,.;]{0,24}(?:<<|####)|check\w*[^,.;]{0,24}<<|<<[^>]{0,20}>>|"
        r"verif\w* (?:\w+ ){0,4}(?:answers?|math|solutions?|calculat\w*|arithmetic|results?|finals?|"
        r"annotations?)|check (?:\w+ ){0,4}(?:math|calculations?|arithmetic|final answers?|answers? "
        r"(?:against|match\w*|with))|"
        r"verif\w* (?:\w+ ){0,4}(?:respostas?|respuestas?|contas|cuentas|soluc\w*|resultados?|"
        r"calculos?)|confer\w* (?:\w+ ){0,3}(?:respostas?|contas|resultado\w*)|comprueb\w* (?:\w+ "
        r"){0,4}(?:respuestas?|resultado\w*|cuentas)|"
        r"答案.{0,4}(?:校验|验证|核对|检查)|(?:校验|验证|核对|检查).{0,8}(?:答案|计算|结果|算式)|标准答案",
    ),
    cue(
        "math.verify",
        "defect",
        r"(?:wrong|incorrect|bad) (?:final )?(?:math )?(?:answers?|solutions?|results?|finals?|"
        r"calculat\w*)|(?:answers?|solutions?|finals?|results?) (?:is|are|that are|which are|that is|"
        r"don'?t match)?\s?(?:wrong|incorrect|match)|"
        r"(?:respostas?|resultados?|soluc\w+|contas) (?:\w+ )?(?:errad|incorret)\w*|(?:respuestas?|"
        r"resultados?|soluciones|cuentas) (?:\w+ )?(?:incorrect|equivocad|errone)\w*|答案(?:错误|不对|不正确|"
        r"错的|算错)|算错|错误答案",
    ),
)
