"""Commands for who looks after filesystems: metrics, report, advise. cli.py declares the rest."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from classifierd import report
from classifierd.exporter import Endpoint, keep_textfile, render, write_textfile

# As base/exit_codes.h.
_USAGE, _NO_DEVICE = 64, 66
_PORT = 9763

log = logging.getLogger(__name__)


def _place(text: str) -> tuple[str, int]:
    """ADDRESS:PORT, or PORT on loopback."""
    address, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        msg = "ADDRESS:PORT, or PORT"
        raise argparse.ArgumentTypeError(msg)
    return address.strip("[]") or "127.0.0.1", int(port)


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < 1e7:
        msg = "seconds, more than 0"
        raise argparse.ArgumentTypeError(msg)
    return value


def declare(commands: Any) -> None:
    """Add the commands' arguments."""
    told = commands.add_parser("metrics", help="tell Prometheus of mounted filesystems")
    told.add_argument("mountpoints", type=Path, nargs="+", metavar="MOUNTPOINT")
    where = told.add_mutually_exclusive_group()
    where.add_argument(
        "--listen",
        type=_place,
        default=("127.0.0.1", _PORT),
        metavar="[ADDRESS:]PORT",
        help=f"answer GET /metrics there (127.0.0.1:{_PORT})",
    )
    where.add_argument(
        "--textfile", type=Path, metavar="FILE.prom", help="keep a file for node_exporter instead"
    )
    told.add_argument(
        "--every", type=_seconds, default=15.0, metavar="SECONDS", help="of the file (15)"
    )
    told.add_argument("--once", action="store_true", help="print them, or write the file, and end")
    page = commands.add_parser("report", help="one page about a mounted filesystem, with plots")
    page.add_argument("mountpoint", type=Path)
    page.add_argument("-o", "--output", type=Path, required=True, metavar="FILE.html")
    for command in (told, page):
        command.set_defaults(config=None, epoch_pages=None, verbose=False)


def write_report(args: argparse.Namespace) -> int:
    """Write the page."""
    try:
        report.write(args.mountpoint, args.output)
    except OSError as error:
        log.error("%s", error)
        return _NO_DEVICE
    return 0


def metrics(args: argparse.Namespace) -> int:
    """Tell of them until stopped."""
    try:
        if args.once:
            if args.textfile is None:
                sys.stdout.write(render(args.mountpoints).decode())
            else:
                write_textfile(args.mountpoints, args.textfile)
            return 0
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        if args.textfile is not None:
            keep_textfile(args.mountpoints, args.textfile, args.every, stop.wait)
            return 0
        with Endpoint(args.mountpoints, *args.listen) as endpoint:
            log.info("listening at http://%s:%d/metrics", *endpoint.server_address[:2])
            thread = threading.Thread(target=endpoint.serve_forever)
            thread.start()
            stop.wait()
            endpoint.shutdown()
            thread.join()
    except OSError as error:
        log.error("%s", error)
        return _NO_DEVICE
    return 0
