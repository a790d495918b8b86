"""The demo's command line.

Exit codes: 0 all is shown (a target that was missed is shown as missed), 1 something failed,
2 usage, 3 the figures are void, 130 interrupted.
"""

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from bench.demo.report import Report, draw, print_table, write_json
from bench.emulated.controls import Way
from bench.emulated.folders import fresh_folders
from bench.emulated.replays import replay
from bench.emulated.run import Job, run
from bench.paths import ROOT
from bench.programs.plan import FULL, QUICK, Plan
from bench.system import BenchError
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

EXIT_VOID, EXIT_INTERRUPTED = 3, 130
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
OUTPUT = ROOT / "build" / "demo"
MODES = {
    "ext4": Way("ext4"),
    "off": Way(),
    "learned": Way(placement="learned", daemon=True),
    "hints": Way(placement="hints", daemon=True, preload=True),
}


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="scripts/demo", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller, under four minutes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    parser.add_argument("--keep", action="store_true", help="keep images, META, trace and logs")
    parser.add_argument(
        "--mode", action="append", choices=MODES, help="only this run (may be given again)"
    )
    return parser.parse_args(arguments)


def interrupt(*_: object) -> None:
    """Undo everything and stop; more signals do not disturb the undoing."""
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def run_all(modes: Sequence[str], plan: Plan, keep: bool, console: Console) -> Report:
    """Do the runs one after the other, then the replays."""
    columns = (TextColumn("{task.description:<28}"), BarColumn(None), TimeElapsedColumn())
    outcomes, replays = [], None
    with Progress(*columns, console=console) as bar, ExitStack() as stack:
        steps = 1 + plan.warmup_rounds + plan.counted_rounds
        task = bar.add_task("starting", total=len(modes) * steps + ("off" in modes) + 1)

        def step(mode: str, what: str) -> None:
            bar.update(task, advance=1, description=f"{mode}: {what}")

        for mode in modes:
            folders = stack.enter_context(fresh_folders(OUTPUT, plan, keep=keep))
            if keep:
                bar.console.print(f"{mode}: {folders.work}, {folders.images}")
            outcome = run(Job(mode, MODES[mode], plan), folders, partial(step, mode))
            outcomes.append(outcome)
            if outcome.trace is not None:
                step(mode, "replay")
                replays = replay(outcome, outcome.trace, plan)
        bar.update(task, completed=bar.tasks[0].total, description="done")
    return Report(outcomes, replays)


def main(arguments: Sequence[str]) -> int:
    """Run the demo and return the exit code."""
    options = parse(arguments)
    plan = QUICK if options.quick else FULL
    modes = [mode for mode in MODES if not options.mode or mode in options.mode]
    console, started = Console(), time.monotonic()
    for number in STOPPING:
        signal.signal(number, interrupt)
    try:
        report = run_all(modes, plan, options.keep, console)
    except BenchError as error:
        console.print(f"[bold red]demo:[/] {error}", highlight=False)
        return 1
    except KeyboardInterrupt:
        console.print("demo: interrupted; everything was unmounted")
        return EXIT_INTERRUPTED
    print_table(console, report)
    picture = OUTPUT / f"demo-{plan.name}.png"
    draw(picture, report)
    console.print(
        f"Picture: {picture.relative_to(ROOT)}. {time.monotonic() - started:.0f} s in all."
    )
    if options.json:
        write_json(options.json, report)
    return EXIT_VOID if report.void() else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
