"""An emulated SSD's image, and what the device counts."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.paths import BIN
from bench.system import output_of

PAGE_BYTES = 4096


@dataclass(frozen=True)
class Counters:
    """The device's counters since the last reset."""

    written_bytes: int
    nand_bytes: int
    gc_bytes: int
    live_bytes: int
    peak_live_bytes: int
    physical_bytes: int
    p50_us: float
    p99_us: float
    p999_us: float
    idle_gc_bytes: int = 0  # of gc_bytes, in idle time
    pad_bytes: int = 0  # programmed because a flush could not wait for a full wordline
    read_bytes: int = 0
    erases: int = 0
    flushes: int = 0
    mb_per_s: float = 0.0  # of host bytes, written and read, on the saturated virtual clock

    @property
    def saturated_seconds(self) -> float:
        """How long the device would have been busy, had the host never waited."""
        moved = (self.written_bytes + self.read_bytes) / 1e6
        return moved / self.mb_per_s if self.mb_per_s else 0.0

    @property
    def gc_waf(self) -> float:
        """WAF without padding: what copies alone come to."""
        return (
            (self.nand_bytes - self.pad_bytes) / self.written_bytes if self.written_bytes else 1.0
        )

    @property
    def waf(self) -> float:
        """NAND bytes ÷ bytes the device was sent."""
        return self.nand_bytes / self.written_bytes if self.written_bytes else 1.0

    @property
    def effective_spare(self) -> float:
        """Physical pages ÷ peak live pages, less 1."""
        return self.physical_bytes / self.peak_live_bytes - 1


class Ssd:
    """An image file."""

    def __init__(self, path: Path, *options: str | float, paced: bool = False) -> None:
        """Make it; the options are those of ``ssd-sim create``. Paced: slow as its flash is.

        Victims are greedy, as in every recorded figure.
        """
        self.path = path
        self.paced = paced
        output_of([BIN / "ssd-sim", "create", path, "--victim", "greedy", *map(str, options)])
        self.pages_before_reset = 0  # ever written when the counters were last reset

    def counters(self) -> Counters:
        """Read the counters; the device may be in use."""
        raw: dict[str, Any] = json.loads(output_of([BIN / "ssd-sim", "info", self.path, "--json"]))
        device = raw.get("device", raw)
        latency = device["latency_us"]
        names = ("written", "nand", "gc", "live", "peak_live", "physical", "pad", "read", "idle_gc")
        sizes = {f"{name}_bytes": int(device[f"{name}_bytes"]) for name in names}
        return Counters(
            **sizes,
            p50_us=float(latency["p50"]),
            p99_us=float(latency["p99"]),
            p999_us=float(latency["p999"]),
            erases=int(device["erases"]),
            flushes=int(device["flushes"]),
            mb_per_s=float(device["simulated_mb_per_s"] or 0),
        )

    def user_bytes(self) -> int:
        """Return the capacity that the host sees."""
        return int(
            json.loads(output_of([BIN / "ssd-sim", "info", self.path, "--json"]))["user_bytes"]
        )

    def pages_written(self) -> int:
        """Return how many pages the device was ever sent."""
        return self.pages_before_reset + self.counters().written_bytes // PAGE_BYTES

    def reset(self) -> None:
        """Count anew; the peak of live data starts at what is live now."""
        self.pages_before_reset = self.pages_written()
        output_of([BIN / "ssd-sim", "reset-stats", self.path])
