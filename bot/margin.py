"""The margin between our token count and the endpoint's, learned from the usage it reports."""

MOST = 2.5
"""The widest margin; a report beyond it is about something else than our prompt, and is not learned from."""
LEAST = 1.02


class Margin:
    """By how much an endpoint counts more tokens than our tokenizer does."""

    def __init__(self, factor: float = LEAST) -> None:
        self.factor = factor
        self._before = 1.0

    def learn(self, counted: int, reported: int) -> None:
        """Widen to what two reports in a row agree on at least, narrow slowly. Zero: the endpoint does not tell."""
        if counted < 200 or reported <= 0:
            return
        ratio = reported / counted
        if not 0.2 <= ratio <= MOST:
            return
        agreed, self._before = min(ratio, self._before), ratio
        self.factor = max(LEAST, agreed * 1.01, self.factor - 0.02 * (self.factor - ratio))

    def overflowed(self) -> bool:
        """The endpoint refused a prompt as too long in spite of the count; returns whether the margin could still be widened."""
        before, self.factor = self.factor, min(MOST, self.factor * 1.15)
        return self.factor > before
