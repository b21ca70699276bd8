"""What is declined, and secrets that must not survive the request.

Secrets are removed before anything else reads the text, so that no workflow, log, question or reply can hold one.
"""

import re
from collections.abc import Callable
from pathlib import PurePosixPath

from datamill.agents.draft import REFUSALS, Refusal, RefusalCode
from datamill.agents.rules.messages import say
from datamill.agents.rules.reading import Reading
from datamill.agents.rules.request import URL

REDACTED = "[secret]"

_TOKEN_RE = re.compile(
    r"(?<![A-Za-z0-9])(?:sk|pk|rk)[-_][A-Za-z0-9][A-Za-z0-9_\-]{5,}|(?<![A-Za-z0-9])(?:hf|ghp|gho|"
    r"ghs|github_pat|glpat|npm|pypi|xox[abpr]|dop_v1)[-_][A-Za-z0-9_\-]{6,}"
    r"|(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9-]{8,}|(?<![A-Za-z0-9])AIza[A-Za-z0-9_\-]{10,}|"
    r"eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.?[A-Za-z0-9_\-]*"
    r"|-----BEGIN[A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END[A-Z ]*PRIVATE KEY-----|$)|(?<=://)[^\s/:@]+:[^\s/@]+(?=@)"
)
_NAMES_OF_KEYS = (
    r"(?:api[-_ ]?keys?|access[-_ ]?keys?|secret[-_ ]?keys?|secrets?|passwords?|passwd|pwd|"
    r"pass-?phrase|bearer|auth(?:entication|orization)? tokens?|access[-_ ]tokens?|"
    r"api[-_ ]?tokens?|hf[-_ ]?tokens?|my tokens?|the tokens?|credentials?|\bcreds|credenciais|credenciales|凭证|"
    r"chaves? (?:de |da "
    r")?(?:api|acesso)|senhas?|segredos?|claves? (?:de |del )?(?:api|acceso)?|contrase(?:ñ|n)as?|"
    r"tokens? de acc?es[so]o?|密钥|密码|口令|令牌|api ?key|token)"
)
_WORD_RE = re.compile(
    (
        rf"({_NAMES_OF_KEYS})(\s*(?:is|are|=|:|：|é|es|是|为|to use is|->|\(|with|for it is|here is|"
        rf"(?:for|to|of|d[aeo]|del)\s+(?:the |my |our |a |o |la |el )?[\w ]{{1,24}}?\s(?:is|are|es|é|=|:)|"
        rf"[A-Za-z]+\s+(?:is|es|é))\s*[:=]?\s*[\"'`“]?)([^\s\"'`”,;，。；]{{4,}})"
    ),
    re.IGNORECASE,
)
_HARMLESS = re.compile(
    (
        r"^(?:in|from|the|stored|set|your|env|environment|not|read|taken|wrong|missing|gone|a|my|"
        r"col\w*|required|limit|count|budget|length)[.!?):]*$|^(?:\$\{|<)"
    ),
    re.IGNORECASE,
)


def remove_secrets(text: str) -> tuple[str, bool]:
    """The text with secrets replaced by `[secret]`, and whether there were any."""
    cleaned = _TOKEN_RE.sub(REDACTED, text)

    def hide(match: re.Match[str]) -> str:
        value = match.group(3)
        looks_secret = re.search(r"\d|[A-Z].*[a-z]|[^\w一-鿿]", value) or len(value) >= 8
        if (
            value == REDACTED
            or _HARMLESS.match(value)
            or not looks_secret
            or value.lower().endswith(("jsonl", "csv", "json", "parquet"))
        ):
            return match.group()
        return match.group(1) + match.group(2) + REDACTED

    cleaned = _WORD_RE.sub(hide, cleaned)
    return cleaned, cleaned != text


_PIRATED = re.compile(
    r"\bpirat\w*|cracked (?:books?|copies|version)|\bwarez\b|sci-?hub|lib-?gen|z-?lib(?:rary)?\b|"
    r"anna'?s archive|\btorrents?\b|(?:bypass|get(?:ting)? (?:around|past)|circumvent|evad\w*|"
    r"break) (?:\w+ ){0,3}(?:paywall|drm|captcha|login|robots|rate limit|copy protection)|"
    r"ignor\w* (?:the )?robots|contorn\w* (?:o |a )?(?:paywall|captcha|drm)|salt\w* (?:el "
    r")?(?:paywall|captcha|muro de pago)|盗版|破解|绕(?:过|开).{0,6}(?:付费|验证码|登录|robots|反爬|限制)|crack\w* "
    r"(?:the |a |its |their )?(?:\w+ )?(?:password|zip|encrypt\w*|drm|protect\w*)|无视 ?robots|"
    r"without (?:a |any |proper )licen[sc]e\b(?! header| text| notice)|sem licenca|sin licencia"
)
_HIDING = re.compile(
    r"so (?:that )?(?:no ?one|nobody) (?:notic|know|can tell|find|see)\w*|without (?:anyone|"
    r"anybody) (?:notic|know)\w*|(?:hide|conceal|erase|obscure|disguise|launder|fake) (?:\w+ "
    r"){0,3}(?:source|origin|provenance|attribution|where)|"
    r"(?:remov\w*|strip|erase|delet\w*|drop) (?:\w+ ){0,4}(?:copyright|watermark|attribution|"
    r"licen[sc]e (?:info|notice|text|field|column))\w*|(?:esconder|ocultar|apagar|borrar|quitar) "
    r"(?:\w+ ){0,3}(?:origem|origen|fonte|fuente|procedencia|marca d'?agua|direitos|copyright|"
    r"autoria)|"
    r"sem que ninguem|sin que nadie|para que ninguem|para que nadie|不被发现|别让人(?:发现|知道|看出)|看不出(?:来源|"
    r"出处)|隐藏(?:来源|出处)|去(?:掉|除)?(?:版权|水印)|抹(?:去|掉)(?:来源|出处|版权)"
)
_COLLECT = (
    r"(?:scrap\w*|crawl\w*|harvest\w*|collect\w*|gather\w*|mine\b|extract\w* from (?:the "
    r")?(?:site|web|linkedin|facebook)|rasp\w*|colet\w*|recolect\w*|recop\w*|extra[ei]\w*|junt\w*|"
    r"爬|抓取|采集|收集|搜集|扒)"
)
_PERSONAL = (
    r"(?:phone\w*|e-?mails?(?: address\w*)?|personal (?:data|info\w*|details)|home address\w*|"
    r"user ?names?\b|home ?towns?|birth ?da(?:ys?|tes?)|dates? of birth|\bages and\b|"
    r"private (?:\w+ )?(?:messages|chats|data|conversations|photos)|(?:user|linkedin|facebook|"
    r"instagram|whatsapp|medical|patient|dating)\s?(?:profiles?|records?|numbers?|data)|profiles?|"
    r"users?'? (?:names|data)|telefones?|telefonos?|celular\w*|dados pessoais|datos personales|"
    r"perfis|perfiles|correos?|手机号?|电话|个人信息|隐私|身份证|邮箱|住址|私信|聊天记录|病历)"
)
_CONFIDENTIAL = (
    r"(?:private|direct|personal|privad[ao]s?|pessoais|personales) (?:\w+ )?(?:messages?|chats?|conversations?|dms?\b|"
    r"photos|mensagens|mensajes|conversas|conversaciones)|\bdms\b|私信|聊天记录"
)
_COLLECTING = re.compile(
    rf"(?:download|fetch|pull|grab|get|take|baix|descarg|下载)\w*[^.;。]{{0,30}}(?:{_CONFIDENTIAL})|"
    rf"{_COLLECT}[^.;。]{{0,60}}{_PERSONAL}|{_PERSONAL}[^.;。]{{0,24}}(?:爬|抓取|采集|收集|扒)"
)
_OWN = re.compile(
    r"\b(?:our|my|own)\b (?:\w+ )?(?:logs|customers|support|database|crm|forum)|consent|with "
    r"permission|com permiss|con permiso|(?:我们|自己|本公司)的|已授权|经(?:过)?(?:用户)?(?:同意|授权)"
)
_MEDIUM = (
    r"(?:jpe?gs?|pngs?|gifs?|mp3s?|mp4s?|wavs?|pics?|videos?|audio\w*|speech|podcasts?|voice|recordings?|images?|"
    r"pictures?|photos?|"
    r"screenshots?|lectures? recordings?|vídeos?|imagens?|imagem|imagenes|imagen|fotos?|"
    r"fotograf\w*|gravac\w*|grabac\w*|voz|视频|音频|语音|录音|图片|图像|照片|截图|录像)"
)
_MEDIA = re.compile(
    rf"(?:transcri\w*|caption\w*|turn\w*|transform\w*|annotat\w*|extract\w*|from|watch\w*|"
    rf"listen\w*|describ\w*|recogni\w*|summari[sz]\w*|convert\w*|generat\w*|creat\w*|download\w*|"
    rf"extra[ei]\w*|descrev\w*|descri[bv]\w*|ger\w*|gener\w*|dos?|das?|del?|从|把|将|识别|转写|转录|提取|生成|"
    rf"下载|解析)\s*(?:text |q/a |for |the |these |those |all |each |every |our |my |os |as |los |las |el |"
    rf"la |o |a |from |of |in |de |dos |das |del |em |en |product |lecture |training |会议|这些|所有的?|"
    rf"讲座|课程)*{_MEDIUM}"
    rf"|clon\w* (?:the |my |their |his |her )?voices?\b|{_MEDIUM}\s?(?:里|中|转(?:成|为|写|录)?|to text|para texto|"
    rf"a texto|"
    rf"files?|lectures?|captions?)|"
    rf"\b(?:mp3|mp4|wav) (?:from|files?|of)\b|\bin (?:mp3|mp4|wav)\b|speech[- ]to[- ]text|"
    rf"text[- ]to[- ](?:speech|image|video)|\bwhisper\b|\btts\b|\basr\b"
)
_MEDIA_FILE = re.compile(
    r"\.(?:mp4|mkv|mov|avi|mp3|wav|flac|png|jpe?g)$|(?:^|/)(?:mp4|mp3|wav|videos?|audio|images?|recordings?|photos?|"
    r"pictures|podcasts?|voices?)/?$",
    re.IGNORECASE,
)
_HARM = re.compile(
    r"(?:fake|fabricated|phony|bogus|made-up|false)\s(?:[\w-]+ ){0,4}(?:reviews?|testimonials?|ratings?)|"
    r"(?:extract|collect|steal|dump|harvest|leak|提取|收集|导出|窃取|extra[ei]\w*|colet\w*|"
    r"recopil\w*)[^.;。]{0,24}(?:\bpasswords?|credentials|"
    r"密码|senhas|contrasenas)|(?:resenas|avaliacoes|opiniones|comentarios) (?:\w+ )?(?:fals[ao]s|inventad[ao]s)|"
    r"\bphishing\b|\bmalware\b|ransomware|key-?logger|\bspyware\b|deep-?fake|de-?anonymi[sz]\w*|"
    r"re-?identif\w*|reidentific\w*|desanonimiz\w*|\bscam (?:emails?|messages?|calls?)|fake "
    r"reviews?|resenas falsas|avaliacoes falsas|虚假(?:评论|好评)|刷(?:单|好评)|钓鱼邮件|"
    r"去匿名|重新识别(?:用户|身份)|反匿名"
)
_CODE = re.compile(
    r"os\.system|subprocess|rm -rf|\beval\(|\bexec\(|__import__|!!python|\blambda\b \w+ ?:|"
    r"\bpickle\b|(?:run|execute) (?:this |the following |my |a )?(?:shell|bash|python|"
    r"arbitrary)(?: (?:command|script|code))?|(?:write|add|insert|embed|include|put)(?: in)? (?:an? |the |my |this |"
    r"some )?(?:custom |inline )?"
    r"(?:shell|bash|powershell|python) (?:script|command|code|snippet|function|lambda)|\bcurl(?:s|ing)? (?:https?|"
    r"\S+\.(?:com|sh))|; ?(?:rm|curl|wget) "
)
_UPLOAD = re.compile(
    r"\b(?:post|upload\w*|push\w*|send\w*|publish\w*|share\b|(?:e-?)?mail (?:it|the|them|all|everything)|"
    r"transfer\w*|"
    r"sync\w*|enviar?|envie|mand[ae]\w*|sub[aei]\w*|publi[cq]\w*|carg[ae]\w*|compartilh\w*|"
    r"compart\w*)|上传|发送|发到|发布|推送|传到|同步到"
)
_PLACE = re.compile(
    rf"{URL}+|[\w.+-]+@[\w-]+\.[\w.]+|"
    rf"\b(?:hugging ?face|hf hub|the hub\b|s3\b|gcs\b|dropbox|google drive|pastebin|slack|"
    rf"telegram|discord|kaggle|github|ftp|webhook|external|server|servidor|nuvem|nube|cloud)\b|外部|"
    rf"网盘|云端?|服务器|公开"
)
_SECRET_FILE = re.compile(
    r"(?<![\w])\.env\b|\bid_(?:rsa|ed25519)\b|\.aws/credentials|\.ssh/|\.netrc\b|\.pgpass\b|"
    r"(?:value|content|contents|valor|内容|值) (?:of|de|do|del) (?:the |my |our )?\w*(?:api_key|secret|token|"
    r"password)\b"
)
_UNAPPROVED = re.compile(
    r"(?:skip|without|bypass|no need for|don'?t (?:bother|wait)(?: for| with)?|ignore|"
    r"forget)\s(?:\w+ ){0,3}(?:approv\w*|confirm\w*|review(?:ing)?\b(?! ?s)|permission|sign-?off)"
    r"\b|auto(?:matically)?[- ]?(?:approv\w*|confirm\w*|accept\w*)|"
    r"(?:approve|accept|confirm) (?:every|all|any|each)\w* "
    r"(?:\w+ )?(?:plans?|runs?|changes?|edits?|step|thing)|(?:don'?t|do not|never|stop) (?:show|ask|check with|"
    r"prompt)\w* (?:\w+ )?me\b[^.;,]{0,20}\b(?:plans?|approv\w*|confirm\w*|before|again)\b|"
    r"aprov\w+ (?:tudo|sempre|automaticamente)|aprueb\w+ (?:todo|siempre|automaticamente)|"
    r"自动(?:批准|通过|确认)|以后(?:都)?不用(?:问|给我看)|already (?:approved|said yes)|said yes already|"
    r"(?:sem|pul[ae]\w*) (?:\w+ ){0,2}(?:aprovac\w+|confirmac\w+)|"
    r"(?:sin|salt[ae]\w*) (?:\w+ ){0,2}(?:aprobac\w+|confirmac\w+)|(?:不用|无需|跳过|别)(?:我)?(?:批准|审批|确认|"
    r"审核方案)"
)
_SENSITIVE = re.compile(
    r"身份证|银行卡|手机号|护照|住址|病历|\bssns?\b|social security|passport|credit cards?|card numbers?|(?:phone|"
    r"id) numbers?|"
    r"home address|"
    r"\bcpfs?\b|\bdni\b|cartoes|tarjetas|telefon\w+|medical records?|customers?' (?:names|emails|data)|"
    r"dados pessoais|datos personales"
)
_TEST_GOAL = re.compile(
    r"\btargets?\b|\baim\w*|toward\w*|closest to|similar to|resembl\w*|look\w* like|like the|"
    r"score (?:higher|better)|boost|maximi[sz]\w*|alvo|objetivo|parecid\w*|semelhant\w*|"
    r"similares? a|subir (?:a nota|la nota)|目标|接近|相似|提高.{0,8}分|刷分|对准|像"
)
_TRAIN_ON_TEST = re.compile(
    r"(?:train\w*|fine-?\s?tun\w*|append\w*|insert\w*|merg\w*|coloc\w*|bota\w*|mete\w*|poner?|poe|pon|sneak\w*|slip|"
    r"feed|add\w*|includ\w*|mix\w*|put|inclu\w*|adicion\w*|anad\w*|"
    r"agreg\w*|trein\w*|entren\w*|mistur\w*|mezcl\w*|训练|微调|加(?:入|到|进)|混(?:入|"
    r"进))[^.;。]{0,30}(?:test|prueba|teste|测试)|(?:test|prueba|teste)(?: set| questions?| split|"
    r" data)?[^.;。,]{0,20}\b(?:as|como) (?:the |our |my |part of |extra |dados de |datos de )*(?:train|fine-?tun|"
    r"trein|entren)\w*|(?:测试集?|test set)[^.;。,]{0,12}(?:加入|加到|加进|混入|混进|放进|"
    r"训练)"
)


def refusals(reading: Reading, had_secret: bool) -> tuple[Refusal, ...]:
    """Everything in a request that is declined, in order of weight."""
    text, language = reading.request.masked, reading.request.language
    found: list[Refusal] = []

    def decline(code: RefusalCode, what: str, alternative: str) -> None:
        found.append(
            Refusal(code=code, what=what, why=say(f"refuse_{REFUSALS[code]}", language), safe_alternative=alternative)
        )

    for path in outside_paths(reading):
        decline("DM-AGENT-102", path, "copy the file into the project, or name it with -i")
    words: tuple[tuple[RefusalCode, re.Match[str] | None, str], ...] = (
        ("DM-AGENT-103", _PIRATED.search(text), "use sources you may use: public domain, licensed, or your own"),
        (
            "DM-AGENT-104",
            None if _OWN.search(text) else _COLLECTING.search(text),
            "use data people agreed to give, with pii.redact",
        ),
        ("DM-AGENT-105", _HIDING.search(text), "keep source and licence as columns of the data card"),
        (
            "DM-AGENT-109",
            _HARM.search(text) or _CODE.search(reading.request.folded),
            "describe the data step you need with the catalogue: datamill ops list",
        ),
    )
    for code, match, alternative in words:
        if match:
            decline(code, reading.request.quote(*match.span()), alternative)
    _decline_uses(reading, decline)
    personal = _personal_upload(reading)
    if (secret := _SECRET_FILE.search(reading.request.folded)) is not None:
        found.append(
            Refusal(
                code="DM-AGENT-106",
                what=reading.request.text[secret.start() : secret.end()],
                why=say("refuse_secret_file", language),
                safe_alternative="name the variable as ${env.NAME} where a step needs it",
            )
        )
    if had_secret:
        decline("DM-AGENT-106", REDACTED, "put it into the environment and name it as ${env.NAME}")
    if had_secret and not personal and (place := upload_place(reading)):
        decline("DM-AGENT-107", place, "write a local file; upload it yourself, or approve an export target")
    return tuple(found)


def _decline_uses(reading: Reading, decline: Callable[[RefusalCode, str, str], None]) -> None:
    """What the data may not be used for, and what no operator can read."""
    if (test := test_target(reading)) is not None:
        decline("DM-AGENT-101", test, "aim at the development or training split of the same benchmark")
    if (personal := _personal_upload(reading)) is not None:
        decline("DM-AGENT-104", personal, "redact the personal data first: pii.redact")
        decline("DM-AGENT-107", upload_place(reading) or "", "keep the result in a local file")
    if (skipped := _unapproved(reading)) is not None:
        decline("DM-AGENT-110", skipped, "look at the plan below, then approve it")
    if (medium := _medium(reading)) is not None:
        decline("DM-AGENT-108", medium, "give a transcript or captions as text and the same request works on those")


def _unapproved(reading: Reading) -> str | None:
    found = _UNAPPROVED.search(reading.request.masked)
    return reading.request.quote(*found.span()) if found else None


def _personal_upload(reading: Reading) -> str | None:
    """Identity numbers, cards or phone numbers that are to be taken out as they are and sent away."""
    if upload_place(reading) is None or any(w.capability == "pii.redact" and not w.forbidden for w in reading.mentions):
        return None
    found = _SENSITIVE.search(reading.request.masked)
    return reading.request.quote(*found.span()) if found else None


def outside_paths(reading: Reading) -> tuple[str, ...]:
    """Paths that leave the project and that no one attached."""
    attached = {facts.path for facts in reading.inspection.inputs} if reading.inspection else set()
    return tuple(span.text for span in reading.request.paths if span.text not in attached and leaves_project(span.text))


def leaves_project(path: str) -> bool:
    """Whether a path is absolute, of another user, or climbs out with `..`.

    >>> leaves_project("../x.jsonl"), leaves_project("a/../b.jsonl")
    (True, False)
    """
    if path.startswith(("~", "/", "\\")) or re.match(r"[A-Za-z]:\\", path):
        return True
    depth = 0
    for part in PurePosixPath(path).parts:
        depth += -1 if part == ".." else 0 if part == "." else 1
        if depth < 0:
            return True
    return False


def test_target(reading: Reading) -> str | None:
    """Name of a test set that selection or training would aim at."""
    text = reading.request.masked
    wish = reading.training
    if wish and wish.target and wish.target.split == "test":
        return wish.target.key
    aimed = next((s for s in reading.sources if s.purpose == "target" and s.split == "test"), None)
    if aimed is not None:
        return aimed.key
    tests = [
        s
        for s in reading.sources
        if s.split == "test" and s.purpose in {"eval", "target"} and (s.benchmark or s.is_path)
    ]
    cleaning = any(w.capability == "decon.ngram" and not w.forbidden for w in reading.mentions)
    training_on = _TRAIN_ON_TEST.search(text)
    if (
        training_on
        and not cleaning
        and not re.search(
            r"(?<!test )split|"
            r"divid|划分|切分|分成|分为|拆成|拆分|比例|训练集?\s?[/、,和]\s?(?:验证|测试|开发)|train\s?[/,]|"
            r"hold|except|but not|without|"
            r"nao|não|sem\b|sin\b|不",
            text,
        )
        and (tests or re.search(r"test set|测试集|conjunto de (?:teste|prueba)", text))
    ):
        return tests[0].key if tests else reading.request.quote(*training_on.span())
    if tests and not cleaning and _TEST_GOAL.search(text):
        return tests[0].key
    return None


def _medium(reading: Reading) -> str | None:
    for span in reading.request.paths:
        if _MEDIA_FILE.search(span.text.rstrip("/")):
            return span.text
    found = _MEDIA.search(reading.request.masked)
    return reading.request.quote(*found.span()) if found else None


def upload_place(reading: Reading) -> str | None:
    """Where the request wants data sent, outside this machine."""
    text = reading.request.masked
    for verb in _UPLOAD.finditer(text):
        sentence = reading.request.sentence_at(verb.start())
        place = _PLACE.search(text, verb.start(), min(len(text), sentence.end))
        if place and place.start() - verb.start() < 60:
            return reading.request.text[place.start() : place.end()]
    return None
