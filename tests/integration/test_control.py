"""The control socket of a mount among several users."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.integration.pairs import BIN, Mount, Pair, run, until

STRANGER = 65534
AS_STRANGER = ("setpriv", "--reuid", str(STRANGER), "--regid", str(STRANGER), "--clear-groups")
# Holds as many connections as it gets, says how many, and goes when its input ends.
HOLD = """
import contextlib, socket, sys
held = []
for _ in range(100):
    peer = socket.socket(socket.AF_UNIX)
    peer.connect(sys.argv[1])
    with contextlib.suppress(BrokenPipeError):
        peer.sendall(b'{"op": "metrics"}\\n')
    if b'"ok":true' not in peer.makefile("rb").readline():
        break
    held.append(peer)
print(len(held), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def reached(needs_fuse: None) -> Iterator[Mount]:  # noqa: ARG001
    """A mount in a folder that other users may look into."""
    folder = Path(tempfile.mkdtemp(prefix="streamfs-control-"))
    folder.chmod(0o755)
    try:
        pair = Pair(folder)
        try:
            pair.mkfs()
            yield pair.mount()
        finally:
            pair.end()
    finally:
        shutil.rmtree(folder)


def socket_of(mount: Mount) -> str:
    """Where it listens."""
    words = ("getfattr", "--only-values", "-n", "user.streamfs.control", mount.point)
    return run(*words).stdout.rstrip("\0")


@contextmanager
def all_held_by_a_stranger(path: str) -> Iterator[int]:
    """Another user holds what connections it gets: how many."""
    words = [*AS_STRANGER, sys.executable, "-c", HOLD, path]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as holder:
        assert holder.stdout is not None
        yield int(holder.stdout.readline())
        assert holder.communicate("", timeout=20)
        assert holder.returncode == 0


def test_an_ordinary_user_may_look_and_not_touch(reached: Mount) -> None:
    seen = json.loads(
        run(*AS_STRANGER, BIN / "streamctl", "status", reached.point, "--json").stdout
    )
    assert seen["uuid"] == reached.status()["uuid"]
    refused = run(*AS_STRANGER, BIN / "streamctl", "sync", reached.point, check=False)
    assert refused.returncode != 0
    assert "for root and the user who mounted this" in refused.stderr


def streams_seen(mount: Mount, *as_whom: str) -> str:
    return run(*as_whom, BIN / "streamctl", "streams", mount.point, "--json").stdout


def test_an_ordinary_user_sees_no_names_of_others(reached: Mount, tmp_path: Path) -> None:
    """Names of programs and labels are hidden, also in a folder closed to that user."""
    private = reached / "private"
    private.mkdir(mode=0o700)
    program = tmp_path / "payroll"
    shutil.copy("/usr/bin/tee", program)
    run(program, private / "salaries", input="much")
    run("cp", "/bin/true", private / "base.db-wal")
    label = (b"user.streamfs.vstream", b"merger-plans")
    os.setxattr(private / "base.db-wal", *label)
    (private / "base.db-wal").unlink()
    run("cp", "/bin/true", private / "base.db-wal")
    secrets = ("payroll", "merger-plans")
    everything = streams_seen(reached)
    for name in (*secrets, "sqlite-wal"):
        assert name in everything
    seen = streams_seen(reached, *AS_STRANGER)
    assert "sqlite-wal" in seen
    assert not [name for name in secrets if name in seen]
    numbers = [each["vstream"] for each in json.loads(seen)["streams"]]
    assert numbers == [each["vstream"] for each in json.loads(everything)["streams"]]
    public = reached / "public"
    (private / "salaries").rename(public)
    public.chmod(0o644)
    words = ("getfattr", "--only-values", "-n", "user.streamfs.vstream", "public")
    assert "payroll" in run(*words, cwd=reached.point).stdout
    assert run(*AS_STRANGER, *words, cwd=reached.point).stdout.strip("\0").isdigit()


def test_one_user_who_holds_all_it_may_shuts_out_nobody(reached: Mount) -> None:
    look = (BIN / "streamctl", "status", reached.point)
    with all_held_by_a_stranger(socket_of(reached)) as held:
        assert held == 8
        turned_away = run(*AS_STRANGER, *look, check=False)
        assert turned_away.returncode != 0
        said = f"user {STRANGER} holds 8 connections to the control socket"
        assert said in turned_away.stderr
        assert "hung up" not in turned_away.stderr
        run(*look)
        run(BIN / "streamctl", "sync", reached.point)
    until(lambda: run(*AS_STRANGER, *look, check=False).returncode == 0, 10, "places given back")
