"""`python -m bot`, the same as the command `bot`."""

from bot.cli.main import main

main()
