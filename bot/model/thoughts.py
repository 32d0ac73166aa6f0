"""Thoughts that models write into their text, taken out: the formats of the endpoints that do not keep them apart. Pure.

A thought begins a text or a line; a tag in the middle of a sentence, between back-ticks or in a code block is talked about and stays.
"""

import re

_PAIRS = (
    # DeepSeek, Qwen and most others; EXAONE and Gemini's compatible endpoint; Seed
    *((f"<{name}>", f"</{name}>") for name in ("think", "thinking", "thought", "thoughts", "reasoning", "seed:think")),
    ("[THINK]", "[/THINK]"),  # Magistral
    ("◁think▷", "◁/think▷"),  # Kimi
    ("<|START_THINKING|>", "<|END_THINKING|>"),  # Command
    ("<|begin_of_thought|>", "<|end_of_thought|>"),  # OpenThinker
    ("<unused94>thought", "<unused95>"),  # MedGemma
)
_WHOLE = tuple(
    re.compile(rf"^[ \t]*{re.escape(opening)}(?P<inner>.*?)(?:{re.escape(closing)}\s*|(?P<open>\Z))", re.DOTALL | re.MULTILINE)
    for opening, closing in _PAIRS
)
_CLOSING = re.compile("|".join(re.escape(closing) for _, closing in _PAIRS))
_OPENING = re.compile("|".join(re.escape(opening) for opening, _ in _PAIRS))
_BETWEEN = re.compile(r"\s*(?:and|or|to|und|oder|et|ou|y|o|,|/|\.{3}|…)\s*")
"""What stands between two tags in a sentence about them."""
_CHANNEL = r"(?:<\|start\|>\w*)?<\|channel\|>(?P<channel>\w+)(?P<header>[^\n]{0,120}?)<\|message\|>"
_HARMONY = re.compile(_CHANNEL + r"(?P<body>.*?)(?:<\|(?:end|return|call)\|>|(?=<\|start\|>|<\|channel\|>)|\Z)", re.DOTALL)
_HARMONY_BEGINS = re.compile(rf"\s*{_CHANNEL}|.*?(?:<\|end\|>\s*)?<\|start\|>assistant<\|channel\|>", re.DOTALL)
"""Also where the first header stood in the prompt, so that the reply begins with the thought itself."""
_HARMONY_BARE = re.compile(r"\A(?:assistant)?analysis.*?assistantfinal", re.DOTALL)
"""Harmony whose special tokens a server took away."""
_BARE = "analysis"
_PERHAPS = re.compile(r"^[ \t]*[<\[◁]", re.MULTILINE)
_LEFT_OVER = re.compile(r"(?:\s*(?:<\|(?:end|return|im_end|eot_id|end_of_text|endoftext|END_RESPONSE)\|>|</s>))+\s*\Z")


def spoken(text: str) -> str:
    """What a text says to the person. An unfinished thought goes to the end of the text."""
    text = _final(_HARMONY_BARE.sub("", text))
    for pattern in _WHOLE:
        text = pattern.sub(_thought, text)
    return _LEFT_OVER.sub("", _after_lone_end(text))


def spoken_so_far(text: str) -> str:
    """As much of a text that still grows as is said whatever follows: nothing from a line on that may begin a thought."""
    begun = text.lstrip()
    return "" if _BARE.startswith(begun[: len(_BARE)]) else _PERHAPS.split(text, maxsplit=1)[0]


def thinks_aloud(text: str) -> bool:
    """Whether a text holds thoughts."""
    return spoken(text).strip() != text.strip()


def _quoted(text: str, at: int) -> bool:
    return text.count("```", 0, at) % 2 == 1


def _thought(match: re.Match[str]) -> str:
    inner, start = match["inner"], match.start()
    talked_about = _quoted(match.string, start) or _BETWEEN.fullmatch(inner)
    # Without its end, one that does not begin the text must have its tag alone on the line.
    loose = match["open"] is not None and match.string[:start].strip() and not re.match(r"[ \t]*\n", inner)
    return match[0] if talked_about or loose else ""


def _after_lone_end(text: str) -> str:
    """Some chat templates open the thought in the prompt, so that the reply holds its end alone."""
    end = _CLOSING.search(text)
    if end is None or _quoted(text, end.start()) or _OPENING.search(text, 0, end.start()):
        return text
    before = text[: end.start()]
    return text[end.end() :].lstrip() if re.search(r"(?:\A|[\w.!?…)\"'“”]|\n\s*)\Z", before) else text


def _final(text: str) -> str:
    """Harmony's messages without its thoughts; a call in it keeps its header, by which it is found."""
    if "<|channel|>" not in text or not (begins := _HARMONY_BEGINS.match(text)) or "`<|" in begins[0]:
        return text
    kept = []
    for message in _HARMONY.finditer(text):
        if "to=" in message["header"]:
            kept.append(message[0])
        elif message["channel"] != "analysis":
            kept.append(message["body"].strip())
    return "\n".join(kept)
