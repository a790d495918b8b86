"""The emulated SSD under every run: its size, its counters, and the replay of a trace on it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.demo.plan import Plan
from bench.demo.system import output_of
from bench.paths import BIN

SPARE = 0.07
SPARE_TOLERANCE = 0.005
OP = 0.005  # little: what the filesystem leaves free is the spare that counts
STREAMS = 8
RESERVE_BLOCKS = 12  # the emulator's own, beside --op
PAGE_BYTES = 4096


def user_bytes(plan: Plan) -> int:
    """Return the capacity at which ``plan.live_bytes`` leave an effective spare of SPARE."""
    physical = plan.live_bytes * (1 + SPARE) - RESERVE_BLOCKS * plan.pages_per_block * PAGE_BYTES
    return int(physical / (1 + OP)) >> 20 << 20


@dataclass(frozen=True)
class Counters:
    """What the device counted since the last reset."""

    written_bytes: int
    nand_bytes: int
    gc_bytes: int
    live_bytes: int
    peak_live_bytes: int
    physical_bytes: int
    p50_us: float
    p99_us: float
    p999_us: float

    @property
    def waf(self) -> float:
        """NAND bytes ÷ bytes the device was sent."""
        return self.nand_bytes / self.written_bytes if self.written_bytes else 1.0

    @property
    def effective_spare(self) -> float:
        """Physical pages ÷ peak live pages, less 1."""
        return self.physical_bytes / self.peak_live_bytes - 1

    @property
    def target_live_bytes(self) -> int:
        """The peak of live data at which the effective spare is SPARE."""
        return int(self.physical_bytes / (1 + SPARE))


class Ssd:
    """One image file."""

    def __init__(self, path: Path, plan: Plan) -> None:
        self.path = path
        size = str(user_bytes(plan))
        shape = ["--size", size, "--op", OP, "--streams", STREAMS]
        shape += ["--pages-per-block", plan.pages_per_block]
        output_of([BIN / "ssd-sim", "create", path, *map(str, shape)])
        self.pages_before_reset = 0  # ever written when the counters were last reset

    def counters(self) -> Counters:
        """Read the counters; the device may be in use."""
        raw: dict[str, Any] = json.loads(output_of([BIN / "ssd-sim", "info", self.path, "--json"]))
        device = raw.get("device", raw)
        latency = device["latency_us"]
        names = ("written", "nand", "gc", "live", "peak_live", "physical")
        sizes = {f"{name}_bytes": int(device[f"{name}_bytes"]) for name in names}
        return Counters(
            **sizes,
            p50_us=float(latency["p50"]),
            p99_us=float(latency["p99"]),
            p999_us=float(latency["p999"]),
        )

    def pages_written(self) -> int:
        """Return how many pages the device was ever sent."""
        return self.pages_before_reset + self.counters().written_bytes // PAGE_BYTES

    def reset(self) -> None:
        """Count anew; the peak of live data starts at what is live now."""
        self.pages_before_reset = self.pages_written()
        output_of([BIN / "ssd-sim", "reset-stats", self.path])


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
