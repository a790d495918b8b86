"""Write amplification of what is learned, beside the field's policies and oracles."""

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.captures import WORKS, capture, why_not
from bench.emulated.ssd import RESERVE_BLOCKS
from bench.google import run as run_google
from bench.paths import BIN, VENV_BIN
from bench.ssd import PAGE_BYTES
from bench.system import BenchError, output_of
from bench.table import Row, Target, main, row, unavailable

SPARE, STREAMS, GC_MODE = 0.07, 8, "same"
LIVE_PAGES = 1 << 18  # 1 GiB, of what is generated
WRITES_A_PAGE = 10
# Designing on a workload and reporting on it is not testing. The generated workloads existed while
# the models were made. The writes of real programs (captures.WORKS) are recorded anew in each run,
# show what the models are worth, and change no setting.
DEVELOPMENT = (
    *("fio4", "emmc3", "vstream64", "zipf", "shifting", "rocksdb-levels", "sequential"),
    *("log-tail-mix", "whole-files", "logs-only", "hot-cold"),
)
# 10 % of a core at 50,000 pages a second is 2 µs a page.
JUDGE_NS, LEARN_NS, TELL_NS = 500, 2000, 40
UNHINTED, HINTED, NEVER_WORSE = Target(1.05), Target(1.02), Target(1)
SOURCE_CAPACITIES = 24  # written: what was mixed while nothing was known must have died
GAP_CLOSED, GAP_CLOSED_HINTED, GAP_CLOSED_REVIEWED, WORTH_A_GAP = 0.85, 0.92, 0.95, 0.05
RIVALS = ("sepgc", "sepbit")
POLICIES = ("nosep", *RIVALS, "life-table", "logistic", "learned", "oracle", "oracle-host")
# On the test set also: ours in a device that looks again at what it copies, and an oracle that
# knows the lifetimes of all writes but the one that it places (streamfs_lab/hindsight.py).
REVIEWED, OTHERS = "learned-in-device", "oracle-leave-one-out"
TESTED = (*POLICIES, REVIEWED, OTHERS)
ON_SOURCES = ("nosep", "life-table", "learned", "oracle", "oracle-host")
LABELS = {False: "no labels", True: "labels"}
# scikit-learn's estimators on the same writes, and the source's own idea.
ESTIMATED = ("sk-kmeans", "sk-minibatch", "sk-gmm", "sk-sgd", "sk-histgb", "chunk-kmeans")


@dataclass(frozen=True)
class Source:
    """A published job on its source's device (ssd-sim list), smaller: nothing need be copied."""

    workload: str
    preset: str
    scale: str
    fill: float = 1  # of what the host sees


SOURCES = (
    Source("fio4", "enterprise-fdp", "1/512"),
    Source("emmc3", "emmc-64g", "1/64", 0.88),
    Source("vstream64", "vstream-256g", "1/256"),
)


@dataclass(frozen=True)
class Replays:
    """A workload, with labels or without, under every policy: WAF by seed."""

    workload: str
    waf: dict[str, list[float]]

    def add(self, figures: dict[str, Any]) -> None:
        """Add one seed's."""
        for policy, values in self.waf.items():
            values.append(figures["policies"][policy]["waf"])

    def mean(self, policy: str) -> float:
        """Return the mean over the seeds."""
        return statistics.fmean(self.waf[policy])

    @property
    def gap(self) -> float:
        """The saving of the best oracle found, in pages copied for one written."""
        return self.mean("nosep") - min(self.mean("oracle"), self.mean("oracle-host"))

    def closed(self, policy: str) -> float:
        """Return the share of the gap that a policy closes."""
        return (self.mean("nosep") - self.mean(policy)) / self.gap


def generated(
    workload: str,
    seeds: Sequence[int],
    pages: int,
    *,
    hints: bool,
    policies: Sequence[str] = POLICIES,
    capacities: int = WRITES_A_PAGE,
    device: Sequence[str] = (),
) -> Replays:
    """Replay a workload that is generated, once for each seed."""
    found = Replays(workload, {policy: [] for policy in policies})
    for seed in seeds:
        size = ["--live", str(pages), "--pages", str(capacities * pages), *device]
        more = ["--seed", str(seed), *size, *_hints(said=hints)]
        found.add(run(workload, *more, policies=policies))
    return found


def captured(work: str, seeds: Sequence[int]) -> tuple[Replays, Replays]:
    """Record what real programs write, once for each seed; replay it without contexts and with."""
    bare, full = (Replays(work, {policy: [] for policy in TESTED}) for _ in range(2))
    for seed in seeds:
        with capture(work, seed) as recorded:
            known = ["--vstreams", str(recorded.vstreams)]
            bare.add(run(str(recorded.trace), *_hints(said=False), policies=TESTED))
            full.add(run(str(recorded.trace), *known, policies=TESTED))
    return bare, full


def _hints(*, said: bool) -> list[str]:
    return [] if said else ["--no-hints"]


def run(workload: str, *options: str, policies: Sequence[str] = POLICIES) -> dict[str, Any]:
    """Return what streamfs-lab replay says."""
    words = [str(VENV_BIN / "streamfs-lab"), "replay", workload, "--json", "--gc", GC_MODE]
    words += ["--streams", str(STREAMS), "--spare", str(SPARE)]
    words += ["--policies", ",".join(policies), *options]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        msg = f"{workload}: {done.stderr.strip()}"
        raise BenchError(msg)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def measure(quick: bool) -> list[Row]:
    """Return every row."""
    seeds = (1,) if quick else (1, 2, 3, 4, 5)
    tested, developed = of_test_set(seeds, quick), of_development_set(seeds, quick)
    sources = of_sources(seeds, quick)
    return [*costs(quick), *tested, *sources, *developed, *of_estimators(quick)]


def costs(quick: bool) -> Iterator[Row]:
    """Yield what a page costs: to be judged, to be learned from, to be told of."""
    targets = {"JudgePage": JUDGE_NS, "JudgeAndLearnPage/1": LEARN_NS, "TelemetryRecord": TELL_NS}
    for name, measured in run_google("learning_bench", quick).items():
        limit = Target(targets[name]) if name in targets else None
        yield row(f"{name}: CPU time", measured.cpu_ns, "ns", limit)


def of_test_set(seeds: Sequence[int], quick: bool) -> Iterator[Row]:
    """Yield what real programs' writes come to."""
    works = {work: why_not(work) for work in (("SQLite", "logs") if quick else WORKS)}
    yield from (unavailable(work, reason) for work, reason in works.items() if reason)
    tested = [captured(work, seeds) for work, reason in works.items() if not reason]
    labels = ("addresses only", "contexts")
    for at, target in enumerate((GAP_CLOSED, GAP_CLOSED_HINTED)):
        replays = [pair[at] for pair in tested]
        for one in replays:
            yield from rows_of(one, labels[at])
        wide = [one for one in replays if one.gap >= WORTH_A_GAP]
        limits = {"learned": target, REVIEWED: GAP_CLOSED_REVIEWED, OTHERS: None}
        limits["oracle-host"] = None
        for policy, least in limits.items() if wide else ():
            mean = statistics.fmean(one.closed(policy) for one in wide)
            limit = Target(least, at_least=True) if least is not None else None
            yield row(f"test set, {labels[at]}: mean gap closed by {policy}", mean, "", limit)


def of_sources(seeds: Sequence[int], quick: bool) -> Iterator[Row]:
    """Yield what published jobs come to where they were published, without labels and with them."""
    for source in SOURCES[1:] if quick else SOURCES:
        live, device = device_of(source)
        replayed = partial(
            generated, policies=ON_SOURCES, capacities=SOURCE_CAPACITIES, device=device
        )
        for hints, limit in ((False, UNHINTED), (True, HINTED)):
            found = replayed(source.workload, seeds, live, hints=hints)
            yield from wafs_of(found, f"on {source.preset}, {LABELS[hints]}", limit)


def device_of(source: Source) -> tuple[int, list[str]]:
    """Return the pages that live on a source's device, and that device as options of a replay."""
    with tempfile.TemporaryDirectory() as folder:
        image = Path(folder) / "made.ssd"
        shape = ["--preset", source.preset, "--scale", source.scale]
        output_of([BIN / "ssd-sim", "create", image, *shape])
        made = json.loads(output_of([BIN / "ssd-sim", "info", image, "--json"]))
    block = made["pages_per_block"]
    live = int(source.fill * made["user_bytes"] / PAGE_BYTES)
    spare = (made["blocks"] - RESERVE_BLOCKS) * block / live - 1
    words = ["--spare", f"{spare:.6f}", "--block-pages", str(block), "--gc", made["gc_mode"]]
    return live, [*words, "--streams", str(made["stream_count"])]


def of_development_set(seeds: Sequence[int], quick: bool) -> Iterator[Row]:
    """Yield what is generated comes to, without labels and with them."""
    pages = LIVE_PAGES // 4 if quick else LIVE_PAGES
    for name in DEVELOPMENT:
        for hints in (False, True):
            found = generated(name, seeds, pages, hints=hints)
            yield from rows_of(found, LABELS[hints])


def of_estimators(quick: bool) -> Iterator[Row]:
    """Yield what scikit-learn's estimators close of the gap in our place: one seed, no labels."""
    pages = LIVE_PAGES // 16 if quick else LIVE_PAGES // 4
    policies = ("nosep", "logistic", *ESTIMATED, "learned", "oracle", "oracle-host")
    names = ("log-tail-mix",) if quick else DEVELOPMENT
    found = [generated(name, (1,), pages, hints=False, policies=policies) for name in names]
    wide = [replays for replays in found if replays.gap >= WORTH_A_GAP]
    for policy in ("logistic", *ESTIMATED):
        for replays in wide:
            yield row(f"{replays.workload}: gap closed by {policy}", replays.closed(policy), "")
        mean = statistics.fmean(replays.closed(policy) for replays in wide)
        yield row(f"development set: mean gap closed by {policy}", mean, "")


def wafs_of(replays: Replays, label: str, limit: Target | None = None) -> Iterator[Row]:
    """Yield a workload's WAF under each policy; `limit` is what is learned's."""
    for policy, values in replays.waf.items():
        held = limit if policy == "learned" else None
        spread = f"WAF, {min(values):.3f} to {max(values):.3f}"
        yield row(f"{replays.workload}, {label}: {policy}", replays.mean(policy), spread, held)


def rows_of(replays: Replays, label: str) -> Iterator[Row]:
    """Yield a workload's figures."""
    name = f"{replays.workload}, {label}"
    yield from wafs_of(replays, label)
    beside = replays.mean("learned") / replays.mean("nosep")
    yield row(f"{name}: learned ÷ no separation", beside, "WAF", NEVER_WORSE)
    if replays.gap < WORTH_A_GAP:
        return
    yield row(f"{name}: gap closed by learned", replays.closed("learned"), "")
    best_rival = max(replays.closed(rival) for rival in RIVALS)
    ahead = replays.closed("learned") - best_rival
    yield row(f"{name}: ahead of SepGC and SepBIT", ahead, "", Target(0, at_least=True))


if __name__ == "__main__":
    sys.exit(main("placement", __doc__.splitlines()[0], measure))
