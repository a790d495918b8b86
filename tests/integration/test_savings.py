"""The daemon's shadow devices beside the emulated SSD's own counts, and what is told of them."""

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.integration.pairs import BIN, Mount, Pair, run, until

MIB = 1 << 20
PAGE = 4096
FILES = 44  # of 1 MiB, of a device of 96 MiB
HOT_PAGES = 24 * 256


# It tells the filesystem every five seconds; here nobody waits for that.
OFTEN = (
    "import sys; from classifierd import cli, daemon; "
    "daemon._TELL_SECONDS = 0.2; sys.exit(cli.main(sys.argv[1:]))"
)


@contextmanager
def daemon(mount: Mount, state: Path) -> Iterator[None]:
    """Learning, until the end."""
    words: list[str | Path] = [sys.executable, "-c", OFTEN, "run", mount.point]
    words += ["--state", state]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL) as process:
        try:
            until(lambda: mount.status()["saved"] is not None, 30, "the daemon")
            yield
        finally:
            process.send_signal(signal.SIGTERM)


def work(mount: Mount, rounds: int = 120) -> None:
    """Random overwrites beside files that are replaced now and then; the same in every run."""
    chance = random.Random(7)
    for number in range(FILES):
        (mount / f"cold{number}").write_bytes(chance.randbytes(MIB))
    (mount / "hot").write_bytes(bytes(HOT_PAGES * PAGE))
    with (mount / "hot").open("r+b", buffering=0) as hot:
        for number in range(rounds):
            for _ in range(256):
                hot.seek(chance.randrange(HOT_PAGES) * PAGE)
                hot.write(chance.randbytes(PAGE))
            os.fsync(hot.fileno())
            (mount / f"cold{chance.randrange(FILES)}").write_bytes(chance.randbytes(MIB))
            if number % 8 == 0:
                run(BIN / "streamctl", "sync", mount.point)
    run(BIN / "streamctl", "sync", mount.point)


def told(mount: Mount, written_bytes: int) -> dict[str, int]:
    """The daemon's report once it has seen about so many bytes."""

    def everything() -> dict[str, int]:
        figures: dict[str, int] = mount.status()["saved"]["all"]
        return figures

    until(lambda: everything()["written_bytes"] >= 0.97 * written_bytes, 30, "the daemon's figures")
    return everything()


def next_said(mount: Mount, before: int) -> int:
    """The first other count of bytes written that a daemon says while something is written."""

    def written() -> int:
        (mount / "more").write_bytes(os.urandom(MIB))
        run(BIN / "streamctl", "sync", mount.point)
        said: int = mount.status()["saved"]["all"]["written_bytes"]
        return said

    until(lambda: written() != before, 60, "the next daemon's figures")
    said: int = mount.status()["saved"]["all"]["written_bytes"]
    return said


def made(make_pair: Callable[..., Pair], name: str) -> Pair:
    """An SSD that is nearly full in a moment; the log's writes are none of placement's."""
    pair = make_pair(name, size="96M")
    pair.mkfs("--no-meta-log")
    return pair


def test_the_shadow_counts_as_the_ssd_does_and_as_one_without_streams_would(
    make_pair: Callable[..., Pair], tmp_path: Path
) -> None:
    if os.environ.get("STREAMFS_TEST_DATA"):
        pytest.skip("an emulated SSD is needed: it counts")
    # The shadow is told of what is held in memory as of what is written.
    every = ("idle_work=off", "write_behind_mib=0")
    on = made(make_pair, "on").mount(*every)
    with daemon(on, tmp_path):
        work(on)
        device = on.status()["device"]
        shadow = told(on, device["written_bytes"])
    off = made(make_pair, "off").mount(*every, "placement=off")
    work(off)
    without = off.status()["device"]
    assert without["nand_bytes"] > 1.1 * without["written_bytes"]  # or it proves nothing
    assert shadow["nand_placed_bytes"] == pytest.approx(device["nand_bytes"], rel=0.1)
    assert shadow["nand_off_bytes"] == pytest.approx(without["nand_bytes"], rel=0.1)
    # The daemon has gone, and what it said is still there, for people as well.
    assert on.status()["saved"]["all"] == shadow
    assert "of NAND" in run(BIN / "streamctl", "status", on.point).stdout
    # The next one goes on counting.
    with daemon(on, tmp_path):
        assert next_said(on, shadow["written_bytes"]) > shadow["written_bytes"]


def test_metrics_and_a_report_come_by_way_of_streamctl(mounted: Mount, tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    (mounted / "file").write_bytes(bytes(MIB))
    page = tmp_path / "report.html"
    commands: list[list[str | Path]] = [
        ["metrics", "--once", mounted.point],
        ["report", mounted.point, "-o", page],
    ]
    for words in commands:
        done = run(BIN / "streamctl", *words, env=environment)
        if words[0] == "metrics":
            assert f'streamfs_up{{mountpoint="{mounted.point}"}} 1.0' in done.stdout
            assert 'op="write"' in done.stdout
    assert page.read_text().startswith("<!doctype html>")
    assert json.dumps(mounted.status()["saved"]) == "null"
