"""What the rehearsal model understands: facts, corrections, questions and requests, by plain patterns.

Small pure functions over texts. English is understood best; German, French and Spanish in the commonest turns.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Language = str
"""One of the keys of `PHRASES`."""


@dataclass(frozen=True, slots=True)
class Fact:
    """Something to keep: `label: value` in a section. A single-valued label takes the place of an older entry."""

    section: str
    label: str
    value: str
    single: bool = False
    language: Language = "en"

    @property
    def text(self) -> str:
        return f"{self.label}: {self.value}" if self.label else self.value


PHRASES: dict[Language, dict[str, str]] = {
    "en": {
        "who": "First, a note: I'm the built-in rehearsal model, a small set of rules rather than a language model. I keep what you tell me, "
        "search and page when you ask, and save under memory pressure. For real conversation connect a model (see README).",
        "noted": "I will remember: {}.",
        "changed": "Corrected: {}.",
        "removed": "Forgotten: {}.",
        "archived": "I put that into archival storage.",
        "known": "As far as I know: {}.",
        "found": "You told me on {1}: “{0}”",
        "closest": "I am not sure. The closest I found, from {1}: “{0}”",
        "unknown": "I do not know that. I looked through what I have and found nothing.",
        "nothing": "I have no entry like that, so there was nothing to change.",
        "already": "I have that already: {}.",
        "failed": "That did not work: {}",
        "paused": "Memory is paused, so I do not keep that. /memory resume ends the pause.",
        "timer": "I will remind you: {}.",
        "when": "When? Say it in one line, such as “remind me tomorrow at 8 to water the plants”.",
        "zone": "For a time on the clock I need your time zone: /settings timezone Europe/Berlin. “In 20 minutes” works without it.",
        "small": "I have read that, and it stays in recall storage. Tell me something about yourself, or ask what I know.",
    },
    "de": {
        "who": "Vorab: Ich bin ein Probemodell, ein paar Regeln und kein Sprachmodell. Ich merke mir, was du erzählst, und suche es wieder.",
        "noted": "Das merke ich mir: {}.",
        "timer": "Ich erinnere dich: {}.",
        "when": "Wann? Sag es in einer Zeile, zum Beispiel „erinnere mich morgen um 8 ans Gießen“.",
        "zone": "Für eine Uhrzeit brauche ich deine Zeitzone: /settings timezone Europe/Berlin. „In 20 Minuten“ geht auch ohne.",
        "paused": "Das Gedächtnis ist angehalten, also behalte ich das nicht. /memory resume beendet die Pause.",
        "known": "Soweit ich weiß: {}.",
        "found": "Das hast du mir am {1} erzählt: „{0}“",
        "unknown": "Das weiß ich nicht; ich habe gesucht und nichts gefunden.",
    },
    "fr": {
        "who": "D'abord : je suis un modèle de répétition, quelques règles et non un modèle de langue. Je retiens ce que tu me dis.",
        "noted": "Je m'en souviendrai : {}.",
        "known": "D'après ce que je sais : {}.",
        "found": "Tu me l'as dit le {1} : « {0} »",
        "unknown": "Je ne le sais pas ; j'ai cherché sans rien trouver.",
    },
    "es": {
        "who": "Primero: soy un modelo de ensayo, unas reglas y no un modelo de lenguaje. Guardo lo que me cuentas.",
        "noted": "Lo recordaré: {}.",
        "known": "Por lo que sé: {}.",
        "found": "Me lo dijiste el {1}: «{0}»",
        "unknown": "No lo sé; he buscado y no he encontrado nada.",
    },
}


def phrase(language: Language, key: str, *values: str) -> str:
    """A sentence in the language, in English where that has none."""
    return PHRASES.get(language, {}).get(key, PHRASES["en"][key]).format(*values)


# --- what a message says ----------------------------------------------------------------------------

_V = r"(?P<value>.{1,200}?)"
_FACTS: Sequence[tuple[Language, str, str, str, bool]] = (
    # language, section, label, pattern, single
    ("en", "profile", "Name", rf"(?:my name(?:'s| is)|i am called|i'm called|call me) {_V}", True),
    ("en", "profile", "Age", r"i(?:'m| am) (?P<value>\d{1,3})(?: years old)?", True),
    ("en", "profile", "Lives in", rf"i (?:now )?live in {_V}", True),
    ("en", "profile", "Comes from", rf"i(?:'m| am| come) from {_V}", True),
    ("en", "profile", "Works as", rf"i work as {_V}", True),
    ("en", "profile", "Works at", rf"i work (?:at|for|in) {_V}", True),
    ("en", "profile", "Is", r"i(?:'m| am) (?P<value>an? .{1,200}?)", False),
    ("en", "preferences", "Dislikes", rf"i (?:really )?(?:hate|dislike|can't stand|don't like|do not like) {_V}", False),
    ("en", "preferences", "Likes", rf"i (?:really |also )?(?:like|love|enjoy|adore) {_V}", False),
    ("en", "preferences", "Prefers", rf"i (?:would )?prefer {_V}", False),
    ("en", "goals", "Wants to", rf"(?:i (?:want|plan|hope|would like) to |my goal is (?:to )?){_V}", False),
    (
        "en",
        "key_facts",
        "Has",
        r"i(?: have|'ve got) (?P<value>(?!(?:an? )?(?:question|idea|problem)|to\b|been\b).{1,200}?)",
        False,
    ),
    ("de", "profile", "Name", rf"(?:ich heiße|ich heisse|mein name ist) {_V}", True),
    ("de", "profile", "Lives in", rf"ich (?:wohne|lebe) in {_V}", True),
    ("de", "profile", "Works as", rf"ich arbeite als {_V}", True),
    ("de", "preferences", "Dislikes", r"ich (?:hasse|mag (?:keinen?|nicht)) (?P<value>.{1,200}?)", False),
    ("de", "preferences", "Likes", rf"ich (?:mag|liebe) {_V}", False),
    ("de", "preferences", "Prefers", rf"ich bevorzuge {_V}", False),
    ("de", "goals", "Wants to", rf"ich (?:will|möchte) {_V}", False),
    ("fr", "profile", "Name", rf"(?:je m'appelle|mon nom est) {_V}", True),
    ("fr", "profile", "Lives in", rf"j'habite (?:à|en|au|aux) {_V}", True),
    ("fr", "profile", "Works as", rf"je travaille comme {_V}", True),
    ("fr", "preferences", "Dislikes", rf"je n'aime pas {_V}", False),
    ("fr", "preferences", "Likes", rf"j'(?:aime|adore) {_V}", False),
    ("fr", "preferences", "Prefers", rf"je préfère {_V}", False),
    ("es", "profile", "Name", rf"(?:me llamo|mi nombre es) {_V}", True),
    ("es", "profile", "Lives in", rf"vivo en {_V}", True),
    ("es", "profile", "Works as", rf"trabajo (?:como|de) {_V}", True),
    ("es", "preferences", "Dislikes", rf"no me gustan? {_V}", False),
    ("es", "preferences", "Likes", rf"me (?:gustan?|encantan?) {_V}", False),
    ("es", "preferences", "Prefers", rf"prefiero {_V}", False),
)
_MINE: Sequence[tuple[Language, str]] = (
    ("en", r"my (?P<label>[\w' -]{2,40}?) (?:is|are|was|were) (?:now )?(?P<value>.{1,200}?)"),
    ("de", r"meine? (?P<label>[\w' -]{2,40}?) (?:ist|sind|war) (?P<value>.{1,200}?)"),
    ("fr", r"(?:mon|ma|mes) (?P<label>[\w' -]{2,40}?) (?:est|sont) (?P<value>.{1,200}?)"),
    ("es", r"mis? (?P<label>[\w' -]{2,40}?) (?:es|son) (?P<value>.{1,200}?)"),
)
_REMEMBER: Sequence[tuple[Language, str]] = (
    (
        "en",
        r"(?:please )?(?:remember|don't forget|do not forget|keep in mind)(?: that|:|,)? (?P<value>(?!to\b|when\b|the time\b).{3,400})",
    ),
    ("de", r"(?:bitte )?(?:merk(?:e)? dir|vergiss nicht)(?:,? dass|:|,)? (?P<value>.{3,400})"),
    ("fr", r"(?:souviens-toi|n'oublie pas|retiens)(?: que| :|,)? (?P<value>.{3,400})"),
    ("es", r"(?:recuerda|no olvides)(?: que|:|,)? (?P<value>.{3,400})"),
)
_CORRECTS = re.compile(
    r"^(?:no|sorry|correction|wait|oh|actually|i meant(?: that)?|nein|eigentlich|non|en fait|en realidad|perdón)\b[\s,:;.-]*",
    re.I,
)


def sentences(text: str) -> list[str]:
    """The sentences and lines of a text, and the halves of `I .. and I ..`; without final dots, with question marks."""
    joined = r"(?:,? and |, )(?=(?:i|my|i'm)\b)|,? und (?=(?:ich|meine?)\b)|,? et (?=(?:je|j'|mon|ma)\b)|,? y (?=(?:me|mi|vivo|trabajo)\b)"
    parts = re.split(rf"(?<=[.!?…])\s+|\n+|{joined}", text.replace("’", "'"), flags=re.I)
    return [part.strip().rstrip(".! ") for part in parts if part.strip(" .!?")]


def facts_in(text: str) -> list[Fact]:
    """The facts that a message tells, in order, none twice."""
    found: list[Fact] = []
    for sentence in sentences(text):
        if is_question(sentence):
            continue
        fact = _fact(uncorrected(sentence))
        if fact and fact.text not in [one.text for one in found]:
            found.append(fact)
    return found


def _fact(sentence: str) -> Fact | None:
    for language, pattern in _REMEMBER:
        if match := re.fullmatch(pattern, sentence, re.I | re.S):
            return _fact(match["value"]) or Fact("key_facts", "", match["value"], language=language)
    for language, section, label, pattern, single in _FACTS:
        if match := re.fullmatch(pattern, sentence, re.I):
            value = re.sub(r",? (?:now|too|as well|jetzt|maintenant|ahora)$", "", match["value"], flags=re.I)
            return Fact(section, label, value, single, language)
    for language, pattern in _MINE:
        if match := re.fullmatch(pattern, sentence, re.I):
            label = match["label"][0].upper() + match["label"][1:]
            favourite = re.match(r"favou?rite|liebling|prefer", label, re.I)
            return Fact("preferences" if favourite else "key_facts", label, match["value"], True, language)
    return None


def uncorrected(sentence: str) -> str:
    """The sentence without a leading `Actually,` or `No, sorry,`."""
    while match := _CORRECTS.match(sentence):
        sentence = sentence[match.end() :]
    return sentence


def swap_in(text: str) -> tuple[str, str] | None:
    """(old, new) of `not X but Y` or `Y, not X`."""
    for sentence in sentences(text):
        if match := re.search(r"\bnot (.{1,80}?),? but (?:rather )?(.{1,80})$", sentence, re.I):
            return match[1], match[2]
        if match := re.fullmatch(r"(?:it's |it is |it was )?(.{1,80}?), (?:and )?not (.{1,80})", uncorrected(sentence), re.I):
            return match[2], match[1]
    return None


def forgetting_in(text: str) -> str | None:
    """What the person wants forgotten."""
    match = re.match(
        r"(?:please )?(?:forget|delete|remove|vergiss|oublie|olvida)(?: that| about|,? dass| que| mein\w*| my)? (.{2,200})",
        text.strip().rstrip(".!"),
        re.I,
    )
    return match[1] if match and not re.match(r"to\b|it\b$", match[1], re.I) else None


def note_in(text: str) -> str | None:
    """A text for archival storage: introduced as a note, or long."""
    match = re.match(r"\s*(?:please )?(?:note|archive|store|notiz|notez?|nota)(?: this)?\s*:\s*(.+)", text, re.I | re.S)
    if match:
        return match[1].strip()
    return text.strip() if len(text) > 600 else None


_ASKS = re.compile(
    r"(?:so |and |ok,? )?(?:what|who|where|when|which|why|how|whose|do you|did i|can you tell|tell me|was|wer|wo|wann|wie|welche|weißt"
    r"|que|qui|quel|où|quand|comment|qué|quién|cuál|dónde|cuándo|cómo|sabes)\b",
    re.I,
)


def is_question(sentence: str) -> bool:
    return sentence.rstrip().endswith("?") or bool(_ASKS.match(sentence.strip()))


def question_in(text: str) -> str | None:
    """The last question of a message."""
    return next((sentence for sentence in reversed(sentences(text)) if is_question(sentence)), None)


def asks_who_i_am(text: str) -> bool:
    return bool(
        re.search(
            r"\b(?:who|what) are you|are you (?:an? )?(?:ai|bot|human|real|language model|llm|person)|wer bist du|was bist du|qui es-tu|quién eres",
            text,
            re.I,
        )
    )


def asks_next_page(text: str) -> bool:
    return bool(
        re.fullmatch(
            r"(?:the |show |go to |see )*(?:next page|more|next|weiter|nächste seite|suite|siguiente)\W*", text.strip(), re.I
        )
    )


_MARKS: Sequence[tuple[Language, str]] = (
    ("de", r"\b(?:ich|wie|mein|meine|heiße|wohne|nicht|wo|mag|was|wer|dir|dass)\b"),
    ("fr", r"\b(?:je|j'|mon|ma|où|comment|est-ce|quel|quelle|suis|toi)\b|j'|m'"),
    ("es", r"\b(?:me|mi|llamo|vivo|dónde|cómo|cuál|qué|gusta|soy|recuerda)\b"),
)


def language_of(text: str) -> Language:
    """The language with the most of its small words in the text, English if none has two."""
    counts = {language: len(re.findall(marks, text, re.I)) for language, marks in _MARKS}
    best = max(counts, key=lambda language: counts[language])
    return best if counts[best] >= 2 else "en"


# --- what answers a question ------------------------------------------------------------------------

_SMALL = """
a an the i you he she it we they me my mine your is are was were am be been do does did have has had what who where when which why how whose
that this of in on at to for from with about and or not can could would will tell know remember say said told ever again please so ok
was wer wo wann wie welche ich du mein meine dein ist bin sind habe hast mir dir der die das ein eine in im zu von noch weißt
je tu il elle mon ma mes ton est suis es le la les un une de du des que qui quel quelle où quand comment à en
yo tú mi mis tu el los las una es soy son qué quién cuál dónde cuándo cómo me te se s m d t
"""
_STOP = frozenset(_SMALL.split())
_SAME = {
    **dict.fromkeys(("heiße", "heisse", "appelle", "appelles", "llamo", "llamas", "called", "nombre", "nom"), "name"),
    **dict.fromkeys(("wohne", "wohnst", "lebe", "habite", "habites", "vivo", "vives", "living"), "live"),
    **dict.fromkeys(("mag", "magst", "liebe", "aime", "gusta", "gustan", "love", "enjoy", "favorite", "favourite"), "like"),
    **dict.fromkeys(("arbeite", "arbeitest", "travaille", "trabajo", "job", "occupation", "profession"), "work"),
    **dict.fromkeys(("color", "colour"), "colour"),
    "old": "age",
}


def words(text: str) -> list[str]:
    """The words that carry meaning, with synonyms made one, in order and none twice."""
    text = re.sub(r"\bwho am i\b|\bwer bin ich\b|\bqui suis-je\b|\bquién soy\b", "name", text.casefold().replace("’", "'"))
    found = [_SAME.get(word, word) for word in re.findall(r"\w+", text) if word not in _STOP]
    return list(dict.fromkeys(found))


def score(question: Sequence[str], text: str) -> float:
    """The share of the question's words that the text has, 0 to 1; endings may differ."""
    there = words(text)
    hits = sum(any(_alike(word, other) for other in there) for word in question)
    return hits / len(question) if question else 0.0


def _alike(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return short == long or (len(short) >= 3 and long.startswith(short) and len(long) - len(short) <= 3)


def best(question: str, texts: Iterable[str], *, least: float = 0.6) -> str | None:
    """The text that answers best, the shorter of equals; None if none has `least` of the question's words."""
    asked = words(question)
    ranked = sorted(((score(asked, text), -len(text), text) for text in texts), reverse=True)
    return ranked[0][2] if ranked and ranked[0][0] >= least and asked else None


# --- summary ----------------------------------------------------------------------------------------


def summary(texts: Sequence[str], limit: int) -> str:
    """At most `limit` words: sentences with facts, names and numbers before the others, in their old order."""
    everything = list(dict.fromkeys(one for text in texts for one in sentences(text) if len(one) > 2))
    weight = {one: (2 if _fact(one) else 0) + bool(re.search(r"\d|\s[A-Z]\w", one)) - is_question(one) for one in everything}
    kept: set[str] = set()
    room = limit
    for one in sorted(everything, key=lambda one: -weight[one]):
        if len(one.split()) <= room:
            kept.add(one)
            room -= len(one.split())
    return " ".join(f"{one}." if one[-1] not in "?…:" else one for one in everything if one in kept)
