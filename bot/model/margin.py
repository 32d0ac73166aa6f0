"""The margin between our token count and the endpoint's, learned from the usage it reports."""

from collections import deque

MOST = 2.5
"""The widest margin; a report beyond it is about something else than our prompt, and is not learned from."""
START = 1.02
LEAST = 0.7
"""The narrowest: what is counted for an unknown model is an estimate from above."""
LEAST_EXACT = 0.95
"""The narrowest where the tokenizer is known: an endpoint that reports still less leaves out the functions or what it had cached."""
REMEMBERED = 40
"""Reports whose widest decides."""
SAFETY = 1.02


class Margin:
    """By how much an endpoint counts more tokens than our tokenizer does; less than 1 where ours estimates too many."""

    def __init__(self, factor: float = START, *, least: float = LEAST) -> None:
        self.factor = factor
        self._least = least
        self._ratios: deque[float] = deque(maxlen=REMEMBERED)
        self._before = 1.0

    def learn(self, counted: int, reported: int) -> None:
        """Widen to what two reports in a row agree on at least, narrow to the widest of the last. Zero: the endpoint does not tell."""
        if counted < 200 or reported <= 0:
            return
        ratio = reported / counted
        if not 0.2 <= ratio <= MOST:
            return
        agreed, self._before = min(ratio, self._before), ratio
        self._ratios.append(ratio)
        widest = max(self._ratios) if len(self._ratios) == REMEMBERED else self.factor / SAFETY
        self.factor = max(self._least, agreed * SAFETY, min(self.factor, widest * SAFETY))

    def overflowed(self) -> bool:
        """The endpoint refused a prompt as too long in spite of the count; returns whether the margin could still be widened."""
        before, self.factor = self.factor, min(MOST, self.factor * 1.15)
        self._ratios.clear()
        return self.factor > before
