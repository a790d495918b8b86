"""When data is durable that nobody has synced, and the barrier that waits for it."""

import mmap
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.integration.pairs import BIN, Pair, run

IDLE_SECONDS, AGE_SECONDS = 1.0, 5.0  # as the README promises
SLACK_SECONDS = 1.0  # of a busy machine
PAUSE_SECONDS = 0.2
MIB = 1 << 20
PAGE = 4096
DIRTY_MIB = 96


@contextmanager
def opened(path: Path, flags: int = 0) -> Iterator[int]:
    """Open a file for writing; that it is closed on a dead mount is no failure."""
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | flags, 0o644)
    try:
        yield fd
    finally:
        with suppress(OSError):
            os.close(fd)


def page(number: int) -> mmap.mmap:
    """Return an aligned page that says its number."""
    memory = mmap.mmap(-1, PAGE)
    memory[:] = number.to_bytes(8, "little") * (PAGE // 8)
    return memory


def found(path: Path) -> list[int]:
    """Read the numbers of a file's pages."""
    content = path.read_bytes()
    return [int.from_bytes(content[at : at + 8], "little") for at in range(0, len(content), PAGE)]


@pytest.mark.quick
def test_data_is_durable_a_second_after_the_last_write(pair: Pair) -> None:
    mount = pair.mount()
    with opened(mount / "a", os.O_DIRECT) as fd:  # past the page cache: the daemon's at once
        os.pwritev(fd, [page(7)], 0)
        time.sleep(IDLE_SECONDS + SLACK_SECONDS)
        mount.kill()
    assert found(pair.mount() / "a") == [7]


def test_under_steady_writing_it_is_after_five(pair: Pair) -> None:
    mount = pair.mount()
    began = time.monotonic()
    written: list[float] = []
    with opened(mount / "a", os.O_DIRECT) as fd:
        while time.monotonic() < began + AGE_SECONDS + SLACK_SECONDS:
            os.pwritev(fd, [page(len(written) + 1)], len(written) * PAGE)
            written.append(time.monotonic())
            time.sleep(PAUSE_SECONDS)  # never idle for a second
        killed = time.monotonic()
        mount.kill()
    due = [n for n, at in enumerate(written, 1) if at < killed - AGE_SECONDS - SLACK_SECONDS / 2]
    assert due
    assert found(pair.mount() / "a")[: len(due)] == due


def test_streamctl_sync_waits_for_the_page_cache_and_the_device(pair: Pair) -> None:
    """With epochs that never close by themselves, and more dirty pages than go at once."""
    mount = pair.mount("epoch_idle_ms=600000", "epoch_age_ms=600000")
    content = os.urandom(MIB) * DIRTY_MIB
    with opened(mount / "a") as fd:
        assert os.write(fd, content) == len(content)
        run(BIN / "streamctl", "sync", mount.point)
        mount.kill()
    assert (pair.mount() / "a").read_bytes() == content
