"""Ordinary sentences, some hundred, made of a few parts: what people say about themselves without any secret in it."""

from itertools import product

_WHO = ("I", "My sister", "Our neighbour", "The man from work", "Ada")
_DID = (
    "moved to Porto in 2019",
    "bought 12 tickets for 340.50 euros",
    "ran 42.195 km in 4:12:33",
    "was born on 03.04.1987",
    "forgot the password of the old laptop",
    "keeps the key under the mat",
    "lives at 221b Baker Street, flat 7/2",
    "changed the login page twice",
    "pinned a note to the fridge",
    "called 0800 555 0199 at 10:30",
    "reads 3-4 books a month, mostly sci-fi",
    "lost the card for the library",
    "wrote to ada.lovelace@example.com about v2.0-rc1",
)
_THEN = ("", ", and that was fun", " because of the rain", "; the secret is patience", " (see https://example.com/a/b?c=1&d=2)")
SENTENCES = tuple(f"{who} {did}{then}." for who, did, then in product(_WHO, _DID, _THEN))
