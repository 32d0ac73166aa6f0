"""What measures quality and speed, loaded only when asked for: `bot bench NAME --data PATH`.

`bot/cli/bench.py` names the benchmarks; each has `main(data)`, or `main(loaded)`, which prints its figures and returns the exit code. Beside them:

    stage    servers of their own, the bot's services on them, agents driven by hand
    running  the whole bot in this process, with a stopwatch for an adapter
    model    the instant or scripted model server
    sizes    how large prompts are, and what of them was seen before
    bulk     large stores in short time
    bare     the bare program that ours is measured against
"""
