"""The engine: what waits, whose turn it is, what goes out. It is handed the turn as a callable and knows nothing of the agent.

events       the values: an event, a claim with its fence, how a turn may end
settings     every duration and limit
inbox        the only way in: store, number, wake, in one transaction
queue        wake-ups by Procrastinate, at most one job per agent; ends only its own runs of jobs
worker       runs wake-ups: claim, turn, what becomes of it; stop and shutdown
turns        claims, and steps that commit through the fence
outbox       sends what waits, in order per channel, once
timers       due timers become events
upkeep       frees jobs of dead workers, wakes agents whose job was lost, cleans up
deadletters  events that were given up: list and replay
signals      within one process: who sends for which channel, which turn runs in which task
listen       notifications from other processes
loops        loops that outlive their errors
"""
