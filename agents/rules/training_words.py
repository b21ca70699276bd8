"""Training wishes in a request: stage, model, paradigm, method, and every number that belongs to them.

Methods and keys are those of the training layer and of LLaMA-Factory; a method that is not built yet is still
understood, so that it can be named as missing with all that was said about it.
"""

import re
from dataclasses import dataclass, field
from typing import Any

from datamill.agents.rules.columns import named_columns
from datamill.agents.rules.quantities import Quantity, quantities
from datamill.agents.rules.request import Request
from datamill.agents.rules.sources import Source, model_name
from datamill.training.registry import selectors

PARADIGMS = {
    "select": "dynamic_select",
    "mix": "dynamic_mix",
    "reweight": "dynamic_weight",
    "order": "dynamic_reorder",
    "static": "static",
}

_TRAIN = re.compile(
    r"fine-?\s?tun\w*|\btrain(?:ing|ed)?\b(?!\s*(?:set|data\b|split|file|rows|examples|/|,? ?test|"
    r"corpus|dataset|data|集))|\bsft\b(?! (?:(?:instruction|chat|training) )?(?:set|data|dataset|corpus|format|json))|"
    r"\bdpo\b(?! (?:(?:preference|training|ranking) )?(?:set|data|pairs?|dataset|format|files?|jsonl))|\bkto\b|"
    r"\brlhf\b(?! data| set|数据)|\bppo\b|\bq?lora\b|"
    r"\bpre-?train\w*|\btrein(?:a|e|ar|ei|amos|ando|em)\b|\bentren(?:a|e|ar|ando|emos|"
    r"en)\w{0,3}\b(?<!miento)|\bajust(?:a|ar|e)\b|\bafin(?:a|ar|e)\b|微调|训练(?!集|数据|样本|语料)|预训练"
)
_NOT_TRAIN = re.compile(
    r"(?:for|before|prior to|antes (?:de|do|da)|para (?:o |a |el |la |un |um )?|ready (?:to|for)|"
    r"用于|以便|适合|供|做成?|准备|in) ?(?:the |later |a |my |our |(?:math|code|chat|web|dialog\w*|"
    r"instruction|reasoning|domain|legal|medical|later|future|downstream|some) )*(?:sft|dpo|"
    r"training|train|fine-?\s?tun\w*|treino|treinamento|treinar|treina\w*|entren\w*|ajuste|微调|训练|"
    r"预训练|pre-?train\w*)\b(?! (?:\ue004|on|with|using))"
    r"|\d\s?%\s?(?:for |to |as |de |para |in )?(?:train|treino|entren)\w*|into (?:a )?train\b|"
    r"\btrain(?:ing)? and (?:test|val|dev|eval)"
    r"|训练集?\s?[/、,和与]\s?(?:验证|测试|开发)|(?:分成|分为|划分为?|拆成|切成)训练|(?:验证|测试)\s?[/、,和与]\s?训练"
    r"|(?:用于|做|准备|before|for|para) ?(?:sft|微调|训练|预训练)|(?:sft|dpo|训练|微调)[ ]?(?:set|data|dataset|"
    r"数据集?|集|用)|treino\s?[/e]|train\s?[/,]\s?(?:val|test|dev|eval)|conjunto de (?:treino|"
    r"entrenamiento)|data de trein\w+|"
    r"datos de entren\w+|dados de trein\w+"
)
_METHODS: tuple[tuple[str, str, str], ...] = (
    ("select", "cluster_less", r"cluster[- _]?less"),
    (
        "select",
        "delta_loss",
        (
            r"delta[- _]?loss|loss[- _]delta|(?:perda|perdida) delta|delta d[ae] (?:perda|la perdida|"
            r"perdida)|损失差|delta ?损失|损失(?:变化|下降)量"
        ),
    ),
    ("select", "tsds", r"\btsds\b"),
    ("select", "icons", r"\bicons\b (?:select|voting|method)|\bicons\b(?= )"),
    ("select", "rds_plus", r"\brds\s?(?:\+|plus)"),
    ("select", "bm25", r"\bbm-?25\b"),
    ("select", "infobatch", r"infobatch"),
    ("select", "rho_loss", r"\brho-?(?:1|loss)"),
    ("select", "greats", r"\bgreats\b"),
    ("mix", "doremi", r"doremi|do-?re-?mi"),
    ("mix", "odm", r"\bodm\b|online data mixing"),
    ("mix", "dynamic_moe", r"dynamic[- ]?moe|moe[- ]?(?:based )?mix\w*|router (?:logits|based)"),
    (
        "mix",
        "temperature",
        (
            r"temperature[- ](?:based |scaled |weighted )?(?:data )?(?:mix|sampl)\w*|按温度(?:采样|混合)|mistura "
            r"por temperatura|mezcla por temperatura"
        ),
    ),
    ("mix", "aioli", r"\baioli\b"),
    ("mix", "doge", r"\bdoge\b"),
    ("mix", "regmix", r"reg-?mix"),
    ("reweight", "joint_update_aware", r"joint[- ]update"),
    ("reweight", "adapt", r"\badapt\b(?= |-)(?! to)"),
    (
        "reweight",
        "loss",
        (
            r"re-?weight\w*|(?:less|more|lower|higher|smaller|larger) weights?\b|(?:down|up)-?weight\w*|"
            r"weigh\w* (?:each |the |every )?(?:samples?|examples?|rows?|tokens?)|menos peso|mais peso|"
            r"menor peso|maior peso|mas peso|mayor peso|repondera\w*|ponder(?:a|ar|e|acao|acion)\b|降权|加权|"
            r"(?:更低|更高|较低|较高|降低|提高).{0,6}权重|权重.{0,8}(?:更低|更高|降低|调低|小)|重加权"
        ),
    ),
    (
        "order",
        "sorting",
        (
            r"sort\w* (?:(?:the|all|by|samples|examples|rows|data|training|them|from) )+|short(?:est|er)? "
            r"(?:ones |samples |examples )?to long\w*|de (?:corto|curto) a (?:largo|longo)|按长度排序|由短到长|"
            r"从短到长|curriculum|(?:short|long|easy|simple|hard)\w* (?:samples|examples|ones|rows|texts|docs|"
            r"data) first|easy (?:ones? |samples? |examples? )?(?:first|to hard)|easiest first|"
            r"hard(?:est)? (?:ones? )?(?:last|first)|shortest first|curricul[oa]\b|(?:mais )?facei?s? "
            r"(?:primeiro|antes)|(?:mas )?faciles? primero|由易到难|从易到难|先易后难|课程学习|从简单到(?:困)?难"
        ),
    ),
)
_CASED = (
    ("select", "less", r"\bLESS\b"),
    ("select", "near", r"\bNEAR\b"),
    ("select", "nice", r"\bNICE\b"),
    ("select", "icons", r"\bICONS\b"),
    ("reweight", "adapt", r"\bADAPT\b|\bADAPT\b"),
)
_WITH = (
    r"(?:with|use|using|via|by|method|selector|com|con|usando|usa|use|por|metodo|method:?|用|使用|采用|"
    r"通过|方法|--method)\s*(?:the )?"
)
_LOWER = (
    (
        "select",
        "less",
        (
            rf"{_WITH}less\b(?! than| weight| data| noise| of| rows| tokens)|\bless (?:selection|selector|"
            rf"method|to (?:select|pick|choose))|less ?(?:选|筛|挑|方法|算法)"
        ),
    ),
    (
        "select",
        "near",
        (
            rf"near-?duplicate[- ]aware select\w*|{_WITH}near\b(?= to | for |$|,)|\bnear (?:selection|"
            rf"selector|method)\b"
        ),
    ),
    ("select", "nice", rf"{_WITH}nice\b(?! )|\bnice (?:selection|selector|method)\b"),
    (
        "select",
        "random",
        (
            r"random(?:ly)? select\w*|select\w* (?:\w+ ){0,4}(?:at )?random(?:ly)?|(?:choos|pick|draw|"
            r"tak)\w* (?:\w+ ){0,4}(?:at random|randomly)|random (?:[\d.]+\s?% )?(?:selector|baseline|selection)|"
            r"selec\w+ "
            r"aleatori\w*|随机(?:选|挑)(?:择|取)?(?:器|[^,。;]{0,14}(?:作为|做|基线))|随机基线"
        ),
    ),
    (
        "select",
        "loss",
        (
            r"(?:high|low|larg|small|great|bigg)(?:est|er)? (?:training )?loss\b|by (?:their |its |the |"
            r"training )?loss\b|loss[- ]based select\w*|(?:maior|menor|mayor|alta|baixa|baja) (?:perda|"
            r"perdida)|(?:perda|perdida) (?:mais |mas )?(?:alta|baixa|baja|grande)|按 ?(?:训练)?(?:损失|"
            r"loss) ?(?:值)?(?:大小|高低)?(?:来)?(?:动态)?(?:地)?(?:选|挑|筛)|(?:损失|loss) ?(?:最大|最高|"
            r"较大|较高|大|高|最小|最低)"
        ),
    ),
)
_SELECT = re.compile(
    r"(?:pick|select|choose|find|keep)\w* (?:\w+ ){0,3}(?:valuable|useful|helpful|influential|"
    r"informative|important|relevant|impactful)|most (?:valuable|influential|useful|informative) "
    r"(?:data|samples|examples)|dynamic select\w*|data selection|online selection|refresh the "
    r"selection|"
    r"selec\w* (?:os |las |los |as )?(?:dados|exemplos|datos|ejemplos) mais? (?:uteis|utiles|"
    r"valios\w+)|selec\w+ dinamic\w+|(?:选|挑).{0,6}(?:最有价值|最有用|最相关|最有帮助)|动态选择|数据选择"
)
_MIX = re.compile(
    r"(?:domain|data|mixture) (?:weights|proportions|mix(?:ture)?|reweight\w*)|proportions? "
    r"(?:during|while)|proporc\w+ (?:de |dos |por )|配比|混合比例"
)
_PHASES = (
    (
        "dpo",
        (
            r"\bdpo\b|偏好(?:对齐|优化|训练|学习)|preference (?:tuning|optimi[sz]\w+|alignment)|(?:ajuste|"
            r"alinhamento|alineamiento|otimizac\w+|optimizac\w+) (?:por|de) preferenc\w+"
        ),
    ),
    ("kto", r"\bkto\b"),
    ("ppo", r"\bppo\b|\brlhf\b"),
    ("rm", r"reward model(?:l?ing)?\b|\brm\b"),
    ("pt", r"\bpre-?train\w*|continu\w+ pre|causal lm|\bcpt\b|pre-?trein\w*|pre-?entren\w*|预训练|继续训练"),
    ("sft", r"\bsft\b|fine-?\s?tun\w*|instruction tun\w*|微调|ajust\w*|afin\w*"),
)
_SIZES = {
    "half": 0.5,
    "metade": 0.5,
    "mitad": 0.5,
    "一半": 0.5,
    "quarter": 0.25,
    "um quarto": 0.25,
    "una cuarta parte": 0.25,
    "tenth": 0.1,
    "third": 1 / 3,
}


@dataclass
class TrainingWish:
    """What the request says about training; empty strings and None mean unsaid.

    Attributes:
        stage: `sft`, `pt`, `dpo`, `kto`, `rm`, `ppo`.
        finetuning: `lora`, `qlora`, `full`, `freeze`, `oft`.
        paradigm: `static`, `select`, `mix`, `reweight`, `order`.
        method: component name.
        model: as written.
        settings: numbers by plain names (`ratio`, `update_every`, `epochs`, `learning_rate`, ...).
        said: which of stage, finetuning and paradigm were said rather than assumed.
        start: where the first training word stands.
        spans: words that name a method, not an operator.
    """

    stage: str = "sft"
    finetuning: str = "lora"
    paradigm: str = "static"
    method: str = ""
    model: str = ""
    target: Source | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    said: set[str] = field(default_factory=set)
    start: int = 0
    spans: list[tuple[int, int]] = field(default_factory=list)


def training_wish(request: Request, found: tuple[Source, ...]) -> TrainingWish | None:
    """The training part of a request, or None when it asks for none."""
    text = _NOT_TRAIN.sub(lambda match: " " * len(match.group()), request.masked)
    trains = _TRAIN.search(text)
    methods = _methods(request)
    selects = _SELECT.search(request.masked)
    model = model_name(request)
    if not (trains or methods or (selects and any(source.purpose == "target" for source in found))):
        return None
    wish = TrainingWish(model=model or "", start=trains.start() if trains else methods[0][2] if methods else 0)
    _set_stage(wish, request)
    if methods:
        wish.paradigm, wish.method = methods[0][:2]
        wish.spans = [(start, end) for _, _, start, end in methods]
        wish.said.add("paradigm")
    elif selects:
        wish.paradigm, wish.method = "select", "less"
    elif re.search(r"\bstatic(?:ally)?\b|\bestatic[oa]\b|静态|固定比例", request.masked) and _is_mixture(request):
        wish.paradigm, wish.method = "mix", "static"
        wish.said.add("paradigm")
    wish.target = _target_of(request, wish, found)
    _fill_numbers(wish, request)
    return wish


def _target_of(request: Request, wish: TrainingWish, found: tuple[Source, ...]) -> Source | None:
    """The set named as target; for a method that aims at one, else the development set named."""
    named = next((source for source in found if source.purpose == "target"), None)
    if named or wish.paradigm != "select" or wish.method in {"random", "loss", "delta_loss"}:
        return named
    if re.search(r"de-?contamin|descontamin|污染|leak|overlap", request.masked):
        return None
    aimed = next((source for source in found if source.purpose == "against" and source.is_path), None)
    if aimed is not None and not re.search(r"dup|去重|repetid", request.masked):
        return aimed
    return next((source for source in found if source.purpose == "eval" and source.split in {"dev", "val"}), None)


def is_method_available(wish: TrainingWish) -> bool:
    """Whether the training layer can do what is wished."""
    if wish.paradigm == "static":
        return True
    return wish.paradigm == "select" and wish.method in selectors()


def training_numbers(request: Request) -> dict[str, Any]:
    """Training numbers of a text that need not speak of training otherwise."""
    wish = TrainingWish(paradigm="static")
    _fill_numbers(wish, request)
    return wish.settings


def _is_mixture(request: Request) -> bool:
    return (
        re.search(r"\bmix|mistur|mezcl|混合|配比", request.masked) is not None
        or _MIX.search(request.masked) is not None
    )


def is_training_mixture(request: Request) -> bool:
    """Whether a mixture is described for training (static proportions, a token budget) though no one says `train`."""
    return _is_mixture(request) and re.search(r"\bstatic\b|estatic[oa]\b|静态|tokens?\b", request.masked) is not None


def static_mixture(request: Request) -> TrainingWish:
    """A static mixture as training wish."""
    wish = TrainingWish(paradigm="mix", method="static", model=model_name(request) or "")
    wish.said.add("paradigm")
    _set_stage(wish, request)
    _fill_numbers(wish, request)
    return wish


def _methods(request: Request) -> list[tuple[str, str, int, int]]:
    found: list[tuple[str, str, int, int]] = []
    for paradigm, method, pattern in _CASED:
        found += [(paradigm, method, m.start(), m.end()) for m in re.finditer(pattern, request.text)]
    if found and request.text.isupper():
        found = []
    trains = (
        _TRAIN.search(request.masked)
        or _SELECT.search(request.masked)
        or re.search(r"\bselec|选|挑|\bpick", request.masked)
    )
    for paradigm, method, pattern in (*_METHODS, *_LOWER):
        for match in re.finditer(pattern, request.masked):
            if method in {"loss", "random", "sorting"} and not trains:
                continue
            found.append((paradigm, method, match.start(), match.end()))
    specific = (
        [item for item in found if item[1] != "loss"]
        if any(item[:2] != ("reweight", "loss") and item[1] != "loss" for item in found)
        else found
    )
    weights = [item for item in specific if item[0] == "reweight"]
    chosen = (
        weights + [item for item in specific if item[0] != "reweight"]
        if weights and specific[0][1] == "loss"
        else specific
    )
    if any(item[1] == "cluster_less" for item in chosen):
        chosen = [item for item in chosen if item[1] != "less"]
    return chosen


def _set_stage(wish: TrainingWish, request: Request) -> None:
    stage = next((name for name, pattern in _PHASES if re.search(pattern, request.masked)), "")
    if stage:
        wish.stage = stage
        wish.said.add("stage")
    kinds = (
        ("qlora", r"\bq-?lora\b|\b4-?bit lora"),
        ("lora", r"\blora\b"),
        (
            "full",
            (
                r"(?:^|[,;]\s?)full(?=\s?[,;.]|$)|full[- ](?:parameter\w*|fine-?\s?tun\w*|param\w*|sft|ft\b)|"
                r"全参数?|全量|ajuste completo|(?:fine-?tuning|ajuste(?: fino)?|treino|entrenamiento) (?:completo|"
                r"total)"
            ),
        ),
        ("freeze", r"\bfreeze\b|冻结"),
    )
    for name, pattern in kinds:
        if re.search(pattern, request.masked):
            wish.finetuning = name
            wish.said.add("finetuning")
            break


_AFTER_WORD: tuple[tuple[str, str], ...] = (
    ("seed", r"\bseed|\bsemente|\bsemilla|随机种子|种子"),
    ("beta", r"\bbeta\b"),
    ("warmup_ratio", r"warm-?\s?up[- _]ratio|预热比例?"),
    ("learning_rate", r"learning[- ]rate|\blr\b|taxa de aprendiza\w+|tasa de aprendizaje|学习率"),
    ("batch_size", r"batch(?:[- _]?size)?|tamanho do (?:lote|batch)|tamano de(?:l)? (?:lote|batch)|批(?:次)?大小|批量"),
    (
        "gradient_accumulation",
        (
            r"grad(?:ient)?[- _]?acc\w*(?: steps?)?|accumulat\w*(?: steps)?|acumulac\w+(?: de gradientes?)?|"
            r"梯度累[积加](?:步数)?"
        ),
    ),
    ("lora_rank", r"(?:lora )?\brank\b|lora[- _]r\b|\br ?=|\brango\b|\bposto\b|lora ?秩|秩"),
    (
        "cutoff_len",
        (
            r"cut-?off(?:[- _]len\w*)?|max(?:imum)?[- _]?(?:seq\w*|context|sequence)(?:[- _]?len\w*)?|"
            r"context length|截断(?:长度)?|最大(?:序列)?长度"
        ),
    ),
    ("proj_dim", r"proj(?:ection)?[- _]?dim\w*|投影维度?"),
    ("temperature", r"temperatur\w*|\bt ?=|温度"),
)


def _fill_numbers(wish: TrainingWish, request: Request) -> None:
    numbers = list(quantities(request))
    for name, pattern in _AFTER_WORD:
        value = number_near(request, numbers, pattern)
        if value is not None:
            wish.settings[name] = value.value
    if (
        re.search(r"(?:effective|global|total) batch|batch (?:efetivo|efectivo|total|global)", request.masked)
        and "batch_size" in wish.settings
    ):
        total = int(wish.settings.pop("batch_size"))
        wish.settings |= (
            {"batch_size": 2, "gradient_accumulation": total // 2}
            if total % 2 == 0
            else {"batch_size": 1, "gradient_accumulation": total}
        )
    for quantity in numbers:
        _step_number(wish, request, quantity)
    if wish.paradigm in {"select", "order"}:
        _size(wish, request, numbers)
    if wish.paradigm == "order":
        _order_column(wish, request)


def _order_column(wish: TrainingWish, request: Request) -> None:
    named = [name for name, _ in named_columns(request)]
    spoken = re.search(
        r"(?:by|using|por|usando|按|用)\s+(?:the |a |o |la |el |their )?(?P<name>[a-z_]\w+)", request.masked
    )
    if named:
        wish.settings["order_by"] = named[0]
    elif spoken and spoken["name"] not in {"curriculum", "easy", "the"}:
        wish.settings["order_by"] = request.text[spoken.start("name") : spoken.end("name")]
    elif re.search(r"\bshort|length|curt|cort|comprimento|longitud|长度|短", request.folded):
        wish.settings["order_by"] = "length"


def number_near(request: Request, numbers: list[Quantity], pattern: str, gap: int = 14) -> Quantity | None:
    """The number that follows a word: `seed 7`, `threshold of 0.8`."""
    for match in re.finditer(pattern, request.masked):
        after = [
            q
            for q in numbers
            if 0 <= q.start - match.end() <= gap
            and not re.search(r"[,;.。]\s|[,;。]$", request.masked[match.end() : q.start])
        ]
        if after:
            return after[0]
    return None


def _step_number(wish: TrainingWish, request: Request, quantity: Quantity) -> None:
    text = request.masked
    before, after = text[max(0, quantity.start - 26) : quantity.start], text[quantity.end : quantity.end + 26]
    if quantity.unit == "epochs":
        wish.settings["epochs"] = quantity.value
    elif (
        quantity.unit == "warmup"
        or (
            quantity.unit in {"steps", ""}
            and re.search(
                (
                    r"warm-?\s?up\s*(?:of|for|with|:|=|de|durante)?\s*(?:the first )?$|预热\s*$|aquec\w+ (?:de|"
                    r"por)?\s*$|calent\w+ (?:de)?\s*$"
                ),
                before,
            )
        )
        or (quantity.unit == "steps" and re.search(r"^\s*(?:of |de )?(?:warm|预热|aquec|calent)|^\s*before", after))
    ):
        wish.settings["warmup_steps"] = quantity.value
    elif quantity.unit == "steps" and re.search(r"(?:every|each|per|cada|每隔?)\s*$", before):
        wish.settings["update_every"] = quantity.value
    elif quantity.unit == "steps":
        wish.settings.setdefault("steps", quantity.value)
    elif quantity.unit == "rounds" and re.search(
        r"updat|refresh|select|actualiz|atualiz|更新|选", before + text[quantity.start : quantity.end] + after
    ):
        wish.settings["update_times"] = quantity.value
    elif quantity.unit == "tokens" and quantity.value >= 10**5:
        wish.settings["total_tokens"] = quantity.value


def _size(wish: TrainingWish, request: Request, numbers: list[Quantity]) -> None:
    shares = [q for q in numbers if q.unit == "percent"]
    if shares:
        wish.settings["ratio"] = shares[0].share
        return
    for word, value in _SIZES.items():
        if re.search(rf"(?<![a-z]){word}(?![a-z])", request.masked):
            wish.settings["ratio"] = value
            return
    counts = [q for q in numbers if q.unit == "rows"]
    if counts:
        wish.settings["n"] = counts[0].value
