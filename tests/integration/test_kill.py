"""kill -9 of the server at random moments: nothing that was fsync'd is lost, ever."""

import contextlib
import os
import random
import sqlite3
import statistics
import subprocess
import sys
import textwrap
import time
from pathlib import Path

from tests.integration.pairs import BIN, Mount, Pair, run

ROUNDS = 30
REMOUNT_SECONDS = 0.1

# Writes files with contents that their names tell, fsyncs some, and says so only afterwards.
WORKLOAD = textwrap.dedent("""
    import os, random, sqlite3, sys
    root, seed, note = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    dice = random.Random(seed)
    base = sqlite3.connect(os.path.join(root, "base.db"), isolation_level=None)
    base.execute("create table if not exists t (k integer primary key, v text)")
    number = 0
    while True:
        number += 1
        name = f"{seed}-{number}"
        path = os.path.join(root, f"d{number % 7}", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        size = dice.choice([0, 10, 4096, 5000, 70000, 300000])
        with open(path + ".tmp", "wb") as file:
            file.write((name.encode() + b"|") * (size // (len(name) + 1)))
            file.flush()
            if number % 3:
                os.fsync(file.fileno())
        os.rename(path + ".tmp", path)
        if number % 3:
            os.write(note, f"file {path} {os.path.getsize(path)}\\n".encode())
        if number % 5 == 0:
            base.execute("insert into t values (?, ?)", (seed * 100000 + number, "x" * 100))
            os.write(note, f"row {seed * 100000 + number}\\n".encode())
        if number % 11 == 0:
            os.write(note, f"going {path}\\n".encode())
            os.unlink(path)
            os.write(note, f"gone {path}\\n".encode())
""")


def work_until_killed(mount: Mount, seed: int, notes: Path) -> None:
    """Run the workload for a random while, then kill the server under it."""
    with notes.open("ab") as note:
        worker = subprocess.Popen(
            [sys.executable, "-c", WORKLOAD, str(mount.point), str(seed), str(note.fileno())],
            pass_fds=[note.fileno()],
            stderr=subprocess.DEVNULL,
        )
        time.sleep(random.Random(seed).uniform(0.05, 0.6))
        mount.process.kill()
        worker.kill()
        worker.wait()  # before the dead mount goes, or it would write below it
        mount.kill()


def check_files(notes: Path) -> int:
    """Every file that was said to be durable has its content; every unlinked one is gone.

    An unlink that was under way when the server died may have happened or not; where it has not,
    the file is whole.
    """
    said: dict[str, int] = {}
    going: set[str] = set()
    for line in notes.read_text().splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "file":
            path, _, size = rest.rpartition(" ")
            said[path] = int(size)
        elif kind == "going":
            going.add(rest)
        elif kind == "gone":
            said.pop(rest, None)
            assert not Path(rest).exists(), f"{rest} came back"
    for name, length in said.items():
        if name in going and not Path(name).exists():
            continue
        content = Path(name).read_bytes()
        word = Path(name).name.encode() + b"|"
        assert content == word * (length // len(word)), f"{name}: {len(content)} of {length} bytes"
    return len(said)


def check_rows(mount: Mount, notes: Path) -> None:
    """SQLite is whole and has every row whose insert returned."""
    base = sqlite3.connect(mount / "base.db")
    assert base.execute("pragma integrity_check").fetchone() == ("ok",)
    with contextlib.suppress(sqlite3.OperationalError):  # no table yet
        rows = {row[0] for row in base.execute("select k from t")}
        said = [line.split() for line in notes.read_text().splitlines()]
        missing = {int(words[1]) for words in said if words[0] == "row"} - rows
        assert not missing, f"rows lost: {sorted(missing)[:5]}"
    base.close()


def remount_seconds(pair: Pair) -> tuple[Mount, float]:
    mount = pair.mount()
    return mount, mount.mount_seconds


def test_nothing_fsynced_is_lost_in_thirty_kills(pair: Pair) -> None:
    notes = pair.folder / "notes"
    notes.touch()
    seed = random.SystemRandom().randrange(1, 10**6)
    print(f"seed {seed}")  # noqa: T201
    mount = pair.mount()
    remounts = []
    for i in range(ROUNDS):
        work_until_killed(mount, seed + i, notes)
        pair.assert_sound()
        mount, seconds = remount_seconds(pair)
        remounts.append(seconds)
        checked = check_files(notes)
        check_rows(mount, notes)
    assert checked > ROUNDS, "too little was written to mean anything"
    usual = statistics.median(remounts)  # a busy machine may halt any one of them
    assert usual < REMOUNT_SECONDS, f"a remount takes {usual * 1000:.0f} ms (seed {seed})"


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
