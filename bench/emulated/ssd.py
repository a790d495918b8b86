"""The emulated SSD under every run: its size, and the replay of a trace on it."""

import json
from pathlib import Path

from bench.paths import BIN
from bench.programs.plan import Plan
from bench.ssd import PAGE_BYTES, Counters, Ssd
from bench.system import output_of

SPARE = 0.07
SPARE_TOLERANCE = 0.005
OP = 0.005  # little: what the filesystem leaves free is the spare that counts
STREAMS = 8
RESERVE_BLOCKS = 12  # ssd-sim's own, beside --op


def user_bytes(plan: Plan) -> int:
    """Return the capacity at which ``plan.live_bytes`` leave an effective spare of SPARE."""
    physical = plan.live_bytes * (1 + SPARE) - RESERVE_BLOCKS * plan.pages_per_block * PAGE_BYTES
    return int(physical / (1 + OP)) >> 20 << 20


def make_ssd(path: Path, plan: Plan, *more: str, plp: bool = True) -> Ssd:
    """Make the plan's device; ``more`` are options of ``ssd-sim create``."""
    options = {"--size": user_bytes(plan), "--op": OP, "--streams": STREAMS}
    options["--pages-per-block"] = plan.pages_per_block
    words = [str(word) for option in options.items() for word in option]
    return Ssd(path, *words, *more, "--plp" if plp else "--no-plp", paced=not plp)


def target_live_bytes(counters: Counters) -> int:
    """Return the peak of live data at which the effective spare is SPARE."""
    return int(counters.physical_bytes / (1 + SPARE))


def replay_waf(
    trace: Path, placement: str, physical_bytes: int, pages_per_block: int, warmup_share: float
) -> float:
    """Replay a trace on a device of the same shape; count only what follows the warm-up."""
    options = {
        "--placement": placement,
        "--edges": "best",  # of the oracle: the bound of the gap
        "--physical-pages": physical_bytes // PAGE_BYTES,
        "--pages-per-block": pages_per_block,
        "--warmup": f"{warmup_share:.6f}",
    }
    words = [str(word) for option in options.items() for word in option]
    answer = output_of([BIN / "ssd-sim", "replay", trace, *words, "--json"])
    return float(json.loads(answer)["waf"])
