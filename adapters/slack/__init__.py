"""Slack as a platform, through slack-bolt. Nothing of the library leaves this package.

    adapter     the contract of `adapters.base`, put together from the rest
    settings    what the operator chose, as values
    workspaces  the installations, each with a client of its own; what a dead token means
    installs    workspaces that install the app themselves (OAuth), on a vault that the bot provides
    events      which event goes where; nothing is acknowledged before it is in the inbox
    socket      Socket Mode, with a watch for a connection that is alive but deaf
    web         HTTP mode: signatures, age, size
    names       places and events as values: team, organisation, channel, thread
    triggers    what counts of a message, for `adapters.triggers`
    inbound     messages, edits and deletions on their way in, each channel in order, within Slack's three seconds
    quotes      the words of others that come along with a message
    people      names, time zones and roles; do not disturb
    rooms       what a channel is; unknown is private
    files       attachments, read with the bot's token or described
    texts       Slack's markup made readable, the model's made harmless
    lines       commands as plain words
    commands    commands in all their forms, answered for the asker alone
    home        App Home
    blocks      messages, buttons and windows as Slack's blocks
    outbound    sending, looking up, and what a refusal means
    streams     replies that grow
    status      the status line while an agent works
    manifest    the app's manifest

Importing the package itself does not import the library.
"""
