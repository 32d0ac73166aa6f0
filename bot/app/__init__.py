"""bot.app"""
