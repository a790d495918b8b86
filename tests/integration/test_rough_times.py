"""Maintenance at the wrong moment: beside heavy writes, while mounting, at a signal, without room.

Nothing that was fsync'd is lost, and whoever asked is told what happened.
"""

import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.integration.pairs import BIN, DRAIN_SECONDS, Mount, Pair, run, until

BLOCK = 4096
SUPERBLOCKS = (0, 64 << 10)  # where META's two are
BLOCKS = 5000  # of the file that is written all the time
JOBS = (
    ("trim",),
    ("maintain", "--seconds", "1"),
    ("scrub", "start", "--wait"),
    ("prepare-poweroff", "--deadline", "1"),
    ("sync",),
)


class Writer(threading.Thread):
    """Rewrites blocks of a file, fsyncs, deletes and makes others, until it is told or cut off."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.synced: dict[int, bytes] = {}  # a block's content is this or a later version
        self.rounds = 0
        self.over = False
        self.draw = random.Random(7)

    def run(self) -> None:
        """Write until it fails or is over."""
        try:
            with (self.folder / "file").open("w+b", buffering=0) as file:
                while not self.over:
                    self._round(file.fileno())
        except OSError:
            return

    def _round(self, fd: int) -> None:
        now: dict[int, bytes] = {}
        for _ in range(200):
            block = self.draw.randrange(BLOCKS)
            now[block] = self.rounds.to_bytes(4, "little") + block.to_bytes(4, "little")
            os.pwrite(fd, now[block] * (BLOCK // 8), block * BLOCK)
        os.fsync(fd)
        self.synced.update(now)
        gone = self.folder / f"gone-{self.rounds}"
        gone.write_bytes(bytes(20 * BLOCK))
        gone.unlink()
        self.rounds += 1

    def go_on(self) -> None:
        """Wait for the end of another round."""
        before = self.rounds
        until(lambda: self.rounds > before, 30, "programs to go on")

    def check(self) -> None:
        """Each block holds what was synced last, or something written after that."""
        content = (self.folder / "file").read_bytes()
        for block, expected in self.synced.items():
            found = content[block * BLOCK : (block + 1) * BLOCK]
            assert found == found[:8] * (BLOCK // 8), block
            assert found[4:8] == expected[4:8], block
            version = int.from_bytes(found[:4], "little")
            assert version >= int.from_bytes(expected[:4], "little"), block


@contextmanager
def writing(mounted: Mount) -> Iterator[Writer]:
    """A writer at work."""
    writer = Writer(mounted.point)
    writer.start()
    try:
        yield writer
    finally:
        writer.over = True
        writer.join(DRAIN_SECONDS)


@pytest.fixture
def small(make_pair: Callable[..., Pair]) -> Pair:
    """A pair whose SSD is soon full."""
    one = make_pair(size="64M")
    one.mkfs()
    return one


def start(mounted: Mount) -> list[subprocess.Popen[str]]:
    """Everything at once."""
    return [
        subprocess.Popen(
            [BIN / "streamctl", *job, str(mounted.point)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for job in JOBS
    ]


def test_all_jobs_at_once_beside_heavy_writes_work_and_lose_nothing(small: Pair) -> None:
    mounted = small.mount()
    with writing(mounted) as writer:
        writer.go_on()
        for job, one in zip(JOBS, start(mounted), strict=True):
            said, wrong = one.communicate(timeout=60)
            assert one.returncode == 0, (job, said, wrong)
        writer.go_on()
    mounted.unmount()
    small.assert_sound()
    again = small.mount()
    writer.check()
    again.unmount()


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_during_everything_loses_nothing_synced(small: Pair, sent: int) -> None:
    mounted = small.mount()
    with writing(mounted) as writer:
        writer.go_on()
        jobs = start(mounted)
        time.sleep(0.1)
        mounted.process.send_signal(sent)
        for one in jobs:
            _, wrong = one.communicate(timeout=60)
            assert one.returncode in (0, *range(1, 78)), (one.args, wrong)
            assert one.returncode == 0 or wrong, "who could not go on says so"
        writer.over = True  # a program that has a file open is served until it closes it
        writer.join(DRAIN_SECONDS)
        assert mounted.process.wait(DRAIN_SECONDS) == (0 if sent == signal.SIGTERM else -sent)
        mounted.end()
    assert writer.synced
    small.fsck()
    again = small.mount()
    writer.check()
    again.unmount()
    small.assert_sound()


def test_a_trim_while_it_mounts_is_refused_or_done(small: Pair) -> None:
    said: set[str] = set()
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            done = run(BIN / "streamctl", "trim", small.point, check=False)
            said.add("" if done.returncode == 0 else done.stderr)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        for _ in range(3):
            mounted = small.mount()
            mounted.process.send_signal(signal.SIGTERM)  # umount(8) finds it busy: somebody asks
            assert mounted.process.wait(DRAIN_SECONDS) == 0
            mounted.end()
    finally:
        over.set()
        asking.join()
    assert said
    again = small.mount()
    run(BIN / "streamctl", "trim", small.point)
    again.unmount()
    for sentence in said - {""}:
        assert str(small.point) in sentence, sentence
    small.assert_sound()


def test_without_room_in_run_it_mounts_and_says_what_is_missing(small: Pair) -> None:
    script = (
        "mount -t tmpfs -o size=4k,nr_inodes=2 none /run && : >/run/full && "
        '"$1" "$2" "$3" -f -o "meta=$4" 2>&1 & '
        'for i in $(seq 200); do mountpoint -q "$3" && break; sleep 0.05; done; '
        'mountpoint -q "$3" && echo kept >"$3/file" && cat "$3/file"; umount "$3"; wait'
    )
    words = ("unshare", "-m", "sh", "-c", script, "sh", BIN / "streamfs", small.data)
    done = run(*words, small.point, small.meta, check=False)
    assert "kept\n" in done.stdout, done.stdout
    assert "control socket" in done.stdout
    assert "/run/streamfs" in done.stdout
    mounted = small.mount()
    assert (mounted / "file").read_text() == "kept\n"
    mounted.unmount()


@pytest.mark.parametrize("version", [0, 4])
def test_another_versions_format_is_refused_and_left_as_it_is(small: Pair, version: int) -> None:
    mounted = small.mount()
    (mounted / "file").write_text("kept")
    mounted.unmount()
    whole = small.meta.read_bytes()
    content = bytearray(whole)
    for at in SUPERBLOCKS:
        content[at + 8 : at + 12] = version.to_bytes(4, "little")
        small.meta.write_bytes(content)
        if at == SUPERBLOCKS[0]:  # the other one serves; and mends it, were it written to
            assert small.fsck("-n", "-f").returncode in (0, 4)
    for words in (
        ("streamfs", small.data, small.point, "-f", "-o", f"meta={small.meta}"),
        ("fsck.streamfs", "-n", "--meta", small.meta, small.data),
        ("fsck.streamfs", "-y", "-f", "--meta", small.meta, small.data),
        ("mkfs.streamfs", "--meta", small.meta, small.data),
    ):
        done = run(BIN / words[0], *words[1:], check=False, timeout=20)
        assert done.returncode != 0, words
        if words[0] != "mkfs.streamfs":
            assert f"format version {version}, this streamfs knows" in done.stderr, done.stderr
    assert small.meta.read_bytes() == content
    small.meta.write_bytes(whole)
    again = small.mount()
    assert (again / "file").read_text() == "kept"
    again.unmount()
    small.assert_sound()
