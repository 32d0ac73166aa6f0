"""The words of days, dates and recurrence in six languages, as `memory.dates` looks for them. Patterns and tables alone."""

from __future__ import annotations

import re
from typing import Final

from memory.date_words import EACH_PART, NUMBER, UNIT, pattern

BARE_HOUR: Final = pattern(
    r"(?P<day>tomorrow|today|tonight|morgen|heute|demain|mañana|domani|amanhã) (?P<h>\d{1,2})(?= (?:to|an|de|di)\b|[,;!?]|\s*$)"
)
"""`tomorrow 8`."""
DAYS: Final = tuple(
    (pattern(names), days)
    for names, days in (
        (r"(?:the )?day after tomorrow|übermorgen|après-demain|pasado mañana|dopodomani|depois de amanhã", 2),
        (r"tomorrow|tmrw|tmr|morgen|demain|mañana|domani|amanhã", 1),
        (r"today|heute|aujourd'hui|hoy|oggi|hoje", 0),
    )
)
_WEEKDAYS: Final = (
    ("MO", r"mondays?|montags?|lundis?|lunes|lunedì|segundas?(?:-feiras?)?"),
    ("TU", r"tuesdays?|dienstags?|mardis?|martes|martedì|terças?(?:-feiras?)?"),
    ("WE", r"wednesdays?|mittwochs?|mercredis?|miércoles|mercoledì|quartas?(?:-feiras?)?"),
    ("TH", r"thursdays?|donnerstags?|jeudis?|jueves|giovedì|quintas?(?:-feiras?)?"),
    ("FR", r"fridays?|freitags?|vendredis?|viernes|venerdì|sextas?(?:-feiras?)?"),
    ("SA", r"saturdays?|samstags?|sonnabends?|samedis?|sábados?|sabato|sabati"),
    ("SU", r"sundays?|sonntags?|dimanches?|domingos?|domenica|domeniche"),
)
_NAMES: Final = "|".join(names for _, names in _WEEKDAYS)
_PLURALS: Final = (
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days|(?:montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonnabend|sonntag)s"
)
_MONTHS: Final = (
    r"jan(?:uary|uar|vier|v|eiro)?|jänner|ene(?:ro)?|gen(?:naio)?",
    r"feb(?:ruary|ruar|rero|braio)?|févr?(?:ier)?|fev(?:rier|ereiro)?",
    r"mar(?:ch|s|zo|ço)?|märz?|maerz|mrz",
    r"apr(?:il|ile)?|avr(?:il)?|abr(?:il)?",
    r"may|mai|mayo|maio|mag(?:gio)?",
    r"june?|juni|juin|junio|junho|giu(?:gno)?",
    r"july?|juli|juil(?:let)?|julio|julho|lug(?:lio)?",
    r"aug(?:ust)?|août|aout|ago(?:sto)?",
    r"sept?(?:ember|embre|iembre)?|setiembre|set(?:tembre|embro)?",
    r"oct(?:ober|obre|ubre)?|okt(?:ober)?|ott(?:obre)?|out(?:ubro)?",
    r"nov(?:ember|embre|iembre|embro)?",
    r"dec(?:ember|embre)?|dez(?:ember|embro)?|déc(?:embre)?|dic(?:iembre|embre)?",
)
MONTH: Final = "|".join(f"(?:{names})" for names in _MONTHS)
_ENGLISH_MONTH: Final = (
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?"
)
_NTH: Final = r"\d{1,2}(?:st|nd|rd|th|er|º|\.)?"
_ON: Final = r"(?:on |am |le |el |il |em |no |the |dia |den |l')*"
WEEKDAY: Final = pattern(_NAMES)
ISO: Final = pattern(rf"{_ON}(?P<day>\d{{4}}-\d{{2}}-\d{{2}})")
DOTTED: Final = pattern(rf"{_ON}(?P<day>\d{{1,2}}[./]\d{{1,2}}[./](?:\d{{4}}|\d{{2}}))")
SHORT: Final = pattern(rf"{_ON}(?P<day>\d{{1,2}}\.\s?\d{{1,2}})\.")
_ENDS: Final = r"(?= (?:at|um|à|a|alle|às|as|in|to|of)\b|[,;:!?]|\s*$)"
SLASHED: Final = pattern(rf"{_ON}(?P<day>\d{{1,2}}/\d{{1,2}}){_ENDS}")
NAMED: Final = pattern(rf"{_ON}(?P<day>{_NTH}(?: of| de)? (?:{MONTH})\.?(?:,?(?: de)? \d{{4}})?)")
ENGLISH: Final = pattern(rf"(?:on )?(?P<day>(?:{_ENGLISH_MONTH})\.? \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?)(?!:)")
DATES: Final = (ISO, DOTTED, SHORT, NAMED, ENGLISH, SLASHED)
OF_THE_WEEK: Final = pattern(
    rf"(?:on |am |le |el |il |la |na |no |this |next |nächsten |kommenden |ce |este |questo |esta |próximo |próxima )*(?P<weekday>{_NAMES})(?!'s)"
    r"(?: next| prochain| que viene| prossimo| prossima| que vem)?"
)
WEEKS: Final = tuple(
    (pattern(names), weeks)
    for names, weeks in (
        (r"(?:the )?week after next|übernächste woche|in two weeks on|heute in zwei wochen", 2),
        (
            r"(?:in )?next week|nächste woche|kommende woche|(?:la )?semaine prochaine|(?:la )?próxima semana|(?:la )?semana que viene"
            r"|(?:la )?settimana prossima|(?:la )?prossima settimana|(?:na )?próxima semana|(?:na )?semana que vem",
            1,
        ),
    )
)
DAY_OF_MONTH: Final = pattern(
    r"(?:on the |am |le |el (?:día )?|il (?:giorno )?|(?:no )?dia )(?P<n>\d{1,2})(?:st|nd|rd|th|er|º|\.)?(?= (?:at|um|à|a las|a la|alle|às|to|of"
    r" the month|des monats|du mois|del mes|del mese|do mês)\b|[,;:!?]|\s*$)(?:(?: of the month| des monats| du mois| del mese?| do mês)\b)?"
)
PAST: Final = pattern(
    r"yesterday|the day before yesterday|last (?:night|week|month|year)|gestern|vorgestern|letzte (?:nacht|woche)|avant-hier|hier (?:à|soir|matin)"
    r"|ayer|anteayer|ieri|l'altro ieri|ontem|anteontem|\w+ ago|vor \w+ (?:minuten|stunden|tagen|wochen)|il y a \w+|hace \w+|\w+ fa|há \w+"
)
UNTIL: Final = pattern(
    rf"(?:until|till|up to|bis(?: zum)?|jusqu'au|jusqu'à|hasta(?: el)?|fino al|fino a|até(?: ao| o| a)?) "
    rf"(?P<day>\d{{4}}-\d{{2}}-\d{{2}}|\d{{1,2}}[./]\d{{1,2}}[./]?(?:\d{{2,4}})?|\d{{1,2}}(?:st|nd|rd|th|\.)?(?: de"
    rf"| of)? [^\W\d_]{{3,10}}(?: \d{{4}})?|[^\W\d_]{{3,9}} \d{{1,2}}|{_NAMES})"
)
FOR: Final = pattern(rf"(?:for|for the next|für|pendant|durante|por|per) (?P<n>{NUMBER})\s*(?P<unit>{UNIT})")
TIMES: Final = pattern(rf"(?P<n>{NUMBER}) ?(?:times|mal|fois|veces|volte|vezes)")
_EVERY: Final = (
    r"every|each|jeden|jede|jedes|alle|chaque|tous les|toutes les|cada|todos los|todas las|ogni|tutti i|tutte le"
    r"|todos os|todas as|todo|toda|a cada"
)
RULES: Final = tuple(
    (pattern(text), rule)
    for text, rule in (
        (
            r"(?:every|each) (?:week|work)day|(?:on )?(?:week|work)days|jeden (?:werktag|wochentag)|werktags|an werktagen"
            r"|chaque jour (?:ouvré|ouvrable)"
            r"|(?:tous )?les jours (?:ouvrés|ouvrables)|en semaine|(?:cada día|los días) laborables?|entre semana"
            r"|ogni giorno (?:feriale|lavorativo)"
            r"|nei giorni (?:feriali|lavorativi)|(?:todo|cada) dia útil|(?:nos |todos os )?dias úteis",
            "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR",
        ),
        (
            r"every (?:other|second) week|fortnightly|jede zweite woche|une semaine sur deux|semana sí,? semana no"
            r"|una settimana sì e una no|quinzenalmente",
            "FREQ=WEEKLY;INTERVAL=2",
        ),
        (
            r"every (?:other|second) day|jeden zweiten tag|un jour sur deux|un día sí y otro no|un giorno sì e uno no|dia sim,? dia não",
            "FREQ=DAILY;INTERVAL=2",
        ),
        (rf"(?:{_EVERY})(?= (?:the )?{_NTH}(?: of| de)? (?:{MONTH})\b)|every(?= (?:{_ENGLISH_MONTH}) \d)", "year"),
        (
            rf"daily|täglich|quotidiennement|diariamente|quotidianamente|(?:{_EVERY}) (?:single )?(?:day|tag|tage|jours?|días?"
            rf"|giorn[oi]|dias?)",
            "day",
        ),
        (rf"weekly|wöchentlich|(?:{_EVERY}) (?:week|woche|semaines?|semanas?|settiman[ae])", "week"),
        (rf"monthly|monatlich|(?:{_EVERY}) (?:month|monat|mois|meses|mes|mes[ei]|mês)", "month"),
        (rf"yearly|annually|jährlich|(?:{_EVERY}) (?:year|jahr|ans|années?|años?|ann[oi]|anos?)", "year"),
    )
)
_ORDINALS: Final = (
    ("1", r"first|1st|ersten?|premier|primer|primero|primo|prima|primeira|primeiro"),
    ("2", r"second|2nd|zweiten?|deuxième|segundo|segunda|secondo|seconda"),
    ("3", r"third|3rd|dritten?|troisième|tercer|tercero|terzo|terza|terceira|terceiro"),
    ("4", r"fourth|4th|vierten?|quatrième|cuarto|quarto|quarta"),
    ("-1", r"last|letzten?|dernier|último|ultimo|ultima|última"),
)
_ORDINAL: Final = (
    r"(?:on |every |each |the |an jedem |am |jeden |jeweils |le |chaque |tous |les |el |cada |l'|il |ogni |na |no |toda |todos |os |o |a )*"
    rf"(?P<which>{'|'.join(names for _, names in _ORDINALS)}) (?P<weekday>{_NAMES})"
)
ORDINAL_DAY: Final = pattern(
    rf"{_ORDINAL} (?:(?:of |in )?(?:the|every|each) month|(?:im|des|jedes|jeden|eines jeden) monats?|(?:du|de chaque|chaque) mois"
    r"|(?:de |del )?(?:cada |todos los )?mes(?:es)?|del mese|(?:di |del )?ogni mese|(?:do|de cada|cada|de todo) mês)"
)
EVERY_DAY_OF_WEEK: Final = pattern(
    rf"(?:{_EVERY}|on) (?:(?:{_NAMES})(?:(?:,| and| und| et| y| e)? (?:{_NAMES}))+)|(?:{_EVERY}|los|les|às|nas) (?:{_NAMES})"
    rf"|(?:on )?(?:{_PLURALS})(?:(?:,| and| und) (?:{_PLURALS}))*"
)
EVERY_OTHER: Final = pattern(rf"(?:every (?:other|second)|jeden zweiten) (?P<weekday>{_NAMES})")
EVERY_PART: Final = pattern(rf"(?:{_EVERY}) (?P<part>{'|'.join(names for names, _ in EACH_PART)})")
_EACH_MONTH: Final = (
    r"(?:of )?(?:every|each) month|(?:eines )?jeden monats?|im monat|(?:de )?chaque mois|(?:de )?cada mes|(?:di )?ogni mese|(?:de )?cada mês"
    r"|(?:de )?todos os meses|(?:de )?todos los meses|monthly|monatlich"
)
_CLOCK = r"\d{1,2}(?::\d{2}|\s*(?:am|pm|uhr|h|heures|horas))"
_FOR_WHAT = "to|that|for|zu|an|de|di|da|a|para|per|pour"
_AT = r"(?:at|um|à|a las|alle|às)"
SEVERAL: Final = pattern(
    rf"(?:{'|'.join(names for _, names in _ORDINALS)}),? (?:and|or|und|oder|et|ou|y|o|e|to)(?: the| le| el| il)? "
    rf"(?:{'|'.join(names for _, names in _ORDINALS)})"
    rf"|(?:{_AT} \d{{1,2}}|{_CLOCK}),? (?:and|or|und|oder|et|ou|y|o|e)(?: {_AT})? (?:{_CLOCK}|\d{{1,2}}(?=\s*$|[.,;!?]| (?:{_EVERY}|{_FOR_WHAT})))"
    rf"|(?:except|but not|außer|ausser|ausgenommen|sauf|excepto|salvo|eccetto|tranne|exceto)(?: on| am| an| le| el| los| il| la| aos?| à)? "
    rf"(?:{_NAMES}|{_PLURALS})"
)
"""Several times in one, and days that are left out, of which no rule is made."""
ORDINAL_AFTER: Final = pattern(rf"(?:{_EACH_MONTH}),? {_ORDINAL}")
"""`every month on the last Friday`."""
MONTHLY_ON: Final = pattern(
    rf"(?:monthly|every month|each month|monatlich) (?:on |am )?(?:the )?(?P<n>\d{{1,2}})(?:st|nd|rd|th|\.)"
    r"|(?:on the |every |each |the |am |jeden |le |el |día |dia |il |giorno |no |todo |cada |ogni )*"
    rf"(?P<n2>\d{{1,2}})(?:st|nd|rd|th|er|º|\.)? (?:{_EACH_MONTH})"
    r"|(?:every|each|jeden|chaque|cada|ogni) (?P<n4>\d{1,2})(?:st|nd|rd|th|er|º|\.)? (?:of the month|des monats|du mois|del mese?|do mês)"
    rf"|(?:every|each|jeden) (?P<n3>\d{{1,2}})(?:st|nd|rd|th|\.)(?! (?:{MONTH}|of|{UNIT})\b)"
)
EVERY_N: Final = pattern(rf"(?:{_EVERY}) (?P<n>{NUMBER}) (?P<unit>{UNIT})")


WEEKDAYS: Final = tuple(code for code, _ in _WEEKDAYS)
OFTENER: Final = pattern(rf"(?:{_EVERY}) (?:hour|minute|stunde|minute|heure|hora|minuto|ora)|hourly|stündlich")
"""More often than daily, which no reminder comes."""
ALL_DATES: Final = re.compile(
    r"\b(?P<y>\d{4})-(?P<m>\d{2})-(?P<d>\d{2})(?=\b|T\d)"
    r"|\b(?P<d2>\d{1,2})\.\s?(?P<m2>\d{1,2})\.(?P<y2>\d{4})?(?!\d)"
    rf"|\b(?P<d3>\d{{1,2}})(?:st|nd|rd|th|\.)?\s(?:of\s|de\s)?(?P<n3>{MONTH})\b\.?(?:,?\s(?:de\s)?(?P<y3>\d{{4}}))?"
    rf"|\b(?P<n4>{MONTH})\b\.?\s(?P<d4>\d{{1,2}})(?:st|nd|rd|th)?\b(?!:)(?:,?\s(?P<y4>\d{{4}}))?",
    re.IGNORECASE,
)
"""Every day that is named with its month, for `memory.dates.days_in`."""


def weekday_of(word: str) -> str:
    """A day of the week as rules write it."""
    return next(code for code, names in _WEEKDAYS if re.fullmatch(names, word, re.IGNORECASE))


def month_of(word: str) -> int:
    """A month by its name or its short form."""
    return next(number for number, names in enumerate(_MONTHS, 1) if re.fullmatch(names, word.rstrip("."), re.IGNORECASE))


def ordinal_of(word: str) -> str:
    """Which one in the month, as rules write it."""
    return next(number for number, names in _ORDINALS if re.fullmatch(names, word, re.IGNORECASE))
