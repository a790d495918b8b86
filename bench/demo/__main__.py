"""The demo's command line.

Exit codes: 0 all is shown (a target that was missed is shown as missed), 1 something failed,
2 usage, 3 the figures are void, 130 interrupted.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from bench.demo.controls import MODES, Folders
from bench.demo.plan import FULL, QUICK, Plan
from bench.demo.report import Replays, Report, draw, print_table, write_json
from bench.demo.run import Outcome, run
from bench.demo.ssd import replay_waf, user_bytes
from bench.paths import ROOT
from bench.system import BenchError
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

EXIT_VOID, EXIT_INTERRUPTED = 3, 130
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
OUTPUT = ROOT / "build" / "demo"


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


@contextmanager
def fresh_folders(plan: Plan, keep: bool) -> Iterator[Folders]:
    """Give a run its folders: images in memory where there is room for two of them."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    memory = Path("/dev/shm")
    needed = 2 * user_bytes(plan)
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > needed and _memory_free() > needed
    work = Path(tempfile.mkdtemp(prefix="run-", dir=OUTPUT))
    images = Path(tempfile.mkdtemp(prefix="streamfs-demo-", dir=memory if roomy else work))
    shared = Path(tempfile.mkdtemp(prefix="streamfs-demo-"))
    shared.chmod(0o755)
    try:
        yield Folders(images=images, work=work, shared=shared)
    finally:
        _remove_unmounted(shared)
        if not keep:
            shutil.rmtree(images, ignore_errors=True)
            shutil.rmtree(work, ignore_errors=True)


def _memory_free() -> int:
    fields = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    return next(int(words[1]) << 10 for words in fields if words[0] == "MemAvailable:")


def _remove_unmounted(folder: Path) -> None:
    """Delete a folder, never through something that is still mounted in it."""
    if not any(os.path.ismount(path) for path in folder.iterdir()):
        shutil.rmtree(folder, ignore_errors=True)


def replay(outcome: Outcome, trace: Path, plan: Plan) -> Replays:
    """Replay a run's trace the three ways the table needs."""
    physical, share = outcome.counters.physical_bytes, outcome.warmup_share
    nosep, sepgc, oracle = (
        replay_waf(trace, name, physical, plan.pages_per_block, share)
        for name in ("nosep", "sepgc", "oracle")
    )
    return Replays(nosep, sepgc, oracle)


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
            folders = stack.enter_context(fresh_folders(plan, keep))
            if keep:
                bar.console.print(f"{mode}: {folders.work}, {folders.images}")
            outcome = run(mode, plan, folders, partial(step, mode))
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
