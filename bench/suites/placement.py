"""Write amplification of what is learned, beside the field's policies and oracles."""

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bench.paths import VENV_BIN
from bench.system import BenchError
from bench.table import Row, Target, main, row

SPARE, STREAMS, GC_MODE = 0.07, 8, "same"
LIVE_PAGES = 1 << 18  # 1 GiB
WRITES_A_PAGE = 10
# Designing on a workload and reporting on it is not testing. Settings were chosen on the first set;
# what the second shows is reported and changes none of them.
DEVELOPMENT = ("log-tail-mix", "whole-files", "hot-cold", "sequential")
TEST = ("fio4", "emmc3", "vstream64", "zipf", "shifting", "rocksdb-levels", "logs-only")
# The seeds' own jobs: nothing need be copied where lifetimes are known.
SEEDS_JOBS = {"fio4", "emmc3", "vstream64"}
UNHINTED, HINTED = Target(1.05), Target(1.02)
GAP_CLOSED, WORTH_A_GAP = 0.85, 0.05
RIVALS = ("sepgc", "sepbit")
POLICIES = ("nosep", *RIVALS, "life-table", "logistic", "learned", "oracle", "oracle-host")


@dataclass(frozen=True)
class Replays:
    """One workload, with hints or without, under every policy: WAF by seed."""

    workload: str
    waf: dict[str, list[float]]

    def mean(self, policy: str) -> float:
        """Return the mean over the seeds."""
        return statistics.fmean(self.waf[policy])

    @property
    def gap(self) -> float:
        """What the best oracle found would save, in pages copied for one written."""
        return self.mean("nosep") - min(self.mean("oracle"), self.mean("oracle-host"))

    def closed(self, policy: str) -> float:
        """Return the share of the gap that a policy closes."""
        return (self.mean("nosep") - self.mean(policy)) / self.gap


def replay(workload: str, seeds: Sequence[int], pages: int, *, hints: bool) -> Replays:
    """Replay a workload that is generated, once for each seed."""
    waf: dict[str, list[float]] = {policy: [] for policy in POLICIES}
    for seed in seeds:
        size = ["--live", str(pages), "--pages", str(WRITES_A_PAGE * pages)]
        found = run(workload, "--seed", str(seed), *size, *([] if hints else ["--no-hints"]))
        for policy in POLICIES:
            waf[policy].append(found["policies"][policy]["waf"])
    return Replays(workload, waf)


def run(workload: str, *options: str) -> dict[str, Any]:
    """Return what classifierd replay says."""
    words = [str(VENV_BIN / "classifierd"), "replay", workload, "--json", "--gc", GC_MODE]
    words += ["--streams", str(STREAMS), "--spare", str(SPARE)]
    words += ["--policies", ",".join(POLICIES), *options]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        msg = f"{workload}: {done.stderr.strip()}"
        raise BenchError(msg)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def measure(quick: bool) -> list[Row]:
    """Return every row."""
    seeds = (1,) if quick else (1, 2, 3, 4, 5)
    pages = LIVE_PAGES // 4 if quick else LIVE_PAGES
    rows: list[Row] = []
    for hints in (False, True):
        label = "labels" if hints else "no hints"
        tested = [replay(name, seeds, pages, hints=hints) for name in TEST]
        for replays in tested:
            rows += rows_of(replays, label, SEEDS_JOBS, HINTED if hints else UNHINTED)
        gaps = [one for one in tested if one.gap >= WORTH_A_GAP]
        mean = statistics.fmean(one.closed("learned") for one in gaps)
        target = Target(GAP_CLOSED, at_least=True)
        rows.append(row(f"test set, {label}: mean gap closed by learned", mean, "", target))
    for name in DEVELOPMENT:
        rows += rows_of(replay(name, seeds, pages, hints=True), "development", set(), HINTED)
    return rows


def rows_of(replays: Replays, label: str, jobs: set[str], limit: Target) -> Iterator[Row]:
    """Yield a workload's figures."""
    name = f"{replays.workload}, {label}"
    for policy in POLICIES:
        values = replays.waf[policy]
        held = limit if policy == "learned" and replays.workload in jobs else None
        spread = f"WAF, {min(values):.3f} to {max(values):.3f}"
        yield row(f"{name}: {policy}", replays.mean(policy), spread, held)
    if replays.gap < WORTH_A_GAP:
        return
    yield row(f"{name}: gap closed by learned", replays.closed("learned"), "")
    best_rival = max(replays.closed(rival) for rival in RIVALS)
    ahead = replays.closed("learned") - best_rival
    yield row(f"{name}: ahead of SepGC and SepBIT", ahead, "", Target(0, at_least=True))


if __name__ == "__main__":
    sys.exit(main("placement", __doc__.splitlines()[0], measure))
