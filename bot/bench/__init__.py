"""What measures quality and speed, one module a benchmark, run by `bot bench NAME --data PATH`; loaded only when asked for.

The other modules are what the benchmarks share.
"""

NAMES = (
    "eviction",
    "footprint",
    "nested_kv",
    "prompt_growth",
    "retrieval",
    "search",
    "throughput",
    "turn_overhead",
)
"""The benchmarks; each has a `main(data: Path) -> int | None`."""
