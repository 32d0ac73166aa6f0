"""bot.turn"""
