"""Names of languages in English, Chinese, Portuguese and Spanish, and their ISO 639-1 codes."""

from types import MappingProxyType
from typing import Final

_NAMES: Final = {
    "en": "english 英文 英语 inglês ingles inglés",
    "zh": "chinese mandarin 中文 汉语 chinês chines chino",
    "pt": "portuguese 葡萄牙语 葡语 português portugues portugués",
    "es": "spanish castilian 西班牙语 西语 espanhol español espanol castellano",
    "fr": "french 法语 法文 francês frances francés",
    "de": "german 德语 德文 alemão alemao alemán aleman",
    "it": "italian 意大利语 italiano",
    "ja": "japanese 日语 日文 japonês japones japonés",
    "ko": "korean 韩语 韩文 coreano",
    "ru": "russian 俄语 俄文 russo ruso",
    "ar": "arabic 阿拉伯语 árabe arabe",
    "hi": "hindi 印地语",
    "nl": "dutch 荷兰语 holandês holandés neerlandés",
    "pl": "polish 波兰语 polonês polaco",
    "tr": "turkish 土耳其语 turco",
    "vi": "vietnamese 越南语 vietnamita",
    "th": "thai 泰语 tailandês tailandés",
    "id": "indonesian 印尼语 indonésio indonesio",
    "uk": "ukrainian 乌克兰语 ucraniano",
    "fa": "persian farsi 波斯语 persa",
    "he": "hebrew 希伯来语 hebraico hebreo",
    "el": "greek 希腊语 grego griego",
    "sv": "swedish 瑞典语 sueco",
    "cs": "czech 捷克语 tcheco checo",
    "ro": "romanian 罗马尼亚语 romeno rumano",
    "hu": "hungarian 匈牙利语 húngaro",
}
LANGUAGE_NAMES: Final = MappingProxyType({name: code for code, names in _NAMES.items() for name in names.split()})
"""Lower-case name to code."""
