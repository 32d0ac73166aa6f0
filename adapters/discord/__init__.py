"""Discord as a platform, through discord.py. Nothing of the library leaves this package.

    adapter     the contract of `adapters.base`, put together from the rest
    settings    what the operator chose, as values
    connection  the client, its intents, the restart loop, what is fatal and what passes
    events      which dispatch goes where
    inbound     messages, edits, deletions and joins on their way in, each channel in order
    quotes      the words of others that come along with a message
    texts       mentions, emoji and the like, made readable
    files       attachments, read or described
    names       places and people as values
    catchup     what was missed while nobody listened
    presence    who has just come online
    outbound    sending, looking up, typing, and what a refusal means
    commands    slash commands, from the list of the bot's commands
    buttons     buttons under an answer, and the question that some ask first

Which messages are answered (`adapters.triggers`), the guard against loops of bots (`adapters.guard`) and what is read of files
(`adapters.files`, `adapters.images`) are the same on every platform. Importing the package itself does not import the library.
"""
