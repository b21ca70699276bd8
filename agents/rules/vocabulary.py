"""The words of users: verbs that drop and keep, and every cue for a capability, in four languages."""

from datamill.agents.rules import cues_clean, cues_make
from datamill.agents.rules.cue import Cue, Kind

__all__ = ["CUES", "DROP", "KEEP", "ONLY", "Cue", "Kind"]

DROP = (
    r"(?:\b(?:rm\b(?! -)|remov\w*|drop\w*|delet\w*|discard\w*|throw\w* (?:\w+ ){0,2}?(?:out|away)|toss\w*|bin|"
    r"ditch\w*|scrap(?= (?:the|all|any|every))|weed\w* out|chuck\w*|lose(?= the)|trash|prun\w*|skip(?= rows)|"
    r"screen\w* out|leave out|take out|kick\w* out|nuke|zap|discart\w*|fora\b|filter(?:ing|ed)? "
    r"out|get(?:ting)? rid|toss|exclud\w*|strip|"
    r"must go\b|(?:go(?:es)?|are|must be|should be) out|cut|eliminat\w*|purge|kill|reject|"
    r"tir[ae]\w*|apag\w*|descart\w*|exclu[ai]\w*|elimin\w*|jog\w* fora|retir[ae]\w*|"
    r"quit[ae]\w*|borr[ae]\w*|saca\w*|desech\w*)\b|删|去掉|去除|剔除|过滤掉|丢弃|丢掉|扔掉|排除|清除|清理掉|移除|"
    r"筛掉|(?:的|都|统统|一律)(?:也)?不要|"
    r"不要(?=$|[,;。!、\s])|扔了|去了)"
)
KEEP = (
    r"(?:\b(?:keep\w*|retain\w*|only|just|select\w*|preserv\w*|leave|"
    r"mant\w+|fique|fica\w*|so(?:mente)?|apenas|guard[ae]\w*|deix[ae]\w*|preserv\w*|"
    r"qued\w+|conserv\w*|solo|solamente|deja\w*|unicamente)\b|保留|只要|只留|仅|留下|只保留|只选)"
)
ONLY = (
    r"(?:\b(?:only|just|nothing (?:else|but)|so|somente|apenas|solo|solamente|unicamente|nada mas|nada mais)\b|只|仅)"
)

CUES: tuple[Cue, ...] = cues_clean.CUES + cues_make.CUES
"""Every cue; overlapping words are settled by `intents.mentions`."""
