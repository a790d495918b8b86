"""The share of the learned gain owed to a page's place in its request, on servers' writes."""

import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.captures import capture, why_not
from bench.suites.placement import WORTH_A_GAP, Replays, run
from bench.table import Row, main, row, unavailable

WORKS = ("MariaDB", "etcd", "SQLite WAL")
TOLD = ("addresses only", "contexts")
LEARNED = ("life-table", "logistic", "learned")
POLICIES = ("nosep", *LEARNED, "oracle", "oracle-host")


@dataclass(frozen=True)
class Pair:
    """The same pages with the place in the request known, and each as a request of its own."""

    seen: Replays
    blind: Replays

    def share(self, policy: str) -> float | None:
        """Return which share of what the policy saves would be lost; None if it saves nothing."""
        saved = self.seen.mean("nosep") - self.seen.mean(policy)
        lost = self.blind.mean(policy) - self.seen.mean(policy)
        return lost / saved if saved > 0 else None


def measure(quick: bool) -> list[Row]:
    """Return every row."""
    seeds, works = ((1,), ("SQLite WAL",)) if quick else ((1, 2, 3), WORKS)
    return [each for work in works for each in of_work(work, seeds)]


def of_work(work: str, seeds: Sequence[int]) -> Iterator[Row]:
    """Yield what a work's recordings come to."""
    if reason := why_not(work):
        yield unavailable(work, reason)
        return
    for told, pair in recorded(work, seeds).items():
        yield from rows_of(f"{work}, {told}", pair)


def recorded(work: str, seeds: Sequence[int]) -> dict[str, Pair]:
    """Record a work once for each seed; replay it with requests and without."""
    found = {told: Pair(_nothing(work), _nothing(work)) for told in TOLD}
    for seed in seeds:
        with capture(work, seed) as made:
            trace, vstreams = str(made.trace), str(made.vstreams)
            known = {"addresses only": ["--no-hints"], "contexts": ["--vstreams", vstreams]}
            for told, pair in found.items():
                pair.seen.add(run(trace, *known[told]))
                pair.blind.add(run(trace, *known[told], "--no-requests"))
    return found


def _nothing(work: str) -> Replays:
    return Replays(work, {policy: [] for policy in POLICIES})


def rows_of(name: str, pair: Pair) -> Iterator[Row]:
    """Yield the figures of one pair; gaps are closed to the same oracle, with or without places."""
    gap = pair.seen.gap
    yield row(f"{name}: gap", gap, "pages copied for one written")
    for policy in LEARNED:
        for label, replays in (("END known", pair.seen), ("END blinded", pair.blind)):
            values = replays.waf[policy]
            spread = f"WAF, {min(values):.3f} to {max(values):.3f}"
            yield row(f"{name}: {policy}, {label}", statistics.fmean(values), spread)
            if gap >= WORTH_A_GAP:
                yield row(f"{name}: gap closed by {policy}, {label}", replays.closed(policy), "")
        share = pair.share(policy) if gap >= WORTH_A_GAP else None
        if share is None:
            yield unavailable(f"{name}: END's share of what {policy} saves", "nothing is saved")
        else:
            verdict = "END holds" if share > 0 else "END does not hold"
            yield row(f"{name}: END's share of what {policy} saves", share, verdict)


if __name__ == "__main__":
    sys.exit(main("end", __doc__.splitlines()[0], measure))
