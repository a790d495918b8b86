"""The wall clock jumps while a filesystem is mounted: only what is dated by it changes."""

import json
import mmap
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from operator import ge
from pathlib import Path

import pytest
from tests.integration.pairs import BIN, Mount, Pair, run, until

CLOCK_C = Path(__file__).parent / "jumping_clock.c"
DAY = 86_400
JUMPS = {"forwards": 400 * DAY, "before the mount": -3000 * DAY, "far": 9000 * DAY, "back": 0}
FILE_BYTES = 76 << 20
BLOCK = 4096
TELL_SECONDS = 0.2
OFTEN = (
    "import sys; from classifierd import cli, daemon; "
    f"daemon._TELL_SECONDS = {TELL_SECONDS}; sys.exit(cli.main(sys.argv[1:]))"
)


class WallClock:
    """The time of day, as programs started under it see it."""

    def __init__(self, folder: Path) -> None:
        library, path = folder / "clock.so", folder / "off"
        run("cc", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", library, CLOCK_C)
        path.write_bytes(bytes(8))
        with path.open("r+b") as file:
            self._off = mmap.mmap(file.fileno(), 8)
        self.environment = {"LD_PRELOAD": str(library), "JUMPING_CLOCK": str(path)}

    def jump(self, seconds: int) -> None:
        """Be off by so much from now on."""
        self._off[:] = seconds.to_bytes(8, sys.byteorder, signed=True)


@pytest.fixture
def clock(tmp_path: Path) -> WallClock:
    """A clock that is right."""
    return WallClock(tmp_path)


@pytest.fixture
def mount_under(
    make_pair: Callable[..., Pair], clock: WallClock, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[Pair, Mount]]:
    """Mount a small pair whose programs go by the clock."""

    def mount(*options: str) -> tuple[Pair, Mount]:
        pair = make_pair(size="96M")
        if pair.given:
            pytest.skip("the counters of an emulated SSD are looked at")
        pair.mkfs()
        with monkeypatch.context() as only_here:
            for name, value in clock.environment.items():
                only_here.setenv(name, value)
            return pair, pair.mount(*options)

    return mount


@contextmanager
def daemon(mount: Mount, state: Path, clock: WallClock) -> Iterator[None]:
    """classifierd under the same clock, telling often; it ends in order."""
    words: list[str | Path] = [sys.executable, "-c", OFTEN, "run", mount.point, "--state", state]
    environment = {**os.environ, **clock.environment}
    with subprocess.Popen(words, stderr=subprocess.DEVNULL, env=environment) as process:
        try:
            until(lambda: mount.status()["saved"] is not None, 60, "the daemon")
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            code = process.wait(60)
        assert code == 0


class Content:
    """A file rewritten here and there, and what it should hold."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bytes = bytearray(FILE_BYTES)
        self.draw = random.Random(1)
        path.write_bytes(self.bytes)

    def rewrite(self, blocks: int) -> None:
        """Change some blocks; they are on the device when this returns."""
        with self.path.open("r+b", buffering=0) as file:
            for number in range(blocks):
                at = self.draw.randrange(FILE_BYTES // BLOCK) * BLOCK
                self.bytes[at : at + BLOCK] = self.draw.randbytes(8) * (BLOCK // 8)
                os.pwrite(file.fileno(), self.bytes[at : at + BLOCK], at)
                if number % 1000 == 999:  # or the kernel keeps what is written twice
                    os.fdatasync(file.fileno())
            os.fsync(file.fileno())

    def rewrite_one_unsynced(self) -> None:
        """Past the kernel's cache, and left to the filesystem to make durable."""
        self.bytes[:BLOCK] = self.draw.randbytes(BLOCK)
        with mmap.mmap(-1, BLOCK) as page:
            page[:] = self.bytes[:BLOCK]
            fd = os.open(self.path, os.O_WRONLY | os.O_DIRECT)
            try:
                os.pwritev(fd, [page], 0)
            finally:
                os.close(fd)


def ssd(pair: Pair) -> dict[str, int]:
    """The counters of the emulated SSD."""
    told = json.loads(run(BIN / "ssd-sim", "info", pair.image, "--json").stdout)
    counted: dict[str, int] = told.get("device", told)
    return counted


def history(mount: Mount) -> tuple[list[list[int]], int]:
    """The moments that the daemon told, and all that it knows to be written."""
    path = run("getfattr", "--only-values", "-n", "user.streamfs.control", mount.point).stdout
    script = (
        "import socket,sys;s=socket.socket(socket.AF_UNIX);s.connect(sys.argv[1]);"
        's.sendall(b\'{"op":"savings"}\\n\');print(s.makefile().readline())'
    )
    told = json.loads(run(sys.executable, "-c", script, path.rstrip("\0")).stdout)
    return told["history"], told["saved"]["all"]["written_bytes"]


def known(mount: Mount) -> tuple[int, int]:
    """How many moments, and how much written."""
    moments, written = history(mount)
    return len(moments), written


def longest_ms(mount: Mount) -> int:
    """How long what lives longest of what is known is thought to live."""
    return max(int(stream["lifetime_ms"]) for stream in mount.streams())


def runnable_seconds(pid: int) -> dict[str, float]:
    """How long each thread has run or waited for a processor (schedstat)."""
    out = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            ran, waited, _ = (task / "schedstat").read_text().split()
            out[task.name] = (int(ran) + int(waited)) / 1e9
    return out


def busiest(pid: int) -> float:
    """The share of a second in which the busiest thread wanted to run; a spin does all the time.

    Whether it got a processor does not matter.
    """
    before, begun = runnable_seconds(pid), time.monotonic()
    time.sleep(1)
    after, seconds = runnable_seconds(pid), time.monotonic() - begun
    return max(after[task] - before.get(task, 0.0) for task in after) / seconds


def look_again(pair: Pair, mount: Mount, content: Content) -> None:
    """Nothing is lost, and what is dated by the wall clock is dated as it was."""
    mount.unmount()
    run(BIN / "fsck.streamfs", "-n", "-f", "--meta", pair.meta, pair.data)
    again = pair.mount()
    assert (again / "file").read_bytes() == content.bytes
    for name, seconds in JUMPS.items():
        assert abs((again / name).stat().st_ctime - time.time() - seconds) < 120


def test_epochs_and_trims_go_on(
    mount_under: Callable[..., tuple[Pair, Mount]], clock: WallClock
) -> None:
    pair, mount = mount_under("idle_work=off")
    content = Content(mount / "file")
    for name, seconds in JUMPS.items():
        clock.jump(seconds)
        (mount / name).touch()
        assert abs((mount / name).stat().st_ctime - time.time() - seconds) < 60, "it jumped"
        (mount / "trimmed").write_bytes(bytes(1 << 20))
        content.rewrite(1000)
        run(BIN / "streamctl", "sync", mount.point)
        epochs = mount.status()["epochs"]
        content.rewrite_one_unsynced()
        (mount / "trimmed").unlink()
        until(lambda before=epochs: mount.status()["epochs"] > before, 60, "an epoch")  # type: ignore[misc]
        until(lambda: mount.status()["dirty_inodes"] == 0, 60, "a flush by itself")
        until(lambda: mount.status()["trims_pending_blocks"] == 0, 60, "trims")
    # The least of three counts: on a busy machine a thread that wakes up waits.
    assert min(busiest(mount.process.pid) for _ in range(3)) < 0.5, "nothing spins"
    look_again(pair, mount, content)


def test_idle_work_goes_on(
    mount_under: Callable[..., tuple[Pair, Mount]], clock: WallClock
) -> None:
    pair, mount = mount_under("idle_work=always", "placement=off")
    content = Content(mount / "file")
    for name, seconds in JUMPS.items():
        clock.jump(seconds)
        (mount / name).touch()
        collected = ssd(pair)["idle_gc_bytes"]
        content.rewrite(15_000)  # after which the SSD has to collect garbage
        until(lambda before=collected: ssd(pair)["idle_gc_bytes"] > before, 60, "idle work")  # type: ignore[misc]
    look_again(pair, mount, content)


def test_what_streams_save_goes_on_and_stays_in_order(
    mount_under: Callable[..., tuple[Pair, Mount]], clock: WallClock, tmp_path: Path
) -> None:
    _, mount = mount_under()
    content = Content(mount / "file")
    began = time.time()
    with daemon(mount, tmp_path, clock):
        for seconds in JUMPS.values():
            count, written = known(mount)
            clock.jump(seconds)
            content.rewrite(6000)
            more = (count + 1, written + 1)
            until(lambda least=more: all(map(ge, known(mount), least)), 60, "a moment")  # type: ignore[misc]
            until(lambda: longest_ms(mount) > 0, 60, "a lifetime")
            assert longest_ms(mount) < 3_600_000, "this mount is minutes old"
        moments, _ = history(mount)
    times = [moment[0] / 1000 for moment in moments]
    assert times == sorted(times)
    assert began - 1 < times[0], "and is right, now that the clock is"
    assert times[-1] < time.time() + 1
    (state,) = tmp_path.glob("*.saved")
    told = json.loads(state.read_text())
    assert len(told["months"]) >= len(JUMPS)  # one more at a month's end
    summed = sum(month["written"] for month in told["months"].values())
    assert summed == pytest.approx(told["all"]["written"])
