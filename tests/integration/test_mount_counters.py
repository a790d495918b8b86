"""The cost of a change of metadata, as streamctl status counts it."""

import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.pairs import BIN, Mount, Pair, run, until

COUNT = 50


def prepare(mount: Mount, prefix: str) -> None:
    for i in range(COUNT):
        os.mknod(mount / f"{prefix}{i}")


def settle(mount: Mount) -> None:
    """Create a file, and wait until its context is stored, which is a commit of its own."""
    os.mknod(mount / "first")

    def settled() -> bool:
        before = mount.status()["meta"]["commits"]
        time.sleep(1.5)
        return bool(mount.status()["meta"]["commits"] == before)

    until(settled, 30, "META to rest")


ACTIONS: dict[str, tuple[bool, Callable[[Path], object]]] = {
    "create": (False, os.mknod),
    "mkdir": (False, os.mkdir),
    "symlink": (False, lambda path: path.symlink_to("target")),
    "unlink": (True, os.unlink),
    "rename": (True, lambda path: path.rename(path.with_name("renamed-" + path.name))),
    "chmod": (True, lambda path: path.chmod(0o600)),
}


@pytest.mark.parametrize("action", ACTIONS)
def test_one_fence_each_on_the_critical_path(mounted: Mount, action: str) -> None:
    needs_file, change = ACTIONS[action]
    if needs_file:
        prepare(mounted, "f")
    settle(mounted)
    before = mounted.status()["meta"]
    for i in range(COUNT):
        change(mounted / f"f{i}")
    after = mounted.status()["meta"]
    assert after["commits"] - before["commits"] == COUNT
    assert after["commit_fences"] - before["commit_fences"] == COUNT


def test_status_says_what_programs_read(mounted: Mount) -> None:
    (mounted / "a").write_bytes(bytes(range(256)) * 4096)
    fd = os.open(mounted / "a", os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
    status = mounted.status()
    assert status["meta_class"] == "synced"
    assert status["app_bytes"] == 1 << 20
    device = status["device"]
    assert device["nand_bytes"] >= device["written_bytes"] >= 1 << 20
    assert device["waf"] == pytest.approx(device["nand_bytes"] / device["written_bytes"])
    assert device["effective_spare"] > 0
    assert {
        "fences", "lines_flushed", "words_programmed", "metadata_words", "block_words",
    } <= set(status["meta"])  # fmt: skip


def fill_in_sequence(mount: Mount) -> None:
    with (mount / "a").open("wb") as file:
        for _ in range(32):
            file.write(os.urandom(1 << 20))


def overwrite_at_random(mount: Mount) -> None:
    chance = random.Random(1)
    with (mount / "a").open("wb", buffering=0) as file:
        file.write(bytes(16 << 20))
        os.fsync(file.fileno())
        for number in range(1000):
            os.pwrite(file.fileno(), os.urandom(4096), chance.randrange(4096) * 4096)
            if number % 5 == 0:
                os.fsync(file.fileno())


def change_names(mount: Mount) -> None:
    for number in range(1000):
        (mount / f"a{number}").touch()
        (mount / f"a{number}").rename(mount / f"b{number}")


@pytest.mark.parametrize(
    ("load", "most"), [(fill_in_sequence, 0.6), (overwrite_at_random, 0.2), (change_names, 0.05)]
)
def test_the_words_ratio_leaves_checksums_of_data_out(
    pair: Pair, load: Callable[[Mount], None], most: float
) -> None:
    mount = pair.mount()
    assert "(\u2013 of the words" in run(BIN / "streamctl", "status", mount.point).stdout
    load(mount)
    run("sync", "-f", mount.point)
    run(BIN / "streamctl", "sync", mount.point)
    meta = mount.status()["meta"]
    assert 0 < meta["words_ratio"] <= most
    assert meta["words_ratio"] == pytest.approx(meta["metadata_words"] / meta["block_words"])
    if load is change_names:
        assert meta["metadata_words"] == meta["words_programmed"]
    else:  # a checksum is half a word
        assert meta["words_programmed"] - meta["metadata_words"] > 500
