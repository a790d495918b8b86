"""The same work on ext4, recorded and advised on, and on streamfs: bytes predicted and measured.

Both are on emulated SSDs of one shape, that of the model asked about at this size. The work is
rounds of overwrites at random with fsync, of log files written anew and of files replaced now and
then; what is advised on and measured are all rounds but the first ones, which fill the device. A
round begins on streamfs no sooner than it did on ext4: who moves works as before, and trims that
take a tenth of a second are not late.
"""

import json
import os
import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.loop import loop_device, mount_loop
from bench.paths import BIN, VENV_BIN
from bench.ssd import Counters, Ssd
from bench.system import BenchError, as_root, output_of, start, unmount, wait_until

MIB = 1 << 20
PAGE = 4096
MODEL = "enterprise-fdp"
SEED = 20240301
# Named as programs name theirs: names are what streamfs goes by.
TABLE, LOG, KEPT = "table.db", "log/{:06}.log", "kept/{:04}.jpg"
# Whether the kernel tells an advice's tracefs instance of writes; only root may look.
RECORDS = " ".join(
    f"{root}/instances/streamfs-advise-*/events/block/block_rq_issue/enable"
    for root in ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")
)


@dataclass(frozen=True)
class Size:
    """How much of it."""

    device_mib: int
    table_mib: int  # overwritten at random
    kept_files: int  # of 1 MiB
    rounds: int


QUICK = Size(device_mib=256, table_mib=90, kept_files=110, rounds=320)
FULL = Size(device_mib=512, table_mib=190, kept_files=240, rounds=6000)


@dataclass(frozen=True)
class Outcome:
    """Bytes of NAND for the same work."""

    predicted: dict[str, Any]  # the model's prediction
    ext4: Counters
    streamfs: Counters
    streams_off: Counters


def outcome(size: Size) -> Outcome:
    """Do it three times."""
    with tempfile.TemporaryDirectory(prefix="streamfs-bench-") as folder:
        work = Path(folder)
        ext4, predicted, pace = on_ext4(work, size)
        streams, off = (on_streamfs(work, size, mode, pace) for mode in ("auto", "off"))
        return Outcome(predicted, ext4, streams, off)


def _ssd(path: Path, size: Size) -> Ssd:
    pages = size.device_mib * MIB // PAGE
    shape = ["--streams", "8", "--gc", "shared", "--op", "0.07"]
    shape += ["--pages-per-block", str(pages // 512)]
    return Ssd(path, "--size", f"{size.device_mib}M", *shape)


def fill(mount: Path, size: Size) -> None:
    """Write all that stays."""
    chance = random.Random(SEED)
    for folder in ("log", "kept"):
        (mount / folder).mkdir()
    (mount / TABLE).write_bytes(chance.randbytes(size.table_mib * MIB))
    for number in range(size.kept_files):
        (mount / KEPT.format(number)).write_bytes(chance.randbytes(MIB))
    output_of(["sync", "-f", mount])


def rounds(mount: Path, size: Size, pace: Sequence[float] = ()) -> list[float]:
    """Overwrite, log and replace; the same in every run. Returns when each round began, seconds.

    With a pace, none begins before it did in that one.
    """
    chance = random.Random(SEED + 1)
    began, begun = time.monotonic(), []
    with (mount / TABLE).open("r+b", buffering=0) as table:
        for number in range(size.rounds):
            now = time.monotonic() - began
            if pace and now < pace[number]:
                time.sleep(pace[number] - now)
            begun.append(time.monotonic() - began)
            for _ in range(64):
                table.seek(chance.randrange(size.table_mib * MIB // PAGE) * PAGE)
                table.write(chance.randbytes(PAGE))
            os.fsync(table.fileno())
            (mount / LOG.format(number % 16)).write_bytes(chance.randbytes(MIB // 2))
            if number % 9 == 0:
                kept = mount / KEPT.format(chance.randrange(size.kept_files))
                kept.write_bytes(chance.randbytes(MIB))
    output_of(["sync", "-f", mount])
    return begun


def wait_recording(recorder: subprocess.Popen[str]) -> None:
    """Wait until the kernel tells it of writes."""
    deadline = time.monotonic() + 60
    while "1" not in output_of(as_root(["sh", "-c", f"cat {RECORDS} 2>/dev/null || :"])):
        if recorder.poll() is not None:
            message = f"streamctl advise ended with {recorder.returncode} before it recorded"
            raise BenchError(message)
        if time.monotonic() > deadline:
            message = "streamctl advise does not record"
            raise BenchError(message)
        time.sleep(0.05)


def on_ext4(work: Path, size: Size) -> tuple[Counters, dict[str, Any], list[float]]:
    """Record the rounds on ext4, and ask for advice; also when each began."""
    served, mount, trace = work / "served", work / "ext4", work / "trace.csv"
    served.mkdir()
    mount.mkdir()
    ssd = _ssd(work / "ext4-ssd", size)
    with ExitStack() as stack:
        loop, _ = loop_device(stack, ssd, served, work / "ssd-sim.log")
        mount_loop(stack, ["mkfs.ext4", "-q"], loop, mount)
        fill(mount, size)
        advise: list[str | Path] = [
            VENV_BIN / "classifierd",
            "advise",
            loop,
            "--record",
            trace,
            "--json",
        ]
        advise += ["--model", MODEL, "--seconds", "3600"]
        with subprocess.Popen(as_root(advise), stdout=subprocess.PIPE, text=True) as recorder:
            try:
                wait_recording(recorder)
                ssd.reset()
                pace = rounds(mount, size)
            finally:
                time.sleep(1)
                recorder.send_signal(signal.SIGINT)
                said, _ = recorder.communicate()
        predicted: dict[str, Any] = json.loads(said)["models"][0]
        return ssd.counters(), predicted, pace


def on_streamfs(work: Path, size: Size, mode: str, pace: Sequence[float]) -> Counters:
    """The same rounds on streamfs."""
    mount, meta = work / f"streamfs-{mode}", work / f"META-{mode}"
    mount.mkdir()
    ssd = _ssd(work / f"ssd-{mode}", size)
    data = f"emu:{ssd.path}"
    output_of([BIN / "mkfs.streamfs", "--meta", meta, data])
    log = work / "streamfs.log"
    options = f"meta={meta},placement={mode},idle_work=off"
    with ExitStack() as stack:
        server = start(stack, [BIN / "streamfs", data, mount, "-f", "-o", options], log, 60)
        stack.callback(unmount, ["fusermount3", "-u"], mount)
        wait_until(lambda: os.path.ismount(mount), "streamfs", server, log)
        if mode != "off":
            start(stack, [VENV_BIN / "classifierd", "run", mount], work / "classifierd.log", 5)
        fill(mount, size)
        output_of([BIN / "streamctl", "sync", mount])
        ssd.reset()
        rounds(mount, size, pace)
        output_of([BIN / "streamctl", "sync", mount])
        return ssd.counters()
