"""What is waiting, whose turn it is, what goes out.

`events` fixes the values, `inbox` accepts, `turns` claims and fences, `worker` runs turns, `outbox` sends, `timers` makes events of
due timers, `upkeep` reaps and sweeps. The worker is handed the turn as a callable, so nothing here imports the agent.
"""
