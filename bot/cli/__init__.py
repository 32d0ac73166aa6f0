"""bot.cli"""
