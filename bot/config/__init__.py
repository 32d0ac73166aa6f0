"""bot.config"""
