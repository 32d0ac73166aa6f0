"""`python -m bot`, the same as the command `bot`."""

from bot.cli import main

main()
