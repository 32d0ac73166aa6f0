"""`bot` with a third platform, by one registration."""

from bot.app.platforms import PLATFORMS, Platform
from bot.cli.main import main
from tests.lines.adapter import LIMIT, PLATFORM, from_environment

PLATFORMS[PLATFORM] = Platform(LIMIT, lambda *_: from_environment())

if __name__ == "__main__":
    main()
