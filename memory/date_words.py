"""The words of time in six languages, as `memory.dates` looks for them. Patterns and tables alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import time
from typing import Final

LANGUAGES: Final = ("en", "de", "fr", "es", "it", "pt")


def _pattern(text: str) -> re.Pattern[str]:
    """A pattern of whole words; a blank stands for any blanks."""
    return re.compile(rf"(?<!\w)(?:{text})(?!\w)".replace(" ", r"\s+"), re.IGNORECASE)


# Numbers and units -----------------------------------------------------------------------------------

_NUMBERS: Final = (
    "zero",
    "a|an|one|ein|eine|einer|einem|einen|un|une|uno|una|um|uma",
    "two|a couple of|zwei|deux|dos|due|dois|duas",
    "three|drei|trois|tres|tre|três",
    "four|vier|quatre|cuatro|quattro|quatro",
    "five|fünf|cinq|cinco|cinque",
    "six|sechs|seis|sei",
    "seven|sieben|sept|siete|sette|sete",
    "eight|acht|huit|ocho|otto|oito",
    "nine|neun|neuf|nueve|nove",
    "ten|zehn|dix|diez|dieci|dez",
)
_BY_WORD: Final = {word: number for number, names in enumerate(_NUMBERS) for word in names.split("|")} | {
    **dict.fromkeys(("twelve", "zwölf", "douze", "doce", "dodici", "doze"), 12),
    **dict.fromkeys(("fifteen", "fünfzehn", "quinze", "quince", "quindici"), 15),
    **dict.fromkeys(("twenty", "zwanzig", "vingt", "veinte", "venti", "vinte"), 20),
    **dict.fromkeys(("thirty", "dreißig", "dreissig", "trente", "treinta", "trenta", "trinta"), 30),
    **dict.fromkeys(("forty-five", "fünfundvierzig", "quarante-cinq", "quarantacinque"), 45),
}
_NUMBER: Final = rf"\d{{1,4}}(?:[.,]\d)?|{'|'.join(sorted(_BY_WORD, key=len, reverse=True))}"
_UNITS: Final = (
    (1, r"s|secs?|seconds?|sekunden?|sek|secondes?|segundos?|second[oi]"),
    (60, r"m|mins?|minutes?|minuten?|minutos?|minut[oi]"),
    (3600, r"h|hrs?|hours?|stunden?|std|heures?|horas?|or[ae]"),
    (86_400, r"d|days?|tag|tage|tagen|jours?|días?|dias?|giorn[oi]"),
    (604_800, r"w|weeks?|wochen?|semaines?|semanas?|settiman[ae]"),
    (2_592_000, r"months?|monate?n?|mois|mes|meses|mes[ei]|mês"),
    (31_536_000, r"years?|jahre?n?|ans|années?|años?|ann[oi]|anos?"),
)
_UNIT: Final = "|".join(names for _, names in _UNITS)
_IN: Final = r"in|after|within|nach|dans|d'ici|en|dentro de|tra|fra|em|daqui a|'t"


def number_of(word: str) -> float:
    """A number in figures or words."""
    known = _BY_WORD.get(" ".join(word.casefold().split()))
    return float(word.replace(",", ".")) if known is None else float(known)


def unit_of(word: str) -> float:
    """Seconds of a unit; a month has 30 days."""
    return next(float(seconds) for seconds, names in _UNITS if re.fullmatch(names, word, re.IGNORECASE))


SPAN: Final = _pattern(
    rf"(?:{_IN}) (?:about |etwa |ca\. |environ |unos |circa |cerca de )?(?P<n>{_NUMBER})\s*(?P<unit>{_UNIT})"
    r"(?P<half> and a half| et demie?| y media| e mezzo| e mezza| e meia)?"
)
SPANS: Final = tuple(
    (_pattern(text), seconds)
    for text, seconds in (
        (
            rf"(?:{_IN}) (?:half an hour|a half hour|einer halben stunde|'ner halben stunde|une demi-heure|media hora|mezz'ora"
            rf"|mezzora|meia hora)",
            1800,
        ),
        (rf"(?:{_IN}) (?:an hour and a half|one and a half hours|anderthalb stunden|eineinhalb stunden|un'ora e mezza)", 5400),
        (
            rf"(?:{_IN}) (?:a quarter of an hour|einer viertelstunde|un quart d'heure|un cuarto de hora|un quarto d'ora|um quarto de hora)",
            900,
        ),
        (rf"(?:{_IN}) (?:an|un'|un )\s*(?:hour|ora)", 3600),
    )
) + ((_pattern(r"half an hour from now"), 1800),)

# The clock -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the day: its usual time, and whether an hour up to twelve is one of the second half of the day."""

    usual: time
    late: bool


_PARTS: Final = (
    (
        r"(?:in the |this |am )?mornings?|am morgen|früh|vormittags?|am vormittag|(?:ce |le )?matin|(?:de|por) la mañana|(?:di "
        r"|questa )?mattina|(?:de|da|pela) manhã",
        Part(time(9), False),
    ),
    (
        r"(?:in the |this )?afternoons?|(?:am )?nachmittags?|(?:de |cet |l')?après-midi|(?:de|por) la tarde|(?:di "
        r"|questo )?pomeriggio|(?:de|da|à) tarde",
        Part(time(15), True),
    ),
    (
        r"(?:in the |this )?evenings?|tonight|(?:am )?abends?|(?:ce |le |du )?soir|esta noche|(?:de|por) la noche|(?:di "
        r"|questa )?sera|stasera|(?:de|da|à|esta) noite|at night",
        Part(time(19), True),
    ),
)
PART: Final = _pattern("|".join(f"(?:{names})" for names, _ in _PARTS))
CLOCKS: Final = (
    (
        _pattern(r"(?:at |um |à |a )?(?:noon|midday|mittags?|midi|mediodía|mezzogiorno|al mediodía|meio-dia|ao meio-dia)"),
        time(12),
    ),
    (_pattern(r"(?:at |um |à |a )?(?:midnight|mitternacht|minuit|medianoche|mezzanotte|meia-noite)"), time(0)),
)
_AT: Final = r"at|by|for|um|gegen|à|vers|a las|a la|alle|all'|às|as|à"
_HOUR: Final = r"(?P<h>\d{1,2}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
HALF: Final = _pattern(
    r"(?:(?:at|um|à) )?half past (?P<h>\d{1,2}|[a-z]+)|halb (?P<before>\d{1,2}|[a-zäöüß]+)"
    r"|(?:a las|a la) (?P<h2>\d{1,2}|[a-z]+) y media|alle (?P<h3>\d{1,2}|[a-z]+) e mezza|(?:às|as) (?P<h4>\d{1,2}|[a-zê]+) e meia"
    r"|à (?P<h5>\d{1,2}|[a-z]+) heures? et demie"
)
QUARTER: Final = _pattern(r"(?:(?:at|um) )?(?P<way>quarter past|quarter to|viertel nach|viertel vor) (?P<h>\d{1,2}|[a-zäöüß]+)")
MERIDIEM: Final = _pattern(rf"(?:(?:{_AT}) )?(?P<h>\d{{1,2}})(?::(?P<m>\d{{2}}))?\s*(?P<meridiem>[ap])\.?\s?m\.?")
HOURS: Final = _pattern(
    rf"(?:(?:{_AT})\s*)?(?P<h>\d{{1,2}})\s*(?:h|uhr|heures?|horas|ore|o'clock)\s*(?P<m>\d{{2}})?"
    rf"|(?:(?:{_AT}) )?{_HOUR.replace('<h>', '<w>')} o'clock"
)
TIME: Final = _pattern(rf"(?:(?:{_AT})\s*)?(?P<h>\d{{1,2}})[:.](?P<m>\d{{2}})(?: uhr|h)?(?![.\d/])")
HOUR: Final = _pattern(rf"(?:at|um|gegen|à|vers|a las|a la|alle|all'|às|as)\s*{_HOUR}(?!\s*(?:[./:-]\s?\d|%|€|\$|(?:{_UNIT})\b))")
_HOURS_BY_WORD: Final = {**_BY_WORD, "eleven": 11, "elf": 11, "once": 11, "undici": 11, "onze": 11, "twelve": 12, "sieben": 7}


def part_of(word: str) -> Part:
    """A part of the day by its words."""
    return next(part for names, part in _PARTS if re.fullmatch(names.replace(" ", r"\s+"), word, re.IGNORECASE))


def _hour_named(word: str) -> int | None:
    return int(word) if word.isdecimal() else _HOURS_BY_WORD.get(word.casefold())


def clock_of(found: re.Match[str], part: Part | None) -> time | int | None:
    """The time of a clock pattern's match; an hour alone, which may be either of two, as a number; None: there is no such time."""
    groups = {name: value for name, value in found.groupdict().items() if value}
    name = next((each for each in ("h", "w", "h2", "h3", "h4", "h5", "before") if each in groups), "")
    hour = _hour_named(groups[name]) if name else None
    if hour is None or hour > 24:
        return None
    minute = int(groups.get("m", 0))
    if found.re is HALF:
        hour, minute = (hour - 1, 30) if name == "before" else (hour, 30)
    if found.re is QUARTER:
        hour, minute = (hour - 1, 45) if groups["way"].casefold() in ("quarter to", "viertel vor") else (hour, 15)
    if (meridiem := groups.get("meridiem", "").casefold()) and hour <= 12:
        hour = hour % 12 + (12 if meridiem == "p" else 0)
    elif part is not None and part.late and hour < 12:
        hour += 12
    elif part is None and (found.re in (HOUR, HALF, QUARTER) or "o'clock" in found[0].casefold()) and not minute and hour <= 12:
        return hour
    return time(hour % 24, minute) if minute < 60 else None


# Days and recurrence ---------------------------------------------------------------------------------

DAYS: Final = tuple(
    (_pattern(names), days)
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
WEEKDAY: Final = _pattern(_NAMES)
DATES: Final = tuple(
    _pattern(text)
    for text in (
        r"(?:on |am |le |el |il |em |no )?(?P<day>\d{4}-\d{2}-\d{2})",
        r"(?:on |am |le |el |il |em |no )?(?P<day>\d{1,2}[./]\d{1,2}[./]\d{2,4}|\d{1,2}/\d{1,2})",
        r"(?:on |am |le |el |il |em |no )?(?P<day>\d{1,2}\.\s?\d{1,2})\.",
        r"(?:on |am |le |el |il |l'|em |no |the |dia )*(?P<day>\d{1,2}(?:st|nd|rd|th|er|º|\.)?(?: of"
        r"| de)? [^\W\d_]{3,10}\.?(?:,?(?: de)? \d{4})?)",
        r"(?:on )?(?P<day>[^\W\d_]{3,9} \d{1,2}(?:st|nd|rd|th)?(?:,? \d{4})?)(?!:)",
        rf"(?:on |am |le |el |il |la |na |no |this |next |nächsten |kommenden |ce |este |questo "
        rf"|esta )*(?P<day>{_NAMES})(?: next| prochain| que viene| prossimo| prossima| que vem)?",
    )
)
UNTIL: Final = _pattern(
    rf"(?:until|till|up to|bis(?: zum)?|jusqu'au|jusqu'à|hasta(?: el)?|fino al|fino a|até(?: ao| o| a)?) "
    rf"(?P<day>\d{{4}}-\d{{2}}-\d{{2}}|\d{{1,2}}[./]\d{{1,2}}[./]?(?:\d{{2,4}})?|\d{{1,2}}(?:st|nd|rd|th|\.)?(?: de"
    rf"| of)? [^\W\d_]{{3,10}}(?: \d{{4}})?|[^\W\d_]{{3,9}} \d{{1,2}}|{_NAMES})"
)
TIMES: Final = _pattern(rf"(?P<n>{_NUMBER}) ?(?:times|mal|fois|veces|volte|vezes)")
_EVERY: Final = (
    r"every|each|jeden|jede|jedes|alle|chaque|tous les|toutes les|cada|todos los|todas las|ogni|tutti i|tutte le"
    r"|todos os|todas as|todo|toda|a cada"
)
RULES: Final = tuple(
    (_pattern(text), rule)
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
        (
            rf"daily|täglich|quotidiennement|diariamente|quotidianamente|(?:{_EVERY}) (?:single )?(?:day|tag|tage|jours?|días?"
            rf"|giorn[oi]|dias?)|every morning|every evening|every night",
            "day",
        ),
        (rf"weekly|wöchentlich|(?:{_EVERY}) (?:week|woche|semaines?|semanas?|settiman[ae])", "week"),
        (rf"monthly|monatlich|(?:{_EVERY}) (?:month|monat|mois|meses|mes|mes[ei]|mês)(?! (?:on|am))", "month"),
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
ORDINAL_DAY: Final = _pattern(
    rf"(?:on the |every |the |an jedem |am |jeden |le |chaque |el |cada |l'|ogni |na |no "
    rf"|toda )*(?P<which>{'|'.join(names for _, names in _ORDINALS)}) "
    rf"(?P<weekday>{_NAMES}) (?:of (?:the|every|each) month|(?:im|des|jedes) monats?|du mois|(?:de |del )(?:cada )?mes|del mese"
    rf"|di ogni mese|do mês|de cada mês)"
)
EVERY_DAY_OF_WEEK: Final = _pattern(
    rf"(?:{_EVERY}|on) (?:(?:{_NAMES})(?:(?:,| and| und| et| y| e)? (?:{_NAMES}))+)|(?:{_EVERY}) (?:{_NAMES})"
)
EVERY_N: Final = _pattern(rf"(?:{_EVERY}) (?P<n>{_NUMBER}) (?P<unit>{_UNIT})")


def weekday_of(word: str) -> str:
    """A day of the week as rules write it."""
    return next(code for code, names in _WEEKDAYS if re.fullmatch(names, word, re.IGNORECASE))


def ordinal_of(word: str) -> str:
    """Which one in the month, as rules write it."""
    return next(number for number, names in _ORDINALS if re.fullmatch(names, word, re.IGNORECASE))


# Looking back ----------------------------------------------------------------------------------------

_MONTHS: Final = (
    r"january|jan|januar|jänner|janvier|enero|gennaio|janeiro",
    r"february|feb|februar|février|febrero|febbraio|fevereiro",
    r"march|mar|märz|mars|marzo|março",
    r"april|apr|avril|abril|aprile",
    r"may|mai|mayo|maggio|maio",
    r"june|jun|juni|juin|junio|giugno|junho",
    r"july|jul|juli|juillet|julio|luglio|julho",
    r"august|aug|août|agosto",
    r"september|sept?|septembre|septiembre|settembre|setembro",
    r"october|oct|oktober|octobre|octubre|ottobre|outubro",
    r"november|nov|novembre|noviembre|novembro",
    r"december|dec|dezember|décembre|diciembre|dicembre|dezembro",
)
_MONTH: Final = "|".join(_MONTHS)
_YEAR: Final = r"(?:,? (?:de |del |do )?(?P<year>(?:19|20)\d\d))"
NAMED_DAYS: Final = (
    re.compile(r"(?<!\d)(?P<year>\d{4})-(?P<number>\d{2})-(?P<day>\d{2})(?!\d)"),
    re.compile(r"(?:(?P<year>\d{4})年)?(?P<number>\d{1,2})月(?:(?P<day>\d{1,2})[日号號])?"),
    _pattern(rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th|er|º|\.)?(?: of| de)? (?P<month>{_MONTH}){_YEAR}?"),
    _pattern(rf"(?P<month>{_MONTH}) (?P<day>\d{{1,2}})(?:st|nd|rd|th)?{_YEAR}?"),
    _pattern(rf"(?P<month>{_MONTH}){_YEAR}"),
    # A month alone is known by the word before it, as some are other words, too.
    _pattern(
        rf"(?:in|during|since|until|early|late|mid|last|of|im|seit|anfang|mitte|ende|en|au mois de|depuis|desde|nel|em|no mês de) "
        rf"(?P<month>{_MONTH})"
    ),
)
"""Days and months by their names or numbers; a year may be missing."""
BACK: Final = tuple(
    (re.compile(names) if names[0] > "z" else _pattern(names), first, last)
    for names, first, last in (
        (r"day before yesterday|vorgestern|avant-hier|anteayer|l'altro ieri|anteontem", 2, 2),
        (r"yesterday|last night|gestern|ayer|ieri|ontem", 1, 1),
        (r"last week|letzte woche|la semaine dernière|la semana pasada|la settimana scorsa|na semana passada", 14, 1),
        (r"last month|letzten monat|le mois dernier|el mes pasado|il mese scorso|no mês passado", 60, 1),
        ("前天", 2, 2),
        ("昨天|昨日", 1, 1),
    )
)
"""Words for days before now: from so many days ago to so many."""
ASKS_TIME: Final = re.compile(
    _pattern(
        r"when|how long|(?:what|which) (?:dates?|day|week|month|year|time)|wann|wie lange|(?:an )?welche[mnrs]? (?:tag|woche|monat|jahr)|quand"
        r"|quel(?:le)? (?:date|jour|semaine|mois|année)|cuándo|cuánto tiempo|qué (?:fecha|día|semana|mes|año)|quando|quanto tempo"
        r"|(?:che|quale) (?:data|giorno|settimana|mese|anno)|(?:que|qual) (?:data|dia|semana|mês|ano)"
    ).pattern
    + "|什么时候|何时|哪[天年月]|几[月号]|いつ|언제",
    re.IGNORECASE,
)
"""A question for a time."""
TIME_WORDS: Final = " ".join(
    (
        "yesterday today tonight tomorrow ago recently since soon last next week weekend month year summer winter spring autumn fall",
        "monday tuesday wednesday thursday friday saturday sunday",
        "january february march april june july august september october november december",
        "gestern vorgestern heute morgen neulich woche wochenende monat jahr letzte letzten nächste montag dienstag mittwoch donnerstag freitag",
        "samstag sonntag januar februar märz mai juni juli oktober dezember",
        "aujourd'hui demain semaine mois année an dernier dernière lundi mardi mercredi jeudi vendredi samedi dimanche",
        "janvier février avril juin juillet août septembre octobre novembre décembre",
        "ayer hoy mañana semana mes año pasado pasada lunes martes miércoles jueves viernes sábado domingo",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        "ieri oggi domani settimana mese anno scorso scorsa lunedì martedì mercoledì giovedì venerdì sabato domenica",
        "gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre",
        "ontem hoje amanhã mês ano passado passada janeiro fevereiro março maio junho julho setembro outubro novembro dezembro",
        "昨天 今天 明天 前天 去年 今年 上周 下周 星期 周末 月份 昨日 先週 来週 어제 오늘 내일",
    )
)
"""Words of a message that tells a time."""


def month_of(word: str) -> int:
    """The number of a month's name."""
    return 1 + next(n for n, names in enumerate(_MONTHS) if re.fullmatch(names, word, re.IGNORECASE))
