"""False alarms of the secrets' rules on ordinary chats: `python -m tests.scenarios.measure_secrets FILE [--show]`.

FILE holds one chat a line as JSON, with `sessions` of `utterances` (Multi-Session Chat's form). Prints how many messages there are and in how
many a secret is found; exits with 1 above one in 2,000. `--show` prints what was found, for who mends the rules.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from bot.words.secrets import secrets

MOST = 1 / 2_000


def main() -> None:
    texts = [
        utterance["text"]
        for line in Path(sys.argv[1]).read_text("utf-8").splitlines()
        for session in json.loads(line)["sessions"]
        for utterance in session["utterances"]
    ]
    begun = time.perf_counter()
    found = [(text, each) for text in texts if (each := secrets(text))]
    spent = (time.perf_counter() - begun) / max(1, len(texts))
    if "--show" in sys.argv:
        for text, each in found:
            print([(one.kind, text[one.start : one.end]) for one in each], text)
    print(f"{len(found)} alarms in {len(texts)} messages (goal: at most {MOST * len(texts):.0f}); {spent * 1e6:.0f} µs a message")
    sys.exit(len(found) > MOST * len(texts))


if __name__ == "__main__":
    main()
