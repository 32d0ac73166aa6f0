"""The bot speaks first: only to who said yes, only when it may.

decision    may an opener go out now? One pure function, and its rules
initiative  the acting around it: timers that are due, turns that begin, messages that leave
openers     what is worth taking up; schedules what the operator planned; welcome what newcomers hear
listening   the question for leave, and yes and no in many languages; care a crisis, recognised
reminders   a due one always reaches its person; appointments what is set is said, saying in which words
rescheduling  what a person does with a reminder: by button, by command, by_words
"""
