"""The command line: classifierd run MOUNT, replay TRACE, explain MOUNT, PATH or LBA, plot."""

from __future__ import annotations

import argparse
import errno
import json
import logging
import math
import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import TextIO

# One thread is plenty for K-means on a few thousand points, and keeps the daemon small.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from classifierd import _core, explain, operations, plot, why_mount
from classifierd import config as configuration
from classifierd.contexts import VStream
from classifierd.control import ControlClient, ControlError, socket_path
from classifierd.daemon import Daemon
from classifierd.errors import sentence
from classifierd.policies import Tags
from classifierd.progress import Progress
from classifierd.records import Records, from_bytes
from classifierd.replay import (
    ON_DEMAND,
    POLICIES,
    Device,
    compare,
    prefilled,
    requests_forgotten,
    workload_of,
)
from classifierd.traces import TraceError, read, read_vstreams, telemetry, write_tagged
from classifierd.why import as_json, lines, mount_of_here, why, why_block
from classifierd.workloads import WORKLOADS

# As base/exit_codes.h.
EXIT_USAGE, EXIT_NO_DEVICE, EXIT_IO, EXIT_BUSY = 64, 66, 70, 75
_BLOCKS_MIN = 16  # of a simulated device: of fewer the reserve would be most

# As base/wire/control.h.
JSON_SCHEMA = 1

log = logging.getLogger("classifierd")

# From which level of logging's on each of syslog's is.
_JOURNAL_LEVELS = (
    (logging.CRITICAL, 2),
    (logging.ERROR, 3),
    (logging.WARNING, 4),
    (logging.INFO, 6),
    (0, 7),
)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        self.print_usage(sys.stderr)
        self.exit(EXIT_USAGE, f"{self.prog}: {message}\n")


class _CheckConfig(argparse.Action):
    """Reads a configuration and ends: 0, or 64 with the file and line of the first mistake."""

    def __call__(self, parser: argparse.ArgumentParser, *given: object, **_: object) -> None:
        """As argparse calls it: namespace, value, option."""
        try:
            configuration.read(Path(str(given[1])))
        except configuration.ConfigError as error:
            parser.exit(EXIT_USAGE, f"{parser.prog}: {error}\n")
        parser.exit(0)


def _between(low: int, high: int) -> Callable[[str], int]:
    def integer(text: str) -> int:
        value = int(text)
        if not low <= value <= high:
            msg = f"between {low} and {high}"
            raise argparse.ArgumentTypeError(msg)
        return value

    return integer


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < math.inf:
        msg = "a number above 0"
        raise argparse.ArgumentTypeError(msg)
    return value


def _declare_explain(commands: argparse._SubParsersAction[_Parser]) -> None:
    explained = commands.add_parser(
        "explain", help="why data of a mount, a file or a block is where it is"
    )
    explained.add_argument(
        "what",
        metavar="MOUNT|PATH|LBA",
        help="a mount point; a file; or a number, a block of 4 KiB of DATA",
    )
    explained.add_argument(
        "--mount",
        type=Path,
        metavar="DIR",
        help="whose block: what is mounted there (default: where the working directory is)",
    )
    explained.add_argument("--state", type=Path, metavar="DIR", help="the daemon's memory")
    explained.add_argument("--json", action="store_true")


def _declare_run(commands: argparse._SubParsersAction[_Parser]) -> argparse.ArgumentParser:
    run = commands.add_parser("run", help="learn from a mounted streamfs and publish placements")
    run.add_argument("mountpoint", type=Path)
    run.add_argument("--once", action="store_true", help="one epoch over what the ring holds")
    run.add_argument(
        "--wait", action="store_true", help="wait for the mount if no streamfs is mounted there"
    )
    run.add_argument("--state", type=Path, metavar="DIR", help="remember between runs, here")
    return run


def _declare_replay(commands: argparse._SubParsersAction[_Parser]) -> argparse.ArgumentParser:
    names = [*WORKLOADS, *_core.generator_names()]
    play = commands.add_parser("replay", help="what learning would have saved on a trace")
    play.add_argument("trace", help=f"a trace file, or one of: {', '.join(names)}")
    play.add_argument("--streams", type=_between(1, 128), default=8, metavar="K")
    play.add_argument(
        "--out", type=Path, metavar="TAGS", help="one byte a page; .csv[.gz]: a trace for ssd-sim"
    )
    play.add_argument("--json", action="store_true")
    play.add_argument(
        "--policies",
        type=lambda text: [name for name in text.split(",") if name],
        default=[],
        metavar="A,B",
        help=f"beside nosep, learned and the oracles: {', '.join(POLICIES)} (default: all these), "
        f"or scikit-learn's in their place, an oracle of means, ours where copies are looked at "
        f"again: {', '.join(ON_DEMAND)}",
    )
    play.add_argument(
        "--spare", type=_positive, default=0.07, help="effective spare (default 0.07)"
    )
    play.add_argument(
        "--block-pages",
        type=_between(2, 1 << 20),
        default=Device.block_pages,
        metavar="N",
        help=f"4 KiB pages of an erase block (default {Device.block_pages})",
    )
    play.add_argument(
        "--gc",
        choices=("same", "own", "shared"),
        default="same",
        help="copies of tagged pages go to their class, to an own block a class, to one of all",
    )
    play.add_argument(
        "--vstreams",
        type=Path,
        metavar="FILE",
        help="what streamctl streams --json said where the trace was recorded; of a trace only",
    )
    play.add_argument("--no-hints", action="store_true", help="forget the trace's vStreams")
    play.add_argument(
        "--no-requests", action="store_true", help="forget which pages were written together"
    )
    play.add_argument("--prefill", action="store_true", help="write the footprint once before")
    play.add_argument(
        "--pages", type=_between(1, 1 << 28), default=2_000_000, help="of a generated workload"
    )
    play.add_argument(
        "--live", type=_between(4096, 1 << 26), default=262_144, help="its live pages, about"
    )
    play.add_argument("--seed", type=int, default=1)
    return play


def _declare_plot(commands: argparse._SubParsersAction[_Parser]) -> argparse.ArgumentParser:
    plotted = commands.add_parser("plot", help="a picture of what is learned, or was measured")
    source = plotted.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "trace",
        nargs="?",
        metavar="MOUNT|TRACE|WORKLOAD",
        help="a mounted streamfs, or as for replay",
    )
    source.add_argument("--socket", type=Path, help="the control socket of a mounted streamfs")
    plotted.add_argument("-o", "--output", type=Path, required=True, metavar="FILE.png|svg")
    plotted.add_argument("--vstreams", type=Path, metavar="FILE", help="as for replay")
    plotted.add_argument("--streams", type=_between(1, 128), default=8, metavar="K")
    plotted.add_argument("--pages", type=_between(1, 1 << 28), default=1_000_000)
    plotted.add_argument("--live", type=_between(4096, 1 << 26), default=65_536)
    plotted.add_argument("--seed", type=int, default=1)
    return plotted


def _program() -> str:
    """The program that the user called: streamctl runs some of the commands."""
    return os.environ.get("CLASSIFIERD_PROGRAM", "classifierd")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog=_program(), description=__doc__)
    version = f"classifierd {metadata.version('classifierd')}"
    parser.add_argument("--version", action="version", version=version)
    parser.add_argument(
        "--check-config",
        action=_CheckConfig,
        metavar="FILE.toml",
        help="say whether it can be used, or the line that cannot, and exit",
    )
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_Parser)
    run = _declare_run(commands)
    play = _declare_replay(commands)
    _declare_explain(commands)
    plotted = _declare_plot(commands)
    operations.declare(commands)
    for command in (run, play, plotted):
        command.add_argument("--config", type=Path, metavar="FILE.toml")
        command.add_argument("--epoch-pages", type=_between(1, 1 << 24), metavar="N")
    for command in commands.choices.values():
        command.add_argument("-v", "--verbose", action="store_true")
    return parser


def _config(args: argparse.Namespace) -> configuration.Config:
    found = configuration.read(args.config)
    if args.epoch_pages is None:
        return found
    return replace(found, learner=replace(found.learner, epoch_pages=args.epoch_pages))


def _run(args: argparse.Namespace) -> int:
    daemon = Daemon(args.mountpoint, _config(args), args.state, lambda: _config(args))
    try:
        if args.once:
            daemon.run_once()
            return 0
        if not args.wait:
            socket_path(args.mountpoint)
    except (ControlError, RuntimeError) as error:
        log.error("%s", sentence(error))
        code = error.errno if isinstance(error, ControlError) else None
        return {errno.EBUSY: EXIT_BUSY, None: EXIT_IO}.get(code, EXIT_NO_DEVICE)
    daemon.wishes.hear(
        {signal.SIGTERM: daemon.stop, signal.SIGINT: daemon.stop, signal.SIGHUP: daemon.reload}
    )
    daemon.run()
    log.info("stopped")
    return 0


class _MisplacedError(ValueError):
    """An option that the source of the writes has no use for."""


def _source(args: argparse.Namespace) -> tuple[Records, list[VStream]]:
    generated = args.trace in (*WORKLOADS, *_core.generator_names())
    if generated and args.vstreams is not None:
        msg = f"--vstreams {args.vstreams}: {args.trace} is generated and brings its own vStreams"
        raise _MisplacedError(msg)
    if args.trace in WORKLOADS:
        return WORKLOADS[args.trace](args.pages, args.seed, args.live)
    if args.trace in _core.generator_names():
        data, starts_full = _core.generated(args.trace, args.live, args.pages, args.seed)
        made = from_bytes(data)
        known = [VStream(int(number)) for number in np.unique(made["vstream"])]
        return (prefilled(made) if starts_full else made), known
    found, numbers = read(Path(args.trace))
    return found, numbers if args.vstreams is None else read_vstreams(args.vstreams)


def _without_hints(raw: Records, vstreams: list[VStream]) -> tuple[Records, list[VStream]]:
    """The same writes, of which nobody said anything."""
    del vstreams
    unlabelled = raw.copy()
    unlabelled["vstream"] = 0
    return unlabelled, [VStream(0)]


def _write_tags(path: Path, raw: Records, tags: Tags) -> None:
    if {".csv"} & set(path.suffixes):
        write_tagged(path, telemetry(raw), tags)
    else:
        tags.tofile(path)


def _replay(args: argparse.Namespace) -> int:
    with Progress(f"replay of {args.trace}") as progress:
        progress.step("reading")
        return _replay_under(args, progress)


def _replay_under(args: argparse.Namespace, progress: Progress) -> int:
    try:
        raw, vstreams = _without_hints(*_source(args)) if args.no_hints else _source(args)
    except _MisplacedError as error:
        log.error("%s", error)
        return EXIT_USAGE
    except (OSError, TraceError) as error:
        log.error("%s", sentence(error))
        return EXIT_NO_DEVICE
    if len(raw) == 0:
        log.error("nothing to replay")
        return EXIT_USAGE
    known = (*POLICIES, *ON_DEMAND)
    unknown = set(args.policies) - set(known)
    if unknown:
        log.error("no policy %s; there are %s", ", ".join(sorted(unknown)), ", ".join(known))
        return EXIT_USAGE
    raw = requests_forgotten(raw) if args.no_requests else raw
    raw = prefilled(raw) if args.prefill else raw
    workload = workload_of(raw, vstreams, args.streams, _config(args).learner)
    device = Device(spare=args.spare, block_pages=args.block_pages, gc_mode=args.gc)
    if device.block_pages > max(Device.block_pages, workload.live_pages // _BLOCKS_MIN):
        log.error("--block-pages %d: less than %d blocks of the %d pages that live",
                  device.block_pages, _BLOCKS_MIN, workload.live_pages)  # fmt: skip
        return EXIT_USAGE
    try:
        if args.out is not None:
            args.out.open("ab").close()  # fails before the replay, which may take hours
        outcome = compare(workload, device, args.policies, progress)
        if args.out is not None:
            _write_tags(args.out, raw, outcome.tags)
    except OSError as error:
        log.error("%s", sentence(error))
        return EXIT_NO_DEVICE
    policies = {
        name: {
            "waf": round(waf, 4),
            "gap_closed": round(outcome.gap_closed(name), 4) if outcome.has_gap else None,
        }
        for name, waf in outcome.waf.items()
    }
    if args.json:
        more = {"effective_spare": args.spare, "streams": args.streams, "gc": args.gc}
        more |= {"block_pages": args.block_pages, "served": outcome.served}
        print(json.dumps({"schema": JSON_SCHEMA, "policies": policies, **more}))
        return 0
    print(
        f"{args.trace}: {explain.size(outcome.pages_written)} written, "
        f"{explain.size(outcome.peak_live)} live at most, {args.streams} streams, "
        f"effective spare {args.spare:.0%} in blocks of {explain.size(args.block_pages)}, "
        f"greedy GC, copies: {args.gc}"
    )
    for name, figures in policies.items():
        closed = "–" if figures["gap_closed"] is None else f"{figures['gap_closed']:.2f}"
        print(f"  {name:14} WAF {figures['waf']:.3f}  gap closed {closed}")
    epochs = ", ".join(f"{name} {count}" for name, count in outcome.served.items())
    print(f"  epochs that each candidate served: {epochs}")
    return 0


def _why(args: argparse.Namespace) -> tuple[dict[str, object], Iterator[str]]:
    """The answer as plain values and in sentences."""
    if args.what.isdecimal():
        with ControlClient(socket_path(args.mount or mount_of_here())) as client:
            block = why_block(client, int(args.what), args.state)
        return as_json(block), lines(block)
    if Path(args.what).is_mount():
        mount = why_mount.why_mount(Path(args.what), args.state)
        return why_mount.as_json(mount), why_mount.lines(mount)
    file = why(Path(args.what), args.state)
    return as_json(file), lines(file)


def _explain(args: argparse.Namespace) -> int:
    try:
        values, sentences = _why(args)
    except OSError as error:
        log.error("%s", sentence(error))
        return EXIT_NO_DEVICE
    if args.json:
        print(json.dumps({"schema": JSON_SCHEMA, **values}))
    else:
        print("\n".join(sentences))
    return 0


def _plot_mounted(socket: Path, name: str, output: Path) -> int:
    with ControlClient(socket) as client:
        answer, _ = client.request("streams")
    rows = plot.measured(answer.get("streams"))
    if not rows:
        log.error("%s: no lifetime is known yet", name)
        return EXIT_USAGE
    plot.draw_measured(rows, output, f"Lifetimes measured on {name}")
    return 0


def _plot_learned(args: argparse.Namespace) -> int:
    with Progress(f"plot of {args.trace}") as progress:
        progress.step("reading")
        raw, vstreams = _source(args)
        if len(raw) == 0:
            log.error("nothing to plot")
            return EXIT_USAGE
        progress.step("learning")
        workload = workload_of(raw, vstreams, args.streams, _config(args).learner)
        found = plot.learned(workload, progress)
        progress.step("drawing")
        plot.draw_learned(found, args.output, args.trace)
    return 0


def _plot(args: argparse.Namespace) -> int:
    try:
        plot.kind_of(args.output)
    except ValueError as error:
        log.error("%s", error)
        return EXIT_USAGE
    try:
        if args.socket is not None:
            return _plot_mounted(args.socket, str(args.socket), args.output)
        if Path(args.trace).is_dir():
            return _plot_mounted(socket_path(Path(args.trace)), args.trace, args.output)
        return _plot_learned(args)
    except _MisplacedError as error:
        log.error("%s", error)
        return EXIT_USAGE
    except ImportError as error:
        log.error("cannot draw: %s; install it (apt-get install python3-matplotlib)", error)
        return EXIT_IO
    except (OSError, TraceError) as error:
        log.error("%s", sentence(error))
        return EXIT_NO_DEVICE


_COMMANDS = {
    "run": _run,
    "replay": _replay,
    "explain": _explain,
    "plot": _plot,
    "metrics": operations.metrics,
    "report": operations.write_report,
    "advise": operations.advise,
}


class _WithLevels(logging.Formatter):
    """Lines that the journal files under their level, as sd-daemon(3) says."""

    def format(self, record: logging.LogRecord) -> str:
        """One prefix a line."""
        level = next(n for least, n in _JOURNAL_LEVELS if record.levelno >= least)
        return "\n".join(f"<{level}>{line}" for line in super().format(record).splitlines())


def _is_journal(stream: TextIO) -> bool:
    """Whether the journal reads this stream; systemd says which it does."""
    try:
        found = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"


def _begin_log(level: int) -> None:
    handler = logging.StreamHandler()
    kind = _WithLevels if _is_journal(sys.stderr) else logging.Formatter
    handler.setFormatter(kind(f"{_program().replace('%', '%%')}: %(message)s"))
    logging.basicConfig(level=level, handlers=[handler])


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    args = _parser().parse_args(arguments)
    _begin_log(logging.DEBUG if args.verbose else logging.INFO)
    try:
        return _COMMANDS[args.command](args)
    except BrokenPipeError:  # `| head` is no error; nothing more can be printed.
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115
        return 0
    except configuration.ConfigError as error:
        log.error("%s", sentence(error))
        return EXIT_USAGE
