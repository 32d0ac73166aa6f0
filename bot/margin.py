"""The margin between our token count and the endpoint's, learned from the usage it reports."""

MOST = 2.5
"""The widest margin: beyond it the endpoint's word is not about our count."""


class Margin:
    """By how much the endpoint counts more tokens than our tokenizer, learned from the usage it reports."""

    def __init__(self, factor: float = 1.02) -> None:
        self.factor = factor

    def learn(self, counted: int, reported: int) -> None:
        """Take over a larger ratio at once and a smaller one slowly; zero means that the endpoint does not tell."""
        if counted < 200 or reported <= 0:
            return
        ratio = min(MOST, reported / counted)
        self.factor = max(1.02, ratio * 1.01, self.factor - 0.02 * (self.factor - ratio))

    def overflowed(self) -> bool:
        """The endpoint refused a prompt as too long in spite of the count; returns whether the margin could still be widened."""
        before, self.factor = self.factor, min(MOST, self.factor * 1.15)
        return self.factor > before
