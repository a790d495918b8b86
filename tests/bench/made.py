"""Runs of the emulated SSD that never were, for what is made of their figures."""

from bench.emulated.replays import Replays
from bench.emulated.run import Outcome
from bench.ssd import Counters

GIB = 1 << 30
REPLAYS = Replays(nosep_waf=2.0, sepgc_waf=1.5, oracle_waf=1.0)


def outcome(way: str, nand_gib: float, *, spare: float = 0.07, seconds: float = 10) -> Outcome:
    """An outcome whose programs asked for a GiB, which the device was sent unchanged."""
    nand = int(nand_gib * GIB)
    counters = Counters(
        written_bytes=GIB,
        nand_bytes=nand,
        gc_bytes=nand - GIB,
        live_bytes=GIB,
        peak_live_bytes=GIB,
        physical_bytes=int((1 + spare) * GIB),
        p50_us=1,
        p99_us=2,
        p999_us=3,
        erases=7,
        mb_per_s=GIB / 1e6 / seconds,
    )
    return Outcome(way, "synced", GIB, counters, None, 0)
