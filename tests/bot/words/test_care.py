"""Recognising a crisis, in many languages; and what is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.config.persona import Emergency
from bot.words.care import Kind, recognise, speaks_of

PLAIN = [
    # en
    "I want to kill myself",
    "i wanna die",
    "I'm going to end my life tonight.",
    "I've been having suicidal thoughts",
    "I don't want to live anymore",
    "Everyone would be better off without me",
    "I cut my wrists again",
    "i just want to be dead",
    "I don’t want to wake up anymore",
    "I am thinking about hurting myself",
    "Great day, thanks! But honestly I want to die.",
    "i feel so suicidal",
    "I overdosed on my pills",
    "I am planning to kill myself",
    "I wish I was dead",
    "I have the urge to hurt myself",
    "i am going to take my life",
    "thinking about taking my own life",
    # de
    "Ich will nicht mehr leben",
    "Ich möchte sterben",
    "ich will mich umbringen",
    "Ich habe daran gedacht, mir das Leben zu nehmen.",
    "Ich bringe mich um",
    "Ich ritze mich wieder",
    "ich habe Selbstmordgedanken",
    "Am liebsten wäre ich tot",
    # fr
    "Je veux mourir",
    "j'ai envie de mourir",
    "Je pense à me suicider",
    "Je vais mettre fin à mes jours",
    "j'ai des idées suicidaires",
    # es
    "Quiero morirme",
    "me quiero morir",
    "Estoy pensando en suicidarme",
    "ya no quiero vivir",
    "voy a quitarme la vida",
    # it
    "Voglio morire",
    "Voglio uccidermi",
    "penso di farla finita",
    "non voglio più vivere",
    # pt
    "Quero morrer",
    "estou pensando em me matar",
    "não quero mais viver",
    "vou acabar com a minha vida",
    # nl
    "Ik wil dood",
    "ik wil niet meer leven",
    "ik denk aan zelfmoord plegen",
    "ik wil mezelf iets aandoen",
    # tr
    "Ölmek istiyorum",
    "kendimi öldürmek istiyorum",
    "İntihar etmeyi düşünüyorum",
    "yaşamak istemiyorum artık",
    # pl
    "Chcę umrzeć",
    "chcę się zabić",
    "mam myśli samobójcze",
    "nie chcę już żyć",
    # ru
    "Я хочу умереть",
    "я хочу покончить с собой",
    "не хочу больше жить",
    "думаю, как убить себя",
    # uk
    "Я хочу померти",
    "хочу вбити себе",
    "не хочу більше жити",
    # ar
    "أريد أن أموت",
    "افكر في الانتحار",
    "أريد أن أقتل نفسي",
    "لا أريد أن أعيش",
    # zh
    "我想自杀",
    "我不想活了",
    "我想死",
    "活不下去了",
    "我想結束自己的生命",
    # ja
    "死にたい",
    "もう死にたいです",
    "自殺したい",
    "生きていたくない",
    # ko, hi
    "죽고 싶어",
    "자살하고 싶어요",
    "मैं मरना चाहता हूँ",
]

NOT = [
    "This traffic kills me",
    "That cake was to die for",
    "I'm dying to see the new film",
    "I died laughing",
    "my feet are killing me",
    "I watched Suicide Squad yesterday",
    "We have to kill time until six",
    "I hurt myself while climbing, only a scratch",
    "That would be political suicide",
    "My phone is dead",
    "I killed it at karaoke",
    "I would never kill myself",
    "the deadline is killing me",
    "I cut myself shaving",
    "Kill the process and restart it",
    "I don't want to live in Berlin anymore",
    "I don't want to live with my parents anymore",
    "take my life savings out of the bank",
    "I am not suicidal, just tired",
    "I want to die of laughter",
    "Die Katze will ins Haus",
    "die hard is my favourite film",
    "I like dying my hair",
    "I was thinking about dying it black",
    "excited to take it all in",
    "better off without me playing",
    "which direction to take my life",
    "Ich lach mich tot",
    "Ich sterbe vor Hunger",
    "Der Lärm bringt mich um",
    "Ich will nicht mehr in Köln leben",
    "Ich würde mich nie umbringen",
    "Ich bringe mich heute ein bisschen in Form",
    "Je suis mort de rire",
    "c'est à mourir de rire",
    "je meurs de faim",
    "Me muero de risa",
    "me muero de hambre",
    "Muoio di fame",
    "mi piace da morire",
    "Estou morrendo de rir",
    "ik lach me dood",
    "umieram z głodu",
    "умираю со смеху",
    "вмираю зі сміху",
    "我笑死了",
    "累死我了",
    "想死你了",
    "死ぬほど笑った",
    "배고파 죽겠다",
    "اموت من الضحك",
    "açlıktan ölüyorum",
    "Good morning!",
    "",
    "???",
    "I want to dye my hair",
    "Let's end it here for today",
    "I hung the picture myself",
    "The doctor took my temperature",
    "she took it all seriously",
    "I will take it all back",
    "Ich nehme mir das Leben leichter als früher",
]

PERHAPS = [
    "```\nos.kill(os.getpid(), 9)  # kill myself\n```",
    "> I want to die\nWhat did he mean by that?",
    "There's no reason to go on living",
    "I took all my pills",
    "In the book Werther kills himself: I want to die, he says",
    "I read a novel about a suicide",
    "Im Film sagt sie: ich will sterben",
    "I can't go on",
    "I might fall off and hurt myself",
    "There is no point in living",
    "I don't want to be here anymore",
    "ich kann nicht mehr",
    "je n'en peux plus",
    "no aguanto más",
    "больше не могу",
    "撑不下去",
    "消えたい",
    "my uncle's suicide still haunts me",
]


@pytest.mark.parametrize("text", PLAIN)
def test_plain_words_are_recognised(text: str) -> None:
    assert recognise(text) == "plain"
    assert recognise(f"Hello. {text.upper() if text.isascii() else text}. Sorry for that.") == "plain"


@pytest.mark.parametrize("text", NOT)
def test_figures_of_speech_are_none(text: str) -> None:
    assert recognise(text) is None


@pytest.mark.parametrize("text", PERHAPS)
def test_what_may_mean_it_is_for_the_second_voice(text: str) -> None:
    assert recognise(text) == "perhaps"


@pytest.mark.parametrize(
    "text",
    ["i dont wanna be alive anymore", "Ich hab keine Lust mehr zu leben", "I want to\u200b die", "> How are you?\nI want to die"],
)
def test_plain_words_hide_behind_nothing(text: str) -> None:
    assert recognise(text) == "plain"


def test_one_joke_does_not_hide_what_else_is_said() -> None:
    assert recognise("The traffic kills me. And I want to kill myself.") == "plain"
    assert recognise("This traffic kills me and I want to kill myself") == "plain"
    assert recognise("I'm not suicidal, I just want to kill myself") == "plain"


@given(st.text(max_size=3000))
def test_any_text_gets_an_answer(text: str) -> None:
    assert recognise(text) in (None, "plain", "perhaps")


EMERGENCIES: dict[Kind, tuple[list[str], list[str]]] = {
    # kind: what is plain, what is none
    "medical": (
        [
            "My dad is having a heart attack",
            "I can't breathe",
            "she is unconscious on the floor",
            "He is not breathing!",
            "my son swallowed some bleach",
            "please, I need an ambulance",
            "Ich bekomme keine Luft",
            "Mein Mann liegt bewusstlos in der Küche",
            "Er atmet nicht mehr",
            "Ich brauche einen Notarzt",
            "ich habe starke Brustschmerzen",
            "Je n'arrive plus à respirer",
            "No puedo respirar",
            "non riesco a respirare",
            "não consigo respirar",
            "hij ademt niet",
            "nefes alamıyorum",
            "nie mogę oddychać",
            "я не могу дышать",
            "لا أستطيع التنفس",
            "我不能呼吸",
            "息ができない",
            "숨을 못 쉬겠어",
        ],
        [
            "You almost gave me a heart attack",
            "I laughed so hard I can't breathe",
            "a stroke of luck",
            "My breaststroke got better",
            "Heute habe ich vor Lachen keine Luft bekommen",
            "I bought a new ambulance toy for my son",
            "I also have a cat",
        ],
    ),
    "violence": (
        [
            "I'm going to kill my boss",
            "I want to hurt her",
            "he threatened to kill me",
            "He has a knife and is outside",
            "Ich werde ihn umbringen",
            "ich bringe meinen Nachbarn um",
            "Je vais le tuer",
            "voy a matarlo",
            "vou matar ele",
            "ik ga hem vermoorden",
            "я его убью",
            "我要杀了他",
        ],
        [
            "I'm going to kill them in the game tonight",
            "I will kill my back with this desk",
            "We want to shoot photos on Sunday",
            "Ich bringe ihn zum Bahnhof",
            "I also have a cat",
        ],
    ),
    "abuse": (
        [
            "My husband hits me",
            "my dad keeps beating my sister",
            "I was raped",
            "he forced me to have sex",
            "Mein Mann schlägt mich",
            "Er hat mich gestern geschlagen",
            "Ich wurde missbraucht",
            "mon mari me frappe",
            "mi marido me pega",
            "mio marito mi picchia",
            "meu pai me bate",
            "hij slaat me",
            "муж меня бьёт",
            "老公打我",
        ],
        [
            "She beats me at chess every time",
            "It hit me that I forgot the milk",
            "Hit me up when you are there",
            "beats me",
            "Er schlägt mich für das Amt vor",
            "Sie hat mich beim Schach geschlagen",
            "My brother beat me in the race",
            "I also have a cat",
        ],
    ),
}


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, (plain, _) in EMERGENCIES.items() for text in plain])
def test_other_emergencies_are_recognised_too(kind: Kind, text: str) -> None:
    assert recognise(text, kind) == "plain"
    assert recognise(f"Hello. {text.upper() if text.isascii() else text}. Sorry for that.", kind) == "plain"


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, (_, none) in EMERGENCIES.items() for text in none])
def test_what_only_sounds_like_one_is_none(kind: Kind, text: str) -> None:
    assert recognise(text, kind) is None


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("medical", "My grandfather had a stroke last year"),
        ("medical", "In the film she stopped breathing"),
        ("violence", "I could kill him"),
        ("violence", "my mom is going to kill me"),
        ("abuse", "I am afraid of my husband"),
        ("abuse", "> My husband hits me\nThat is in a letter I got"),
    ],
)
def test_an_emergency_that_may_be_none_is_for_the_second_voice(kind: Kind, text: str) -> None:
    assert recognise(text, kind) == "perhaps"


def test_an_operators_own_words_are_found_whole_and_however_written() -> None:
    assert speaks_of("Es riecht nach GAS hier!", ("riecht nach Gas",))
    assert speaks_of("my café burns", ("cafe burns",))
    assert not speaks_of("gasoline", ("gas",))
    assert not speaks_of("anything", ("", " "))
    with pytest.raises(ValueError, match="names nothing by which its moment is recognised"):
        Emergency(when="it burns", say="Run!")


def test_long_texts_are_quick() -> None:
    assert recognise("mich " * 40_000 + "ich will sterben") == "plain"
    assert recognise("I want " * 40_000) is None
