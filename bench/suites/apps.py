"""NAND bytes per application byte of real programs: ext4, XFS, streamfs without streams and with.

SQLite, RocksDB and PostgreSQL, each alone and all mixed with file churn, on emulated SSDs at 7 %
effective spare, with power-loss protection and without. META is a file on the disk (synced), or
memory that is declared persistent or trusted: that emulates persistent memory.

Exit codes: 0 all is measured (a target that was missed is shown as missed), 1 something failed,
2 usage, 3 a run is void, 130 interrupted.
"""

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

from bench.applications.figures import Cell, Run, rows_of
from bench.applications.report import draw, print_cell
from bench.applications.rows import CONTROLS, QUICK_ROWS, ROWS, WAYS
from bench.emulated.controls import META
from bench.emulated.folders import fresh_folders
from bench.emulated.replays import replay
from bench.emulated.run import Job, run
from bench.loop import why_not
from bench.paths import ROOT
from bench.system import BenchError
from bench.table import to_json
from rich.console import Console

PROGRAMS = (
    "sqlite3",
    "db_bench",
    "pgbench",
    "mkfs.ext4",
    "mkfs.xfs",
    "xfs_io",
    "xfs_db",
    "losetup",
)
OUTPUT = ROOT / "build" / "apps"
SEEDS = 5
TRIES = 2  # of a run that is void
EXIT_VOID, EXIT_INTERRUPTED = 3, 130
LOG_COLUMNS = 140
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PROTECTION = {"with": (True,), "without": (False,), "both": (True, False)}

Say = Callable[[str], None]


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="bench/apps", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three rows, one seed, with PLP")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    parser.add_argument("--png", type=Path, metavar="FILE", help="the picture")
    parser.add_argument("--seeds", type=int, metavar="N", help=f"so many seeds ({SEEDS})")
    parser.add_argument("--rows", metavar="A,B", help=f"of {','.join(ROWS)}")
    parser.add_argument("--ways", metavar="A,B", help=f"of {','.join(WAYS)}")
    parser.add_argument("--meta", metavar="A,B", help=f"of {','.join(META)} (synced)")
    parser.add_argument("--plp", choices=PROTECTION, help="power-loss protection (both)")
    options = parser.parse_args(arguments)
    options.rows = _chosen(parser, options.rows, ROWS, QUICK_ROWS if options.quick else ROWS)
    options.ways = _chosen(parser, options.ways, WAYS, WAYS)
    options.meta = _chosen(parser, options.meta, META, ("synced",))
    options.seeds = options.seeds or (1 if options.quick else SEEDS)
    options.plp = PROTECTION[options.plp or ("with" if options.quick else "both")]
    return options


def _chosen(
    parser: argparse.ArgumentParser,
    text: str | None,
    known: Collection[str],
    default: Collection[str],
) -> list[str]:
    names = text.split(",") if text else list(default)
    if strangers := [name for name in names if name not in known]:
        parser.error(f"{', '.join(strangers)}: known are {', '.join(known)}")
    return names


def cells(options: argparse.Namespace, say: Say) -> Iterator[Cell]:
    """Yield each cell once all of its seeds are through."""
    for name, plp, meta in product(options.rows, options.plp, options.meta):
        # The kernel's filesystems have no META.
        ways = [way for way in options.ways if meta == "synced" or way not in CONTROLS]
        cell = Cell(ROWS[name], plp, meta, {way: [] for way in ways})
        for seed in range(1, options.seeds + 1):
            for way in ways:
                if done := measured(cell, way, seed, say):
                    cell.runs[way].append(done)
                else:
                    cell.failed[way] = cell.failed.get(way, 0) + 1
        yield cell


def measured(cell: Cell, way: str, seed: int, say: Say) -> Run | None:
    """Do a run, and again if it is void or failed; None if it failed in the end as well.

    A program may fail: a filesystem that frees late can be full while compactions run. Hours of
    other runs must not be lost for that.
    """
    last = None
    for _ in range(TRIES):
        begun = time.monotonic()
        try:
            last = once(cell, way, seed)
            what = said(last)
        except BenchError as error:
            what = f"failed: {error}"
        say(f"{cell.name}, {way}, seed {seed}: {what}, {time.monotonic() - begun:.0f} s")
        if last is not None and not last.void:
            break
    return last


def once(cell: Cell, way: str, seed: int) -> Run:
    """Do a run; its trace, if it has one, is replayed into the cell."""
    row = cell.row
    stored = replace(WAYS[way], meta=cell.meta)
    job = Job(way, stored, row.plan, row.programs, seed, cell.plp)
    with fresh_folders(OUTPUT, row.plan, keep=False) as folders:
        done = Run(seed, run(job, folders, lambda _: None))
        if done.outcome.trace is not None and not done.void:
            cell.replays[seed] = replay(done.outcome, done.outcome.trace, row.plan)
    return done


def said(done: Run) -> str:
    """Return a run in a few words."""
    outcome, counters = done.outcome, done.outcome.counters
    return (
        f"{outcome.nand_per_app_byte:.3f} NAND bytes per application byte, WAF {counters.waf:.3f}, "
        f"spare {counters.effective_spare:.2%}{' (void)' if done.void else ''}"
    )


def write(options: argparse.Namespace, done: Sequence[Cell]) -> None:
    """Write what is there so far: it takes hours."""
    picture = options.png or OUTPUT / "apps.png"
    picture.parent.mkdir(parents=True, exist_ok=True)
    draw(picture, done)
    if options.json:
        rows = [one for cell in done for one in rows_of(cell)]
        options.json.write_text(json.dumps(to_json("apps", rows), indent=2) + "\n")


def interrupt(*_: object) -> None:
    """Undo everything and stop; more signals do not disturb the undoing."""
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def main(arguments: Sequence[str]) -> int:
    """Measure, show, and return the exit code."""
    options = parse(arguments)
    console = Console(width=None if sys.stdout.isatty() else LOG_COLUMNS)
    for number in STOPPING:
        signal.signal(number, interrupt)
    if reason := why_not(PROGRAMS):
        print(f"bench/apps: {reason}", file=sys.stderr)
        return 1
    done: list[Cell] = []
    try:
        for cell in cells(options, partial(console.print, markup=False)):
            done.append(cell)
            print_cell(console, cell)
            write(options, done)
    except BenchError as error:
        print(f"bench/apps: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("bench/apps: interrupted; everything was unmounted", file=sys.stderr)
        return EXIT_INTERRUPTED
    if any(cell.failed for cell in done):
        return 1
    void = any(run.void for cell in done for runs in cell.runs.values() for run in runs)
    return EXIT_VOID if void else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
