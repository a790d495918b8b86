"""The command line: classifierd run MOUNT, explain MOUNT, PATH or LBA, plot MOUNT."""

from __future__ import annotations

import argparse
import errno
import importlib
import json
import logging
import os
import signal
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

# A single thread is plenty for K-means on a few thousand points, and keeps the daemon small.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from classifierd import command_line, operations, pictures, plot, why_mount
from classifierd import config as configuration
from classifierd.command_line import (
    EXIT_BUSY,
    EXIT_IO,
    EXIT_NO_DEVICE,
    EXIT_USAGE,
    JSON_SCHEMA,
    Parser,
    add_learner_options,
    config_of,
)
from classifierd.control import ControlClient, ControlError, socket_path
from classifierd.daemon import Daemon
from classifierd.errors import sentence
from classifierd.why import as_json, lines, mount_of_here, why, why_block

log = logging.getLogger("classifierd")

# Options of streamfs-lab plot, which `classifierd plot TRACE` passes on.
_LAB_OPTIONS = ("--vstreams", "--streams", "--pages", "--live", "--seed", "--config",
                "--epoch-pages")  # fmt: skip


class _CheckConfig(argparse.Action):
    """Reads a configuration and ends: 0, or 64 with the file and line of the first mistake."""

    def __call__(self, parser: argparse.ArgumentParser, *given: object, **_: object) -> None:
        """As argparse calls it: namespace, value, option."""
        try:
            configuration.read(Path(str(given[1])))
        except configuration.ConfigError as error:
            parser.exit(EXIT_USAGE, f"{parser.prog}: {error}\n")
        parser.exit(0)


def _declare_explain(commands: argparse._SubParsersAction[Parser]) -> None:
    explained = commands.add_parser(
        "explain", help="say why the data of a mount, a file or a block goes where it goes"
    )
    explained.add_argument(
        "what",
        metavar="MOUNT|PATH|LBA",
        help="a mountpoint, a file, or the number of a 4 KiB block of DATA",
    )
    explained.add_argument(
        "--mount",
        type=Path,
        metavar="DIR",
        help="take the block from the mount at DIR (default: that of the working directory)",
    )
    explained.add_argument("--state", type=Path, metavar="DIR", help="read the daemon's state here")
    explained.add_argument("--json", action="store_true", help="print one JSON object")


def _declare_run(commands: argparse._SubParsersAction[Parser]) -> argparse.ArgumentParser:
    run = commands.add_parser("run", help="learn from a mounted streamfs and publish placements")
    run.add_argument("mountpoint", type=Path, help="a mounted streamfs")
    run.add_argument(
        "--once", action="store_true", help="learn one epoch from the telemetry ring, and end"
    )
    run.add_argument("--wait", action="store_true", help="wait for the mount if there is none")
    run.add_argument("--state", type=Path, metavar="DIR", help="keep state between runs in DIR")
    return run


def _declare_plot(commands: argparse._SubParsersAction[Parser]) -> None:
    plotted = commands.add_parser("plot", help="draw the lifetimes measured on a mount")
    source = plotted.add_mutually_exclusive_group(required=True)
    source.add_argument("mountpoint", nargs="?", metavar="MOUNT", help="a mounted streamfs")
    source.add_argument("--socket", type=Path, help="ask this control socket of a mount")
    plotted.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="FILE.png|svg",
        help="write the picture to this file",
    )
    for option in _LAB_OPTIONS:
        plotted.add_argument(option, help=argparse.SUPPRESS)


def _program() -> str:
    """The program that the user called: streamctl runs some of the commands."""
    return os.environ.get("CLASSIFIERD_PROGRAM", "classifierd")


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog=_program(),
        description="Learns which data of a mounted streamfs dies together; explains, draws and "
        "predicts.",
    )
    version = f"classifierd {metadata.version('classifierd')}"
    parser.add_argument("--version", action="version", version=version)
    parser.add_argument(
        "--check-config",
        action=_CheckConfig,
        metavar="FILE.toml",
        help="check a configuration, name the line of a mistake, and exit",
    )
    commands = parser.add_subparsers(dest="command", required=True, parser_class=Parser)
    add_learner_options(_declare_run(commands))
    commands.add_parser("replay", add_help=False, help="deprecated: streamfs-lab replay")
    _declare_explain(commands)
    _declare_plot(commands)
    operations.declare(commands)
    for command in commands.choices.values():
        command.add_argument("-v", "--verbose", action="store_true", help="log details, too")
    return parser


def _run(args: argparse.Namespace) -> int:
    daemon = Daemon(args.mountpoint, config_of(args), args.state, lambda: config_of(args))
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


def _is_for_lab(args: argparse.Namespace) -> bool:
    if args.command == "plot":
        return args.socket is None and not Path(args.mountpoint).is_dir()
    return bool(args.command == "replay")


def _run_lab(command: str, words: list[str]) -> int:
    """Pass a deprecated command on to streamfs-lab; the next release removes it."""
    say = sys.stderr.write
    say(f"{_program()}: {command} of a trace is deprecated; use streamfs-lab {command}\n")
    try:
        lab = importlib.import_module("streamfs_lab.cli")
    except ModuleNotFoundError as error:
        if not str(error.name).startswith("streamfs_lab"):
            raise
        say(f"{_program()}: the package streamfs-lab is not installed: {error}\n")
        return EXIT_USAGE
    return int(lab.main(words))


def _plot_mounted(socket: Path, name: str, output: Path) -> int:
    with ControlClient(socket) as client:
        answer, _ = client.request("streams")
    rows = plot.measured(answer.get("streams"))
    if not rows:
        log.error("%s: no lifetime is known yet", name)
        return EXIT_USAGE
    plot.draw_measured(rows, output, f"Lifetimes measured on {name}")
    return 0


def _plot(args: argparse.Namespace) -> int:
    try:
        pictures.kind_of(args.output)
    except ValueError as error:
        log.error("%s", error)
        return EXIT_USAGE
    try:
        if args.socket is not None:
            return _plot_mounted(args.socket, str(args.socket), args.output)
        return _plot_mounted(socket_path(Path(args.mountpoint)), args.mountpoint, args.output)
    except ImportError as error:
        log.error("cannot draw: %s; install it (apt-get install python3-matplotlib)", error)
        return EXIT_IO
    except OSError as error:
        log.error("%s", sentence(error))
        return EXIT_NO_DEVICE


_COMMANDS = {
    "run": _run,
    "explain": _explain,
    "plot": _plot,
    "metrics": operations.metrics,
    "report": operations.write_report,
    "advise": operations.advise,
}


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    parser = _parser()
    args, others = parser.parse_known_args(words)
    if _is_for_lab(args):
        return _run_lab(args.command, words)
    if others:
        parser.error(f"unrecognized arguments: {' '.join(others)}")
    command_line.begin_log(_program(), verbose=args.verbose)
    return command_line.run(_COMMANDS[args.command], args)
