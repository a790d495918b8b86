"""What a change of metadata costs, as streamctl status counts it."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.pairs import Mount

COUNT = 50


def prepare(mount: Mount, prefix: str) -> None:
    for i in range(COUNT):
        os.mknod(mount / f"{prefix}{i}")


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
    assert {"fences", "lines_flushed", "words_programmed", "block_words"} <= set(status["meta"])
