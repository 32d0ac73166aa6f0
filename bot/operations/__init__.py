"""bot.operations"""
