"""Secrets are found however they are written, in the languages of the bot's people; and what only looks like one is left alone."""

from __future__ import annotations

import random

import pytest

from bot.words.secrets import masked, secrets
from tests.bot.words.ordinary import SENTENCES

AWS = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
SEED = "abandon ability able about above absent absorb abstract absurd abuse access accident"
SPELLINGS = [
    # card numbers
    ("4111 1111 1111 1111", "card number"),
    ("4111111111111111", "card number"),
    ("4111.1111.1111.1111", "card number"),
    ("4111/1111/1111/1111", "card number"),
    ("4111  1111  1111  1111", "card number"),
    ("4111\n1111\n1111\n1111", "card number"),
    ("4111\u200b1111\u200b1111\u200b1111", "card number"),
    ("4\u200d1\u200d1\u200d1 1111 1111 1111", "card number"),
    ("4111 - 1111 - 1111 - 1111", "card number"),
    ("4111_1111_1111_1111", "card number"),
    ("4111|1111|1111|1111", "card number"),
    ("4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", "card number"),
    ("41111111 11111111", "card number"),
    ("３７８２ ８２２４６３ １０００５", "card number"),
    ("my amex: 3782 822463 10005, valid 12/27", "card number"),
    ("5500-0000-0000-0004 12/27 123", "card number"),
    ("4111–1111–1111–1111", "card number"),
    ("6011.1111 1111-1117", "card number"),
    # bank accounts
    ("DE89 3704 0044 0532 0130 00", "bank account"),
    ("de89-3704-0044-0532-0130-00", "bank account"),
    ("de89 3704 0044 0532 0130 00", "bank account"),
    ("DE89.3704.0044.0532.0130.00", "bank account"),
    ("gb29 nwbk 6016 1331 9268 19 please", "bank account"),
    ("iban fr14-2004-1010-0505-0001-3m02-606", "bank account"),
    ("NL91\u200bABNA\u200b0417\u200b1643\u200b00", "bank account"),
    ("DE89  3704  0044  0532  0130  00", "bank account"),
    ("IT60 X054 2811 1010 0000 0123 456 è il mio conto", "bank account"),
    # keys
    (f"aws_secret_access_key = {AWS}", "key"),
    (f"the secret access key is {AWS}", "key"),
    (f'AWS_SECRET_ACCESS_KEY="{AWS}"', "key"),
    ("AKIAIOSFODNN7EXAMPLE", "key"),
    ("ASIAIOSFODNN7EXAMPLE", "key"),
    ("AccountKey=" + "Ab3/" * 21 + "Ab==", "key"),
    ("Abc8Q~" + "x9Y" * 11, "key"),
    ("AIza" + "SyD3v" * 7, "key"),
    ("Authorization: Bearer 8f3kd92jf83kd02jf83", "key"),
    ("bearer abcdef0123456789abcdef", "key"),
    ("Authorization: Basic YWRhOmh1bnRlcjI3MTE=", "key"),
    ("hf_" + "aB3dE" * 7, "key"),
    ("npm_" + "aB3dE" * 7, "key"),
    ("glpat-xYz0123456789abcdefg", "key"),
    ("SG." + "a1B2c" * 5 + "." + "a1B2c" * 8, "key"),
    ("110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1", "key"),
    ("https://hooks.slack.com/services/T0000AAAA/B0000AAAA/abcdefabcdef", "key"),
    ("https://discord.com/api/webhooks/8035111022467/abcdefghij-abcdefghij_123", "key"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefghijklmnop", "key"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "key"),
    ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n-----END OPENSSH PRIVATE KEY-----", "key"),
    ("-----BEGIN PGP PRIVATE KEY BLOCK-----\nlQ\n-----END PGP PRIVATE KEY BLOCK-----", "key"),
    ("---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nP2/5", "key"),
    ("PuTTY-User-Key-File-2: ssh-rsa", "key"),
    ("AGE-SECRET-KEY-1" + "QPZRY9X8GF2TVDW0" * 3, "key"),
    ("wireguard PrivateKey = yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=", "key"),
    # passwords in addresses
    ("postgres://ada:hunter2@db.example.com:5432/app", "password"),
    ("mongodb+srv://ada:tiger@cluster0.example.net", "password"),
    ("redis://:tiger@localhost:6379/0", "password"),
    ("Server=db;User Id=ada;Password=Tiger-77;", "password"),
    # passwords, announced
    ("password hunter2", "password"),
    ("my password: swordfish", "password"),
    ("login ada / hunter2!", "password"),
    ("user ada, pass hunter2", "password"),
    ("credentials ada:hunter2", "password"),
    ("the password for the wifi is sunFlower", "password"),
    ("pin 4711", "password"),
    ("my PIN is 4711", "password"),
    ("the wifi password is 'correct horse battery staple'", "password"),
    ("Das Passwort vom Router lautet Biene77", "password"),
    ("Mein Kennwort ist geheim!1", "password"),
    ("le mot de passe est soleil77", "password"),
    ("la contraseña es girasol77", "password"),
    ("la mia password è girasole77", "password"),
    ("la parola d'ordine è girasole77", "password"),
    ("a senha do wifi é girassol77", "password"),
    ("het wachtwoord is zonnebloem77", "password"),
    ("lösenordet är solros77", "password"),
    ("passordet er solsikke77", "password"),
    ("adgangskoden er solsikke77", "password"),
    ("salasana on auringonkukka77", "password"),
    ("hasło to slonecznik77", "password"),
    ("heslo je slunecnice77", "password"),
    ("şifrem: aycicegi77", "password"),
    ("пароль от вайфая: podsolnuh", "password"),
    ("пароль — solnce77", "password"),
    ("ο κωδικός είναι ilios77", "password"),
    ("パスワードはhimawari7です", "password"),
    ("パスワード：himawari", "password"),
    ("密码是sunflower", "password"),
    ("我的密碼：sunflower77", "password"),
    ("비밀번호는 sunflower77", "password"),
    ("كلمة المرور هي sunflower77", "password"),
    ("הסיסמה היא sunflower77", "password"),
    ("mật khẩu là huongduong77", "password"),
    # seed phrases
    (f"my seed phrase is {SEED}", "seed phrase"),
    (SEED, "seed phrase"),
    ("\n".join(f"{number}. {word}" for number, word in enumerate(SEED.split(), 1)), "seed phrase"),
    (f"frase semilla: {SEED}", "seed phrase"),
]


def test_there_are_enough_spellings() -> None:
    assert len(SPELLINGS) >= 80


@pytest.mark.parametrize(("text", "kind"), SPELLINGS)
def test_a_secret_is_found_however_it_is_written(text: str, kind: str) -> None:
    found = secrets(text)
    assert kind in [each.kind for each in found], found
    hidden = masked(f"She told me: {text}" if kind != "seed phrase" else text)
    assert f"[{kind} left out]" in hidden
    assert not {"hunter2", "1111", "0532", "77", "accident", "absorb", AWS, "4711", "swordfish", "tiger"} & set(hidden.split())


@pytest.mark.parametrize(
    "text",
    [
        "Call 0151 23456789 or +49 30 901820.",
        "We met on 12.01.2020, 13.02.2021 and 14.03.2022.",
        "Prices: 10 20 30 40 50 60 70 80.",
        "Message 1182930475629384756 in <#80351110224678912>, by <@4111111111111111>.",
        "Pi is 3.1415926535897932.",
        "Order 4111111111111112.",
        "Commit da39a3ee5e6b4b0d3255bfef95601890afd80709 broke it.",
        "The password is wrong!",
        "I forgot my password again, is that well-known?",
        "My password manager is 100% reliable.",
        "Basic understanding of bearer responsibilities is needed.",
        "Log in on Monday / Tuesday.",
        "The pin is 3000 km away.",
        "Der Schlüssel liegt unter der Matte, das Passwort habe ich vergessen.",
        "La mia password non funziona.",
        "我忘记密码了",
        "パスワードを忘れました",
        "See https://example.com/a:b/c@d and http://localhost:8080/@ada.",
        "secret santa is on friday",
        "you should really try that new place down there sometime",
        "Version 1.2.3.4 of DE12 came out in 2024 2025 2026 2027.",
    ],
)
def test_what_only_looks_like_a_secret_is_left_alone(text: str) -> None:
    assert secrets(text) == []


def test_ordinary_sentences_raise_no_alarm() -> None:
    assert len(SENTENCES) >= 300
    assert [(text, found) for text in SENTENCES if (found := secrets(text))] == []


def test_a_long_text_is_looked_through_in_its_length() -> None:
    """No rule goes back over what it has read: ten times the text takes about ten times as long, and hostile ones do not hang."""
    chance = random.Random(7)
    for piece in ("1 ", "a1", "password ", "login a", "DE89 ", "ab cd ef gh ", "://a:", "aws ", "パスワード", "4111 "):
        text = piece * (100_000 // len(piece))
        assert len(secrets(text)) < len(text), piece
    words = " ".join(chance.choice(["password", "is", "login", "4111", "aws", "word", "bearer"]) for _ in range(15_000))
    assert masked(words)
