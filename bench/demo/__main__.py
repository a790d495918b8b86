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
from dataclasses import replace
from functools import partial
from pathlib import Path

from bench.demo.report import Report, draw, print_table, write_json
from bench.emulated.controls import Way
from bench.emulated.folders import fresh_folders
from bench.emulated.replays import replay
from bench.emulated.run import PROGRAMS, Job, run
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
    parser.add_argument(
        "--history",
        type=folder,
        metavar="FOLDER",
        help="first copy this folder onto the mount, as a restore would",
    )
    parser.add_argument(
        "--rounds",
        type=count,
        metavar="N",
        help="count N rounds after N ÷ 2 of warm-up, at least 4 (default: 6 with --quick, else 9)",
    )
    parser.add_argument(
        "--new-names",
        type=count,
        default=0,
        metavar="N",
        help="also create N directories with new names in each round",
    )
    return parser.parse_args(arguments)


def count(text: str) -> int:
    """Return a number of at least 1; argparse.ArgumentTypeError if it is none."""
    if not text.isdecimal() or int(text) < 1:
        message = f"{text} is not a number from 1 on"
        raise argparse.ArgumentTypeError(message)
    return int(text)


def folder(text: str) -> Path:
    """Return the folder's path; argparse.ArgumentTypeError if it is none."""
    path = Path(text)
    if not path.is_dir():
        message = f"{text} is not a folder"
        raise argparse.ArgumentTypeError(message)
    return path


def interrupt(*_: object) -> None:
    """Undo everything and stop; more signals do not disturb the undoing."""
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def run_all(options: argparse.Namespace, plan: Plan, console: Console) -> Report:
    """Do the runs one after the other, then the replays."""
    modes = [mode for mode in MODES if not options.mode or mode in options.mode]
    programs = (*PROGRAMS, "names") if options.new_names else PROGRAMS
    columns = (TextColumn("{task.description:<28}"), BarColumn(None), TimeElapsedColumn())
    outcomes, replays = [], None
    with Progress(*columns, console=console) as bar, ExitStack() as stack:
        steps = 1 + plan.warmup_rounds + plan.counted_rounds
        task = bar.add_task("starting", total=len(modes) * steps + ("off" in modes) + 1)

        def step(mode: str, what: str) -> None:
            bar.update(task, advance=1, description=f"{mode}: {what}")

        for mode in modes:
            folders = stack.enter_context(fresh_folders(OUTPUT, plan, keep=options.keep))
            if options.keep:
                bar.console.print(f"{mode}: {folders.work}, {folders.images}")
            job = Job(mode, MODES[mode], plan, programs, history=options.history)
            outcome = run(job, folders, partial(step, mode))
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
    counted = options.rounds or plan.counted_rounds
    # More rounds reach a higher peak of live data, which the warm-up must have seen.
    plan = replace(
        plan,
        warmup_rounds=max(plan.warmup_rounds, counted // 2),
        counted_rounds=counted,
        files=replace(plan.files, new_names=options.new_names),
    )
    console, started = Console(), time.monotonic()
    for number in STOPPING:
        signal.signal(number, interrupt)
    try:
        report = run_all(options, plan, console)
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
