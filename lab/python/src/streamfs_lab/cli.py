"""The command line: streamfs-lab replay TRACE, plot TRACE."""

from __future__ import annotations

import argparse
import json
import logging
import math
import os
from importlib import metadata
from pathlib import Path

# Use one OpenMP thread, as in classifierd: waiting threads cost more time than they save.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from classifierd import command_line, explain
from classifierd.command_line import (
    EXIT_IO,
    EXIT_NO_DEVICE,
    EXIT_USAGE,
    JSON_SCHEMA,
    Parser,
    add_learner_options,
    between,
    config_of,
)
from classifierd.contexts import VStream
from classifierd.control import VICTIMS
from classifierd.errors import sentence
from classifierd.pictures import kind_of
from classifierd.progress import Progress
from classifierd.records import Records, from_bytes
from classifierd.traces import TraceError, read, read_vstreams, telemetry
from streamfs_lab import _lab, plot
from streamfs_lab.policies import Tags
from streamfs_lab.replay import (
    ON_DEMAND,
    POLICIES,
    Device,
    compare,
    prefilled,
    requests_forgotten,
    workload_of,
)
from streamfs_lab.tagged import write_tagged
from streamfs_lab.workloads import WORKLOADS

_BLOCKS_MIN = 16  # of a simulated device; with fewer, the reserve would be most of it

log = logging.getLogger("streamfs_lab")


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < math.inf:
        msg = "a number above 0"
        raise argparse.ArgumentTypeError(msg)
    return value


def _declare_replay(commands: argparse._SubParsersAction[Parser]) -> argparse.ArgumentParser:
    names = [*WORKLOADS, *_lab.generator_names()]
    play = commands.add_parser("replay", help="compute the savings of learning on a trace")
    play.add_argument("trace", help=f"a trace file, or one of: {', '.join(names)}")
    play.add_argument(
        "--streams",
        type=between(1, 128),
        default=8,
        metavar="K",
        help="use K streams, 1 to 128 (default 8)",
    )
    play.add_argument(
        "--out",
        type=Path,
        metavar="TAGS",
        help="write one byte a page; .csv[.gz]: a trace for ssd-sim",
    )
    play.add_argument("--json", action="store_true", help="print one JSON object")
    play.add_argument(
        "--policies",
        type=lambda text: [name for name in text.split(",") if name],
        default=[],
        metavar="A,B",
        help=f"run these beside nosep, learned and the oracles: {', '.join(POLICIES)} (default: "
        f"all); learned is what the daemon's contest places on a mount, and life-table, logistic "
        f"and chunk-kmeans are its candidates alone; by name only: scikit-learn's estimators, the "
        f"logistic model with a history of each page, an oracle of other writes' mean lifetimes, "
        f"and learned with copies placed anew: {', '.join(ON_DEMAND)}",
    )
    play.add_argument(
        "--spare", type=_positive, default=0.07, help="set the effective spare (default 0.07)"
    )
    play.add_argument(
        "--block-pages",
        type=between(2, 1 << 20),
        default=Device.block_pages,
        metavar="N",
        help=f"set the 4 KiB pages of an erase block (default {Device.block_pages})",
    )
    play.add_argument(
        "--gc",
        choices=("same", "own", "shared"),
        default="same",
        help="put copies of tagged pages into: same, the block of their class; own, a copy block "
        "for each class; shared, one copy block (default same)",
    )
    play.add_argument(
        "--victim",
        choices=VICTIMS,
        default=Device.victim,
        help="choose the block to collect: greedy, the one with the fewest valid pages; "
        f"cost-benefit, one that is older and not much fuller (default {Device.victim})",
    )
    play.add_argument(
        "--vstreams",
        type=Path,
        metavar="FILE",
        help="read the output of streamctl streams --json of the traced mount; traces only",
    )
    play.add_argument("--no-hints", action="store_true", help="ignore the trace's vStreams")
    play.add_argument(
        "--no-requests", action="store_true", help="treat each page as a request of its own"
    )
    play.add_argument("--prefill", action="store_true", help="write the footprint once, first")
    play.add_argument(
        "--pages",
        type=between(1, 1 << 28),
        default=2_000_000,
        metavar="N",
        help="let a generated workload write N pages of 4 KiB (default 2000000)",
    )
    play.add_argument(
        "--live",
        type=between(4096, 1 << 26),
        default=262_144,
        metavar="N",
        help="let it keep about N pages of 4 KiB live (default 262144)",
    )
    play.add_argument("--seed", type=int, default=1, help="generate from this seed (default 1)")
    return play


def _declare_plot(commands: argparse._SubParsersAction[Parser]) -> argparse.ArgumentParser:
    plotted = commands.add_parser("plot", help="draw what is learned from a trace")
    plotted.add_argument("trace", metavar="TRACE|WORKLOAD", help="as for replay")
    plotted.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="FILE.png|svg",
        help="write the picture to this file",
    )
    plotted.add_argument("--vstreams", type=Path, metavar="FILE", help="as for replay")
    plotted.add_argument(
        "--streams",
        type=between(1, 128),
        default=8,
        metavar="K",
        help="use K streams, 1 to 128 (default 8)",
    )
    plotted.add_argument(
        "--pages",
        type=between(1, 1 << 28),
        default=1_000_000,
        help="let a generated workload write so many 4 KiB pages (default 1000000)",
    )
    plotted.add_argument(
        "--live",
        type=between(4096, 1 << 26),
        default=65_536,
        help="let it keep about so many 4 KiB pages live (default 65536)",
    )
    plotted.add_argument("--seed", type=int, default=1, help="generate from this seed (default 1)")
    return plotted


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="streamfs-lab",
        description="Replays traces under placements that learn, and draws what they learn.",
    )
    version = f"streamfs-lab {metadata.version('streamfs-lab')}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(dest="command", required=True, parser_class=Parser)
    for command in (_declare_replay(commands), _declare_plot(commands)):
        add_learner_options(command)
        command.add_argument("-v", "--verbose", action="store_true", help="log details, too")
    return parser


class _MisplacedError(ValueError):
    """An option that does not apply to this source of writes."""


def _source(args: argparse.Namespace) -> tuple[Records, list[VStream]]:
    generated = args.trace in (*WORKLOADS, *_lab.generator_names())
    if generated and args.vstreams is not None:
        msg = f"--vstreams {args.vstreams}: {args.trace} is generated and brings its own vStreams"
        raise _MisplacedError(msg)
    if args.trace in WORKLOADS:
        return WORKLOADS[args.trace](args.pages, args.seed, args.live)
    if args.trace in _lab.generator_names():
        data, starts_full = _lab.generated(args.trace, args.live, args.pages, args.seed)
        made = from_bytes(data)
        known = [VStream(int(number)) for number in np.unique(made["vstream"])]
        return (prefilled(made) if starts_full else made), known
    found, numbers = read(Path(args.trace))
    return found, numbers if args.vstreams is None else read_vstreams(args.vstreams)


def _without_hints(raw: Records, vstreams: list[VStream]) -> tuple[Records, list[VStream]]:
    """The writes without labels: all in vStream 0."""
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
    workload = workload_of(raw, vstreams, args.streams, config_of(args).learner)
    device = Device(
        spare=args.spare, block_pages=args.block_pages, gc_mode=args.gc, victim=args.victim
    )
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
        more["victim"] = args.victim
        more |= {"block_pages": args.block_pages, "served": outcome.served}
        print(json.dumps({"schema": JSON_SCHEMA, "policies": policies, **more}))
        return 0
    print(
        f"{args.trace}: {explain.size(outcome.pages_written)} written, "
        f"{explain.size(outcome.peak_live)} live at most, {args.streams} streams, "
        f"effective spare {args.spare:.0%} in blocks of {explain.size(args.block_pages)}, "
        f"{args.victim} GC, copies: {args.gc}"
    )
    width = max(map(len, policies))
    for name, figures in policies.items():
        closed = "–" if figures["gap_closed"] is None else f"{figures['gap_closed']:.2f}"
        print(f"  {name:{width}} WAF {figures['waf']:.3f}  gap closed {closed}")
    epochs = ", ".join(f"{name} {count}" for name, count in outcome.served.items())
    print(f"  epochs that each candidate served: {epochs}")
    return 0


def _plot_learned(args: argparse.Namespace) -> int:
    with Progress(f"plot of {args.trace}") as progress:
        progress.step("reading")
        raw, vstreams = _source(args)
        if len(raw) == 0:
            log.error("nothing to plot")
            return EXIT_USAGE
        progress.step("learning")
        workload = workload_of(raw, vstreams, args.streams, config_of(args).learner)
        found = plot.learned(workload, progress)
        progress.step("drawing")
        plot.draw_learned(found, args.output, args.trace)
    return 0


def _plot(args: argparse.Namespace) -> int:
    try:
        kind_of(args.output)
    except ValueError as error:
        log.error("%s", error)
        return EXIT_USAGE
    try:
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


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    args = _parser().parse_args(arguments)
    command_line.begin_log("streamfs-lab", verbose=args.verbose)
    return command_line.run({"replay": _replay, "plot": _plot}[args.command], args)
