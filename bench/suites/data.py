"""The data path without FUSE and with a device that does nothing: what streamfs itself costs.

Rows of IntentLoggedAppend4KiB name how many nanoseconds META takes to program a line; 0 is DRAM.
"""

import sys

from bench.google import run
from bench.table import Row, Target, main, row

# Target: placement on a write, the table only.
ROUTE_NS = 100


def measure(quick: bool) -> list[Row]:
    """Return one row a benchmark: CPU time, and how much it moves."""
    rows = []
    for name, measured in run("data_bench", quick).items():
        target = Target(ROUTE_NS) if name == "RoutePage" else None
        rows.append(row(f"{name}: CPU time", measured.cpu_ns, "ns", target))
        if fences := measured.counters.get("fences"):
            rows.append(row(f"{name}: fences of META", fences, "each"))
        if speed := measured.counters.get("bytes_per_second"):
            rows.append(row(f"{name}: speed", speed / (1 << 30), "GiB/s"))
    return rows


if __name__ == "__main__":
    sys.exit(main("data", __doc__.splitlines()[0], measure))
