"""The effect of trims and idle time on an emulated SSD: erases, NAND bytes, latency."""

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.foreground import Noticed, noticed
from bench.paths import BIN, ROOT
from bench.system import output_of
from bench.table import Row, Target, main, ratio, row

# The source (Kim 2015): random write +25 % and lifetime +8 % by trims at all, +10 % and +13 % by
# trims aligned to what the device maps over ones that are not, 2.73 times by background work.
TRIM, TRIM_LIFE, ALIGNED, ALIGNED_LIFE, BACKGROUND = 1.25, 1.08, 1.10, 1.13, 2.73
NAND_MOST, P99_MOST = 1.05, 1.1
UNIT = "16K"
UTILISATIONS = (0.7, 0.9, 0.97)
BURSTS = ("2M", "4M", "8M", "16M", "64M")
IDLE_SECONDS = (0.01, 0.1, 2.0)
SKEWED = ("--hot-writes", "0.8", "--hot-space", "0.2")
PICTURE = ROOT / "build" / "maintain.png"


@dataclass(frozen=True)
class Device:
    """A device's counters, on its virtual clock."""

    mb_per_s: float
    p99_us: float
    p999_us: float
    nand_bytes: float
    erases: float
    written_bytes: float


@dataclass(frozen=True)
class Point:
    """The same bursts with the idle time used and not."""

    utilisation: float
    burst: str
    idle_seconds: float
    skewed: bool
    on: Device
    off: Device

    @property
    def name(self) -> str:
        """Its name in the table."""
        kind = "80 % of writes to 20 %" if self.skewed else "uniform"
        return f"{100 * self.utilisation:g} % full, {kind}, bursts of {self.burst}"

    @property
    def speed(self) -> float:
        """Random writes with idle work ÷ without."""
        return self.on.mb_per_s / self.off.mb_per_s

    @property
    def nand(self) -> float:
        """NAND bytes with idle work ÷ without."""
        return self.on.nand_bytes / self.off.nand_bytes

    @property
    def p99(self) -> float:
        """The 99th percentile of writes with idle work ÷ without."""
        return self.on.p99_us / self.off.p99_us


def simulate(image: Path, *words: str | float) -> dict[str, Any]:
    """Run the device; its figures."""
    command: list[str | Path] = [BIN / "maintain_device", "--image", image, *map(str, words)]
    figures: dict[str, Any] = json.loads(output_of(command))
    return figures


def device(figures: dict[str, Any], speed: str = "simulated_mb_per_s") -> Device:
    """Take out of the figures what is compared."""
    latency = figures["latency_us"]
    return Device(
        mb_per_s=figures[speed],
        p99_us=latency["p99"],
        p999_us=latency["p999"],
        nand_bytes=figures["nand_bytes"],
        erases=figures["erases"],
        written_bytes=figures["written_bytes"],
    )


def measure(quick: bool) -> list[Row]:
    """Return every row, and draw them."""
    with tempfile.TemporaryDirectory(prefix="streamfs-maintain.") as folder:
        image = Path(folder) / "ssd"
        found = trims(image, quick)
        points = list(idle_work(image, quick))
        beside = list(on_a_mount(Path(folder), quick))
    draw(PICTURE, found, points)
    return [*trim_rows(found), *point_rows(points), *beside]


def trims(image: Path, quick: bool) -> dict[str, Device]:
    """Files come and go beside a database that is overwritten, on a device that maps 16 KiB."""
    size = ("--size", "128M", "--write", "512M") if quick else ("--size", "512M", "--write", "4G")
    kinds = ("none", "misaligned", "joined", "aligned")
    return {
        kind: device(
            simulate(image, *size, "--unit", UNIT, "trim", "--trims", kind), "overwrite_mb_per_s"
        )
        for kind in kinds
    }


def trim_rows(found: dict[str, Device]) -> Iterator[Row]:
    """Yield how much faster random writes are, and how many fewer erases a written byte costs."""
    pairs = (
        ("aligned trims ÷ none", "aligned", "none", TRIM, TRIM_LIFE),
        ("misaligned trims ÷ none", "misaligned", "none", None, None),
        ("aligned trims ÷ misaligned", "aligned", "misaligned", ALIGNED, ALIGNED_LIFE),
        ("misaligned, leftovers joined ÷ misaligned", "joined", "misaligned", None, None),
    )
    for name, ours, others, speed, life in pairs:
        a, b = found[ours], found[others]
        target = None if speed is None else Target(speed, at_least=True)
        yield row(f"{name}: random writes", a.mb_per_s / b.mb_per_s,
                  f"{a.mb_per_s:.0f} to {b.mb_per_s:.0f} MB/s", target)  # fmt: skip
        target = None if life is None else Target(life, at_least=True)
        yield row(f"{name}: lifetime", wear(b) / wear(a), "erases a byte, inverse", target)


def wear(of: Device) -> float:
    """Return erases a written byte."""
    return of.erases / of.written_bytes


def idle_work(image: Path, quick: bool) -> Iterator[Point]:
    """Yield bursts over utilisation, size and idle time; skewed ones at one utilisation."""
    size = ("--size", "128M", "--write", "256M") if quick else ("--size", "256M", "--write", "1G")
    bursts = ("2M", "16M") if quick else BURSTS
    for skewed, utilisations in ((False, UTILISATIONS), (True, (0.9,))):
        more = SKEWED if skewed else ()
        for utilisation in (0.9,) if quick else utilisations:
            for burst in bursts:
                words = (*size, "idle", "--utilisation", utilisation, "--burst", burst, *more)
                off = device(simulate(image, *words, "--off", "--idle", IDLE_SECONDS[-1]))
                for idle in IDLE_SECONDS[-1:] if quick or skewed else IDLE_SECONDS:
                    on = device(simulate(image, *words, "--idle", idle))
                    yield Point(utilisation, burst, idle, skewed, on, off)


def point_rows(points: Sequence[Point]) -> Iterator[Row]:
    """Yield each point's speed; of NAND bytes and latency the worst."""
    longest = max(each.idle_seconds for each in points)
    for each in points:
        small = each.burst == "2M" and each.idle_seconds == longest and not each.skewed
        target = Target(BACKGROUND, at_least=True) if small and each.utilisation >= 0.9 else None
        erases = each.on.erases / each.off.erases
        unit = f"x; {each.off.mb_per_s:.0f} MB/s without; NAND {each.nand:.3f}, erases {erases:.3f}"
        yield row(f"{each.name}, idle {each.idle_seconds:g} s: writes", each.speed, unit, target)
    dearest = max(points, key=lambda each: each.nand)
    yield row("NAND bytes with idle work ÷ without, worst", dearest.nand, dearest.name,
              Target(NAND_MOST))  # fmt: skip
    slowest = max(points, key=lambda each: each.p99)
    yield row("p99 of writes with idle work ÷ without, worst", slowest.p99, slowest.name,
              Target(P99_MOST))  # fmt: skip
    best = min(each.on.p999_us / each.off.p999_us for each in points)
    yield row("p99.9 of writes with idle work ÷ without, best", best, "")


def on_a_mount(folder: Path, quick: bool) -> Iterator[Row]:
    """Yield what programs notice of all that at the pace of flash, by turns with and without."""
    rounds, bursts = (1, 8) if quick else (5, 40)
    kinds = (False, True)
    found = {kind: list[Noticed]() for kind in kinds}
    for _ in range(rounds):
        for kind in kinds:
            found[kind].append(noticed(folder, bursts, maintained=kind))
    for name, value, limit in (
        ("p50 of writes", "p50_us", None),
        ("p99 of writes", "p99_us", Target(P99_MOST)),
        ("NAND bytes", "nand_bytes", Target(NAND_MOST)),
    ):
        without, with_it = ([getattr(each, value) for each in found[kind]] for kind in kinds)
        label = f"a mount, bursts of 1 MiB: {name} with maintenance ÷ without"
        yield ratio(label, with_it, without, limit)


def draw(path: Path, found: dict[str, Device], points: Sequence[Point]) -> None:
    """Draw random writes by trims, and by idle work over the burst."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, (left, middle, right) = pyplot.subplots(
        1, 3, figsize=(15, 4.4), layout="constrained", width_ratios=(1, 1.5, 1.5)
    )
    bars = left.bar(list(found), [each.mb_per_s for each in found.values()], width=0.62,
                    color=["#8c8c8c", "#c9a227", "#2a7f9e", "#1d9a6c"])  # fmt: skip
    left.bar_label(bars, fmt="%.0f", padding=2)
    left.set_title("Random overwrites by kind of trims")
    left.set_ylabel("MB/s, virtual clock")
    longest = max(each.idle_seconds for each in points)
    for axes, name, title, limit in (
        (middle, "speed", "Random writes, idle work ÷ none", BACKGROUND),
        (right, "nand", "NAND bytes, idle work ÷ none", NAND_MOST),
    ):
        for utilisation, skewed in sorted({(each.utilisation, each.skewed) for each in points}):
            line = [
                each
                for each in points
                if (each.utilisation, each.skewed) == (utilisation, skewed)
                and each.idle_seconds == longest
            ]
            label = f"{100 * utilisation:g} % full" + (", skewed" if skewed else "")
            axes.plot([each.burst for each in line], [getattr(each, name) for each in line], "o-",
                      label=label)  # fmt: skip
        axes.axhline(limit, color="#b03060", linestyle="--", linewidth=1)
        axes.set_title(title)
        axes.set_xlabel("burst, bytes written between idle times")
        axes.legend(frameon=False)
    for axes in (left, middle, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.margins(y=0.14)
    figure.suptitle(f"Emulated SSD, dashed: the source's figure or the limit; {longest:g} s idle")
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


if __name__ == "__main__":
    sys.exit(main("maintain", __doc__.splitlines()[0], measure))
