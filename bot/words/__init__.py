"""bot.words"""
