"""kill -9 of the server at random moments: nothing that was fsync'd is lost, ever."""

import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.integration import promises
from tests.integration.pairs import BIN, Mount, Pair, run

REMOUNT_SECONDS = 0.1


def work_until_killed(mount: Mount, seed: int, notes: Path) -> None:
    """Run the workload for a random while, then kill the server under it."""
    with notes.open("ab") as note:
        worker = subprocess.Popen(
            [sys.executable, promises.__file__, "work", str(mount.point), str(seed)],
            stdout=note,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(random.Random(seed).uniform(0.05, 0.6))
        mount.process.kill()
        worker.kill()
        worker.wait()  # before the dead mount goes, or it would write below it
        mount.kill()


def remount_seconds(pair: Pair) -> tuple[Mount, float]:
    mount = pair.mount()
    return mount, mount.mount_seconds


@pytest.mark.quick
@pytest.mark.parametrize("rounds", [10, pytest.param(50, marks=pytest.mark.long)])
def test_nothing_fsynced_is_lost_when_it_is_killed(pair: Pair, rounds: int) -> None:
    notes = pair.folder / "notes"
    notes.touch()
    seed = random.SystemRandom().randrange(1, 10**6)
    print(f"seed {seed}")  # noqa: T201
    mount = pair.mount()
    remounts = []
    for i in range(rounds):
        work_until_killed(mount, seed + i, notes)
        pair.assert_sound()
        mount, seconds = remount_seconds(pair)
        remounts.append(seconds)
        checked = promises.check(mount.point, notes.read_text())
    assert checked > rounds, "too little was written to mean anything"
    usual = statistics.median(remounts)  # a busy machine may halt any one of them
    assert usual < REMOUNT_SECONDS, f"a remount takes {usual * 1000:.0f} ms (seed {seed})"


@pytest.mark.quick
def test_a_volatile_meta_that_is_gone_comes_back_from_the_log(pair: Pair) -> None:
    volatile = Path(f"/dev/shm/streamfs-test-{os.getpid()}")
    pair.meta = volatile
    try:
        said = pair.mkfs("-f")
        assert "volatile" in said
        mount = pair.mount()
        (mount / "clean").write_bytes(b"clean" * 10_000)
        mount.unmount()
        volatile.unlink()
        mount = pair.mount()
        assert (mount / "clean").read_bytes() == b"clean" * 10_000
        with (mount / "synced").open("wb") as file:
            file.write(b"synced" * 10_000)
            file.flush()
            os.fsync(file.fileno())
        mount.kill()
        volatile.unlink()
        mount = pair.mount()
        assert (mount / "synced").read_bytes() == b"synced" * 10_000
        assert (mount / "clean").read_bytes() == b"clean" * 10_000
        mount.unmount()
        pair.assert_sound()
    finally:
        for each in pair.mounts:
            each.end()
        volatile.unlink(missing_ok=True)


def test_the_control_socket_survives_its_mounts_death(pair: Pair) -> None:
    pair.mount().kill()
    mount = pair.mount()
    assert mount.status()["meta_class"] == "synced"
    assert run(BIN / "streamctl", "sync", mount.point).returncode == 0
