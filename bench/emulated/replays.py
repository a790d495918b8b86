"""The trace of a run without streams, replayed: the ends of the gap that placement can close."""

from dataclasses import dataclass
from pathlib import Path

from bench.emulated.run import Outcome
from bench.emulated.ssd import replay_waf
from bench.programs.plan import Plan


@dataclass(frozen=True)
class Replays:
    """WAF of one trace on a device of the same size: unseparated, with a GC frontier, the bound."""

    nosep_waf: float
    sepgc_waf: float
    oracle_waf: float


def replay(outcome: Outcome, trace: Path, plan: Plan) -> Replays:
    """Replay a run's trace the three ways the table needs."""
    physical, share = outcome.counters.physical_bytes, outcome.warmup_share
    nosep, sepgc, oracle = (
        replay_waf(trace, name, physical, plan.pages_per_block, share)
        for name in ("nosep", "sepgc", "oracle")
    )
    return Replays(nosep, sepgc, oracle)


def share_closed(start: float, here: float, end: float) -> float | None:
    """Return which share of the way from ``start`` to ``end`` is done; None if there is none."""
    return (start - here) / (start - end) if start > end else None
