"""The doors to the platforms: each adapter turns what its platform says into values and sends what it is given.

`base` fixes the values and the contract; `text` splits and cleans text; `console` is the terminal. Nothing here imports `bot` or `memory`.
"""
