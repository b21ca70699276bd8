"""Words for model-written text, documents, columns, samples, formats and reports."""

from datamill.agents.rules.cue import Cue, cue

CUES: tuple[Cue, ...] = (
    cue(
        "code.execute",
        "operation",
        (
            r"(?:run|execute|exec) (?:\w+ ){0,3}(?:code|tests?|snippets?|programs?|unit tests)|(?:code|"
            r"snippets?|programs?|functions?)[^.;,]{0,50}\b(?:run|compile|parse|execute)s?\b|pass(?:es|"
            r"ing)? (?:\w+ ){0,3}(?:unit )?tests|unit tests|ejecut\w* (?:\w+ ){0,2}(?:codigo|pruebas)|"
            r"execut\w* (?:\w+ ){0,2}(?:codigo|testes)|单元测试|(?:执行|运行)代码|跑通|能运行"
        ),
    ),
    cue(
        "rewrite.llm",
        "operation",
        r"(?:summari[sz]\w*|resum[aei]\w*) (?:each|every|all|them|cada|todos|todas|los|las|os|as)(?: \w+)?|"
        r"summari[sz]\w*[^.;]{0,40}(?:to|in|into) \d+|summari[sz]\w*[^.;]{0,40}\b(?:llm|model|gpt)|写摘要|生成摘要|"
        r"摘要|概括|"
        r"simplif\w* (?:the |each |every |all )|\btranslat\w*|back-?translat\w*|traduc\w*|traduz\w*|\btraduc(?:e|"
        r"ir)\b|翻译|回译|译成",
    ),
    cue(
        "augment.paraphrase",
        "operation",
        (
            r"paraphras\w*|re-?phras\w*|re-?word\w*|rewrit\w*|parafras\w*|reescrev\w*|reescrib\w*|"
            r"reformul\w*|改写|复述|换(?:个|种)说法|同义"
        ),
    ),
    cue("synth.evol_instruct", "operation", r"\bevol\w*(?:[- ]?instruct)?|wizardlm|evoluc\w*|进化|演化|复杂化"),
    cue(
        "synth.self_instruct",
        "operation",
        (
            r"self-?instruct|(?:generate|create|make|write|synthesi[sz]e) (?:\w+ ){0,4}new "
            r"(?:instructions?|tasks?)|auto-?instruct|自指令|(?:生成|扩充).{0,6}(?:新指令|新的指令|"
            r"指令数据)|ger[ae]\w* "
            r"(?:\w+ ){0,3}(?:novas )?instruc\w+|gener[ae]\w* (?:\w+ ){0,3}(?:nuevas )?instruccion\w*"
        ),
    ),
    cue(
        "synth.qa_from_doc",
        "operation",
        r"(?:q\s?/\s?a|q&a|qa|question[- /]?(?:and[- ])?answers?|question[- ]answering|questions? and "
        r"answers?)(?: pairs?)?|(?:generate|make|create|write|synthesi[sz]e|extract|build|pull|derive|"
        r"produce) (?:(?!answers?|"
        r"responses?)\w+ "
        r"){0,4}questions?|customer questions|"
        r"ger[ae]\w* (?:\w+ ){0,4}(?:perguntas|pares)|gener[ae]\w* (?:\w+ ){0,4}(?:preguntas|pares)|"
        r"pares (?:de )?pergunta\w*|pares (?:de )?pregunta\w*|问答对?|生成.{0,6}(?:问题|问答)|出题",
    ),
    cue(
        "synth.backtranslate",
        "operation",
        r"humpback|instruction back-?translation|reverse instructions?|指令回译|反向生成指令",
    ),
    cue(
        "llm.generate",
        "operation",
        (
            r"answer (?:them|each|every|the (?:new|questions?|instructions?))|(?:generate|write|produce|"
            r"complete) (?:\w+ ){0,3}(?:answers?|responses?|solutions?|explanations?|completions?|"
            r"rationales?|chain)|respond\w* com (?:o )?modelo|(?:ger|gener)[ae]\w* (?:\w+ "
            r"){0,3}(?:respostas?|respuestas?|explicac\w+)|生成(?:回答|答案|解释|回复|解析)|补全"
        ),
    ),
    cue(
        "math.solve_vote",
        "operation",
        (
            r"\bmajority\b(?! class)|most (?:common|frequent) answer|self-?consistency|"
            r"\bvotes?\b|votac\w+|maioria|多数投票|投票|自洽"
        ),
    ),
    cue(
        "score.llm_judge",
        "operation",
        r"\b(?:scored|rated|graded) (?:at least |above |over |>= ?)?\d|"
        r"llm[- ](?:as[- ]a[- ])?(?:judge\w*|scor\w*|rat\w*|grad\w*|juez|juiz)|\bjudge[sd]?\b|"
        r"\bjuez\b|\bjuiz\b|educational (?:value|quality|score)|valor educativo|(?:scor|rat|grad)(?:e|"
        r"ed|es|ing) (?:\w+ ){0,4}(?:by|with|using) (?:a |an |the )?(?:llm|model|gpt\S*)|"
        r"(?:let|ask|have|get|make|use) (?:a |an |the |our |my )?(?:llm|model|gpt\S*|claude\S*|language model|"
        r"\ue004+) (?:to )?(?:rate|score|grade|judge|evaluate)\w*|"
        r"(?:rate|grade|score)s? (?:each|every|all|them|the (?:answers|responses|rows|samples|outputs))|\b(?:llm|"
        r"model|gpt\S*) (?:rates?|grades?|scores?)\b|"
        r"(?:modelo|llm|juiz|juez) (?:\w+ )?(?:avali\w+|pontu\w+|puntu\w+|calif\w+|evalu\w+)|(?:calific|puntu|"
        r"pontu)\w+ (?:cada|con|com|las|os|as|los) |打[^,。;]{0,10}分|裁判|(?:大模型|llm|gpt\S*|模型).{0,3}(?:打分|"
        r"评分|评估|评判)|打分|"
        r"教育价值|avali\w+ "
        r"(?:com|por) (?:um |o )?(?:llm|modelo)",
    ),
    cue(
        "annotate.difficulty",
        "operation",
        (
            r"(?:give|assign|add|put|set) (?:\w+ ){0,4}difficult\w*|(?:annotat\w*|tag|label|estimat\w*|rat\w*|score|"
            r"add) (?:\w+ ){0,3}difficult\w*|标注难度|难度(?:标注|"
            r"打标|评估|分级)|(?:anot|etiquet|estim)\w* (?:\w+ ){0,2}dificul\w*"
        ),
    ),
    cue(
        "annotate.llm",
        "operation",
        (
            r"(?:sort|group|bucket|assign|divid)\w* (?:\w+ ){0,4}(?:into|to|by) (?:\w+ )?(?:domains?|topics?|"
            r"categor\w*|buckets|subjects?)|"
            r"(?:tag|label|classif\w+|categori[sz]\w*|annotat\w*) (?:\w+ ){0,4}(?:domains?|topics?|"
            r"categor\w*|by|with|into|as|intents?|subjects?|fields?)|domain tag\w*|topic (?:tag|model|"
            r"label)\w*|classific\w* (?:\w+ ){0,4}(?:por|em|en|segun)|etiquet\w*|rotul\w*|打标签?|标注(?:领域|主题|"
            r"类别)|分类|按领域(?:分|标)|领域标签"
        ),
    ),
    cue(
        "annotate.human",
        "operation",
        (
            r"human (?:annotat\w*|label\w*|review\w*)|manual (?:annotat\w*|label\w*|review)|anotac\w+ "
            r"(?:humana|manual)|人工(?:标注|审核|复核)|argilla|label ?studio"
        ),
    ),
    cue("score.ifd", "operation", r"\bifd\b|instruction[- ]following difficulty|super-?filtering|cherry"),
    cue("score.deita", "operation", r"\bdeita\b"),
    cue("score.reward", "operation", r"reward model\w*|modelo de recompensa|奖励模型"),
    cue("embed.text", "operation", r"\bembed(?:ding)?s?\b(?! de-?dup)|embeddings|向量化|嵌入"),
    cue(
        "select.diverse",
        "operation",
        (
            r"k-?cent(?:er|re)|most diverse|divers\w+ (?:subset|selection|sampl\w*)|coverage (?:based "
            r")?select\w*|subconjunto divers\w*|多样性(?:采样|选择|筛选)?"
        ),
    ),
    cue(
        "parse.pdf",
        "operation",
        r"\bpdfs?\b|\bocr\b",
    ),
    cue(
        "parse.html",
        "operation",
        (
            r"(?:parse|extract|convert) (?:\w+ ){0,4}html|html (?:pages?|files?|dump|to text)|main "
            r"(?:text|content|body)\b|extract\w* (?:the |only the )?(?:main |plain |body |article "
            r")?(?:text|content)\b|texto principal|contenido principal|conteudo principal|trafilatura|"
            r"\bwarcs?\b|common ?crawl|网页正文|提取正文|正文提取|解析网页|解析html"
        ),
    ),
    cue(
        "parse.office",
        "operation",
        r"\b(?:docx|\.doc|doc files?|pptx?|(?:word|office) (?:files?|documents?|docs?)|excel files?|xlsx?|slides?|"
        r"spreadsheets?|powerpoint\w*)\b|word文档|幻灯片",
    ),
    cue(
        "crawl.site",
        "operation",
        (
            r"\bcrawl(?:ing)? (?:the|all|every|this|their|my|our|https?|a |\ue001)|\bscrap\w+|\bspider\b|"
            r"爬(?!虫数据)|抓取|rasp[ae]\w* |raspar|rastre[ae]\w*"
        ),
    ),
    cue("fetch.http", "operation", r"\bdownload\w*|\bbaix[ae]\w*\b(?! qualidade)|\bdescarg\w*|下载"),
    cue("columns.rename", "operation", r"\brenam\w*|renome\w*|renombr\w*|重命名|改名|列名改"),
    cue(
        "columns.select",
        "operation",
        (
            r"(?:drop|remove|delete) (?:the )?(?:(?!from\b|in\b|of\b|where\b|with\b|by\b|on\b|any\b|"
            r"rows?\b)[\w\ue002\ue003]+(?:,| and)? ){1,3}"
            r"(?:columns?|fields?)(?=\s*(?:[,.;]|$|and\b|then\b|from\b|in\b))|(?:keep|select|drop|remove|"
            r"delete) (?:only |just |all |the |other |every |unused )*(?:other "
            r")?(?:columns?|fields?)\b|(?:only|just) (?:the )?(?:columns?|fields?)|(?:mant\w+|fique|"
            r"deixe?|conserv\w*|qued\w*) (?:so |solo |apenas |com |con |las |as |los |os )*(?:colunas|"
            r"columnas|campos)|(?:apag|elimin|remov|quit|tir)\w* (?:as |las |a |la )?(?:coluna|"
            r"columna)s?\b|只保留.{0,12}(?:列|字段)|删(?:除|掉)?.{0,8}(?:列|字段)"
        ),
    ),
    cue(
        "columns.cast",
        "operation",
        (
            r"\bcast\b|convert (?:\w+ ){0,3}to (?:int\w*|float\w*|number|string|bool\w*|date\w*)\b|"
            r"转成?(?:整数|浮点|数字|字符串)|convert\w* (?:\w+ ){0,3}(?:em|a) (?:numero|inteiro|entero|texto)"
        ),
    ),
    cue(
        "columns.map",
        "operation",
        (
            r"\bhistory\b(?= |\W)|into (?:the )?history|map (?:the )?columns?|(?:join|concat\w*|merge|"
            r"combine|junt\w*|un[ae]|combin\w*|concaten\w*) (?:\w+ ){0,6}(?:columns?|fields?|colunas|"
            r"columnas|campos)|拼接|拼成一列|合并(?:列|字段)"
        ),
    ),
    cue(
        "sample",
        "operation",
        r"(?:cut|reduc|shrink|trim|downsiz|reduz)\w*[^.;]{0,24}(?:to|by|a|para|em|en) \d|(?:缩减|"
        r"缩小|减少)[^。;]{0,10}(?:到|为|至)\s?\d|"
        r"(?:leave|keep|give|take|retain|want|need|grab|pick|draw|deix\w*|fica\w*|deja\w*|qued\w*|tom[ae]|peg[ae]\w*|"
        r"留|只要|保留|取|抽)\s?(?:me |us |com |con )?"
        r"(?:only |just |about |so |solo |apenas |a random |um |una |o |el )*\d[\d.,]*\s?(?:%|percent|por cento|"
        r"por ciento) (?:(?:of|d[aeo]s?|del|的)\b|(?=\s*(?:$|[,.;])))|\bat random\b|\d[\d.,]*\s?[km%]? (?:rows |"
        r"samples |docs )?(?:picked |chosen |drawn )?(?:at )?random(?:ly)?\b|\brandomly\b|\brandom \d|\bal azar\b|"
        r"aleatoriamente|ao acaso|(?<!per )(?<!the )(?<!each "
        r")(?<!any )(?<!every )(?<!noisy )(?<!of )(?<!single )\bsampl(?:e|ing|ed)\b(?!s)|random "
        r"(?:sample|subset)|subsampl\w*|down-?sampl\w*|amostr(?:a|e|ar|agem)\b|muestr(?:a|ear|eo|"
        r"ea)\b|sorte\w* |抽样|采样|抽取|随机(?:抽|取|选|挑)|抽\s?\d|"
        r"(?:pick|take|choose|select|grab|keep) (?:only )?(?:the )?(?:first |random |about |around "
        r")*[\d.,]+\s?[km]?(?= (?:random |rarest |best )*(?:rows|samples|examples|records|docs|pairs|"
        r"lines|documents))|rarest|\b(?:give me|send me|get me|i (?:just |only )?(?:want|need)|me d[eaá]|dame|quiero|"
        r"quero|preciso de|necesito) "
        r"(?:only |just |about |around |so |solo |apenas |unas? |uns |umas? )*[\d.,]+\s?[km]?(?= (?:random )*(?:rows|"
        r"samples|examples|records|docs|"
        r"lines|documents|linhas|filas|exemplos|ejemplos|registros))",
    ),
    cue(
        "head",
        "operation",
        r"\b(?:first|last) [\d.,]+\s?k? (?:rows|lines|records|samples|examples|docs)|(?:primeir[ao]s|primer[ao]s|"
        r"ultim[ao]s) [\d.,]+ (?:linhas|filas|registros)|最后 ?\d+ ?(?:条|行)",
    ),
    cue(
        "sort",
        "operation",
        r"\bsort(?:ed)? (?:\w+ ){0,3}(?:by|on)\b|\border(?:ed)? (?:them |the rows |rows )?by\b|"
        r"\bordena\w* (?:\w+ ){0,2}(?:por|pel)|排序",
    ),
    cue("shuffle", "operation", r"\bshuffl(?:e|ed|es)\b(?! across)|embaralh\w*|\bbaraj\w*|打乱|洗牌"),
    cue(
        "cluster",
        "operation",
        r"\bcluster(?:ing)? (?:them|the|it|into|all|rows|docs|by)\b(?! at)|聚类|agrup\w* (?:em|en) \d+ (?:grupos|"
        r"clusters)",
    ),
    cue(
        "balance",
        "operation",
        (
            r"\b(?:same|equal) (?:number|amount|count|share|size)s? (?:of \w+ )?(?:for|from|per|of|in|by) (?:each |"
            r"every )?|"
            r"\bequally (?:from|across|by|per)|mesm[ao] (?:numero|quantidade)|mism[ao] (?:numero|cantidad)|"
            r"\bas many (?:\w+ )?(?:from|of|per) each|"
            r"\bbalanc\w*|equilibr\w*|(?:at most|max\w*|up to|cap(?:ped)?(?: at)?) [\d.,]+\s?[km]? (?!words|char|tok|"
            r"pala)(?:\w+ "
            r")?(?:per|for each|each|of each)|over-?sampl\w*|up-?sampl\w*|sobremuestre\w*|过采样|\b(?:per|"
            r"each|every|cada|por) (?:domain|source|class|label|category|language|group|topic|type|intent|"
            r"difficulty|level|subject|user|author|year|dominio|fonte|fuente|classe|clase|categoria|"
            r"idioma|lingua|tema|topico|tipo)\b|stratif\w*|estratific\w*|均衡|平衡|每(?:个|类|种)?(?:领域|来源|类别|类|"
            r"语言|标签).{0,4}(?:最多|至多|不超过|\d)|各(?:抽|取|选|留|保留)?\s?\d|分层|按(?:来源|领域|类别|语言|"
            r"source|domain)"
        ),
    ),
    cue(
        "topk",
        "operation",
        (
            r"\b[\d.,]+\s?[km%]? ?(?:\w+ ){0,2}(?:with|com|con) (?:the |a |o |el |la |los |os )?(?:highest|largest|"
            r"lowest|best|biggest|maior(?:es)?|"
            r"mayor(?:es)?|menor(?:es)?|melhor(?:es)?|mejor(?:es)?)|\b[\d.,]+\s?k? (?:best|highest|top|worst|lowest)\b|"
            r"\btop[- ]?\d|\btop[- ]?k\b|\bbest [\d.,]+|\b(?:worst|bottom|lowest)(?:[- ]scoring)? [\d.,]+|"
            r"\bhighest[- ]scor\w*|melhores [\d.,]+|mejores [\d.,]+|(?:os|los|las|as) [\d.,]+ ?%? "
            r"(?:melhores|mejores|com maior|con mayor)|分数最高|得分最高|最好的\s?\d|前\s?\d+(?:\.\d+)?\s?(?:%|条|名)"
        ),
    ),
    cue(
        "longest",
        "operation",
        (
            r"\b(?:longest|shortest) [\d.,]+|[\d.,]+ (?:longest|shortest)|(?:os|as|los|las) [\d.,]+ "
            r"(?:\w+ )?(?:mais|mas) (?:long|curt|larg|cort)\w+|最[长短]的?\s?\d+"
        ),
    ),
    cue(
        "split",
        "operation",
        (
            r"(?:repart|particion|separ)\w* (?:\w+ ){0,5}(?:en|em) \d|"
            r"(?<!test )(?<!dev )(?<!val )(?<!train )(?<!training )(?<!same )\bsplit\b(?! (?:\w+ "
            r"){0,3}into (?:chunks|passages|pieces|segments|windows|sentences|paragraphs))|"
            r"train\s?/\s?(?:test|val|dev)|train[- ]test split|hold(?:ing)?[- ]?out|set aside|"
            r"reserv[ae]\w* \d|divid\w+ (?:\w+ ){0,4}(?:treino|train|entrenamiento|\d)|(?:separ|divid|"
            r"particion)\w* (?:\w+ ){0,6}(?:treino|train|entrenamiento|test|teste|prueba|validac\w+)|划分|"
            r"切分(?:成)?(?:训练|train|\d)|拆分(?:成|为)?(?:训练|train|\d)|训练集?.{0,6}(?:验证|测试)集?|分(?:成|"
            r"为)\s?(?:训练|train|\d)|"
            r"\d+\s?[:/]\s?\d+(?:\s?[:/]\s?\d+)?\s?(?:的比例)?"
            r"(?:划分|切分|拆分|分)|留出"
        ),
    ),
    cue(
        "report.stats",
        "operation",
        r"\bstat(?:istic)?s?\b|\breport\b|\bcounts?\b(?! as)|\bsummar(?:y|ise|ize)\b|distribut\w*|"
        r"histogram\w*|profil(?:e|ing)\b|how many|(?:duplicate|dup|duplication) (?:rate|ratio)|"
        r"overview|take a look|have a look|"
        r"estatistic\w*|estadistic\w*|distribuic\w*|distribuc\w*|relator\w*|resumo|resumen|quant[oa]s "
        r"|cuant[oa]s |taxa de (?:duplic|repet)\w*|tasa de (?:duplic|repet)\w*|informe|统计|分布|重复率|重复度|"
        r"概况|看看|报告|有多少|数一下|计数",
    ),
    cue(
        "mix.concat",
        "operation",
        (
            r"\bmix(?:ing|ed)?\b(?! of experts)|\bmerge\b(?! (?:the )?(?:columns?|fields?))|\bcombin(?:e|"
            r"ing)\b|\bconcat\w*(?! (?:\w+ ){0,3}(?:columns?|fields?))|\bblend\b|interleav\w*|\bmistur\w*|"
            r"\bmezcl\w*|\bjunt[ae]\w*|\bcombin[ae]\w*|\bfusion\w*|混合|混入|混进|混一下|混起来|合并(?!列|字段)|"
            r"拼在一起|混在一起|配比"
        ),
    ),
    cue(
        "format.chat",
        "operation",
        (
            r"share-?gpt|chat[- ]?(?:format\w*|ml|style)|chatml|messages format|openai (?:chat )?format|"
            r"(?:to|as|into|in) (?:the )?(?:chat|messages|conversation)\b(?! data)|formato (?:de "
            r")?(?:chat|conversa\w*|sharegpt|mensagens|mensajes)|对话格式|聊天格式|messages 格式|多轮格式"
        ),
    ),
    cue(
        "format.generic",
        "operation",
        (
            r"\bformat(?:ting)?\b(?= ?(?:,|$|\.|and |it |them |the rows|everything|for (?:sft|training|"
            r"chat)))|\bformate\w* (?:para|los|os|as|las)|\bformatear\b|格式化|转(?:成|为)?训练格式"
        ),
    ),
    cue(
        "format.alpaca",
        "operation",
        (
            r"(?:to|into|as|in|>|en|em|para|a|formato|format|成|为)\s*(?:the )?(?:formato )?alpaca(?! "
            r"?(?:en|zh)?\s?(?:demo|data|gpt|clean))|alpaca (?:format|style|json)|alpaca\s?格式|formato "
            r"alpaca"
        ),
    ),
    cue(
        "format.preference",
        "operation",
        (
            r"preference (?:pairs?|data|format)|dpo (?:pairs?|data|format|set|jsonl|files?)|pares (?:de |"
            r"para )?(?:preferencia|dpo)|\bchosen\b|preferenc\w+|preference|偏好(?:对|数据)|best vs\.? worst|配对|"
            r"最高(?:分)?(?:的)?(?:和|与|对|vs)最低|"
            r"best (?:and|versus) worst|melhor (?:vs|contra|e a? ?pior)|mejor (?:vs|contra|y la? ?peor)"
        ),
    ),
    cue(
        "clean",
        "operation",
        (
            r"\bclean(?:ing|up|ed)?\b(?! (?:set|one|file|version|data\b(?! set)))|\bclean(?:-| )up\b|"
            r"\blimp[aei]\w*|清洗|清理(?!掉)|\bsanitiz\w*|tidy"
        ),
    ),
)
