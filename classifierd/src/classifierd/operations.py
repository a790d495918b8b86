"""Commands for who looks after filesystems: metrics, report, advise. cli.py declares the rest."""

from __future__ import annotations

import argparse
import json
import logging
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from classifierd import blocktrace, report, spacemap, traces
from classifierd.advise import (
    LEAST_PAGES,
    MODELS,
    MOST_PAGES,
    Machine,
    Prediction,
    Recorded,
    as_json,
    on_streamfs,
    predict,
)
from classifierd.charts import binary_bytes
from classifierd.command_line import EXIT_NO_DEVICE, EXIT_USAGE
from classifierd.control import socket_path
from classifierd.errors import sentence
from classifierd.exporter import Endpoint, keep_textfile, render, write_textfile
from classifierd.owners import Owners, vstreams
from classifierd.progress import Progress
from classifierd.recording import Disk, Recording
from classifierd.recording import read as read_recording
from classifierd.recording import write as write_recording
from classifierd.records import BLOCK_BYTES, KIND_TRIM
from classifierd.wishes import Wishes

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


def _size(text: str) -> int:
    found = re.fullmatch(r"(\d+)([KMGT]?)(i?B)?", text)
    if found is None or int(found[1]) == 0:
        msg = "a number of bytes, or with K, M, G or T"
        raise argparse.ArgumentTypeError(msg)
    return int(found[1]) << (10 * " KMGT".index(found[2] or " "))


def declare(commands: Any) -> None:
    """Add the commands' arguments."""
    told = commands.add_parser("metrics", help="serve metrics of mounts to Prometheus")
    told.add_argument(
        "mountpoints", type=Path, nargs="+", metavar="MOUNTPOINT", help="mounted filesystems"
    )
    where = told.add_mutually_exclusive_group()
    where.add_argument(
        "--listen",
        type=_place,
        default=("127.0.0.1", _PORT),
        metavar="[ADDRESS:]PORT",
        help=f"answer GET /metrics at this address (default 127.0.0.1:{_PORT})",
    )
    where.add_argument(
        "--textfile", type=Path, metavar="FILE.prom", help="keep a file for node_exporter instead"
    )
    told.add_argument(
        "--every",
        type=_seconds,
        default=15.0,
        metavar="SECONDS",
        help="write the file this often, in seconds (default 15)",
    )
    told.add_argument(
        "--once", action="store_true", help="print the metrics or write the file once, and end"
    )
    told.add_argument(
        "--wait",
        action="store_true",
        help="start before the mount, and report a missing mount as down",
    )
    page = commands.add_parser("report", help="write one page about a mount, with plots")
    page.add_argument("mountpoint", type=Path, help="a mounted streamfs")
    page.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="FILE.html",
        help="write the page to this file",
    )
    advised = commands.add_parser(
        "advise", help="predict the savings of streams for a device's writes or a trace"
    )
    advised.add_argument(
        "target", metavar="DEVICE|TRACE", help="a block device, or a recorded trace"
    )
    advised.add_argument(
        "--seconds",
        type=_seconds,
        metavar="N",
        help="record for N seconds (default 60); for a trace without times: its duration",
    )
    advised.add_argument("--record", type=Path, metavar="FILE.csv", help="keep the recording here")
    advised.add_argument(
        "--model",
        choices=[each.name for each in MODELS],
        help="predict for this SSD model only (default: all)",
    )
    advised.add_argument(
        "--capacity",
        type=_size,
        metavar="SIZE",
        help="assume an SSD of this capacity (default: the device's; a trace's last address)",
    )
    advised.add_argument(
        "--used",
        type=_size,
        metavar="SIZE",
        help="assume that SIZE is used before (default: the mounted filesystem's use)",
    )
    advised.add_argument("--json", action="store_true", help="print one JSON object")


def write_report(args: argparse.Namespace) -> int:
    """Write the page."""
    try:
        report.write(args.mountpoint.resolve(), args.output)
    except OSError as error:
        log.error("%s", sentence(error))
        return EXIT_NO_DEVICE
    return 0


@contextmanager
def _asked_to_stop() -> Iterator[Wishes]:
    """Whatever signal asks for the end is heard; afterwards signals do what they did before."""
    wishes = Wishes()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    wishes.hear(dict.fromkeys(numbers, wishes.ask_end))
    try:
        yield wishes
    finally:
        signal.set_wakeup_fd(-1)
        for number, handler in before.items():
            signal.signal(number, handler)


def _record(args: argparse.Namespace, device: Path, progress: Progress) -> Recording:
    blocktrace.tracing_folder()  # fails at once, not after the files of the device were looked at
    mount, seconds = blocktrace.mounted_at(device), args.seconds or 60.0
    disk = Disk(blocktrace.capacity_bytes(device))
    if mount is not None:
        disk = replace(disk, used_bytes=blocktrace.used_bytes(mount))
        disk = replace(disk, held=spacemap.held_pages(mount))
    with ExitStack() as stack:
        # Before anything is recorded: where it cannot be kept, nobody waits for it.
        kept_at = None if args.record is None else stack.enter_context(args.record.open("w"))
        stop = stack.enter_context(_asked_to_stop())
        found = Owners(disk.capacity_bytes)
        if mount is not None:
            progress.step("looking for files")
            log.info("looking where the files of %s are", mount)
            log.info("%d files", found.walk(mount, lambda: stop.end))
        log.info("recording writes to %s for %.0f s; interrupt to end sooner", device, seconds)
        begun = time.monotonic()
        progress.step("recording")
        recording = blocktrace.record(device, seconds, lambda: stop.end, found)
        recording = replace(recording, disk=disk, seconds=time.monotonic() - begun)
        if kept_at is not None:
            write_recording(kept_at, recording)
    if recording.lost:
        log.warning("%d events were lost: the machine was faster", recording.lost)
    return recording


def _say(machine: Machine, found: list[Prediction]) -> None:
    how = f"{binary_bytes(machine.used_pages * BLOCK_BYTES)} of it used before"
    print(
        f"an SSD of {binary_bytes(machine.capacity_pages * BLOCK_BYTES)}, {how}; NAND programmed:"
    )
    print(f"  {'model':16}{'now':>11}{'streamfs':>11}{'streams':>11}{'oracle':>11}   years")
    for each in found:
        sizes = [each.nand_now_bytes, each.nand_off_bytes]
        sizes += [each.nand_streams_bytes, each.nand_oracle_bytes]
        years = [each.years_now, each.years_off, each.years_streams]
        told = " / ".join("?" if year is None else f"{min(year, 999):.1f}" for year in years)
        print(
            f"  {each.model:16}"
            + "".join(f"{binary_bytes(size):>11}" for size in sizes)
            + f"   {told}"
        )
    print(
        "  now: as recorded; streamfs: its data without streams; streams: as learned; oracle: all"
    )
    print("  deaths known. Years until the cells' rating is used up: now / streamfs / streams.")
    print("  A drive can do better than these models if it collects by cost-benefit, not greedily,")
    print("  and keeps its handles' copies apart (FDP: persistently isolated). Ask its vendor.")


def advise(args: argparse.Namespace) -> int:
    """Record or read, and predict."""
    with Progress(f"advise of {args.target}") as progress:
        progress.step("reading")
        return _advise(args, progress)


def _advise(args: argparse.Namespace, progress: Progress) -> int:
    path, disk, seconds = Path(args.target), Disk(), args.seconds or 0.0
    try:
        recording = (
            _record(args, path, progress) if path.is_block_device() else read_recording(path)
        )
        if recording is None:
            raw, known = traces.read(path)
        else:
            raw, known = recording.requests.as_sent(), vstreams(recording.names)
            disk = recording.disk
            seconds = recording.seconds if path.is_block_device() else seconds or recording.seconds
    except (OSError, traces.TraceError) as error:
        log.error("%s", sentence(error))
        return EXIT_NO_DEVICE
    if not (raw["kind"] != KIND_TRIM).any():
        log.error("%s: nothing was written, so nothing can be said", args.target)
        return EXIT_USAGE
    end = int((raw["block"] + raw["pages"]).max())
    capacity = (args.capacity or disk.capacity_bytes or end * BLOCK_BYTES) // BLOCK_BYTES
    if end > capacity:
        log.error("--capacity is less than what was written to")
        return EXIT_USAGE
    if not LEAST_PAGES <= capacity <= MOST_PAGES:
        log.error("of an SSD of %s nothing can be said", binary_bytes(capacity * BLOCK_BYTES))
        return EXIT_USAGE
    used = min((args.used or disk.used_bytes) // BLOCK_BYTES, capacity)
    machine = Machine(capacity, used, seconds, None if args.used else disk.held)
    if recording is None:
        sent = traces.telemetry(raw)
        recorded = Recorded(sent, sent, vstreams=known)
    else:
        progress.step("placing as streamfs would")
        recorded = on_streamfs(recording.requests, machine, known)
    wanted = [each for each in MODELS if args.model in (None, each.name)]
    predictions = []
    for model in wanted:
        progress.step(f"predicting for {model.name}")
        predictions.append(predict(recorded, machine, model))
    if args.json:
        print(json.dumps(as_json(machine, predictions)))
    else:
        _say(machine, predictions)
    return 0


def metrics(args: argparse.Namespace) -> int:
    """Tell of them until stopped."""
    try:
        if not args.wait:
            for mountpoint in args.mountpoints:
                socket_path(mountpoint)
        if args.once:
            if args.textfile is None:
                sys.stdout.write(render(args.mountpoints).decode())
            else:
                write_textfile(args.mountpoints, args.textfile)
            return 0
        with _asked_to_stop() as stop:
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
        log.error("%s", sentence(error))
        return EXIT_NO_DEVICE
    return 0
