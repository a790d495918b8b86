"""The promises of .ci/leaks.py and .ci/pytest_fuse.py: no leftovers, no convenient skips."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from leaks import LEFT_CODE

CI = Path(__file__).resolve().parents[2] / ".ci"


def under_watch(
    *command: str, folder: Path | None = None, watch: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    watched = [*watch, sys.executable, str(CI / "leaks.py"), *command]
    environment = {**os.environ, "TMPDIR": str(folder)} if folder else None
    return subprocess.run(
        watched, check=False, capture_output=True, text=True, timeout=30, env=environment
    )


def test_a_command_that_leaves_nothing_keeps_its_exit_code() -> None:
    assert under_watch("true").returncode == 0
    assert under_watch("sh", "-c", "exit 7").returncode == 7


def test_a_daemon_that_forked_itself_away_is_reported_and_ended(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    daemon = f"setsid sh -c 'echo $$ > {note}; exec sleep 300' >/dev/null 2>&1 & sleep 0.3"
    done = under_watch("sh", "-c", daemon)
    assert done.returncode == LEFT_CODE
    assert f"left behind: process {note.read_text().strip()}: sleep 300" in done.stdout
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)


def test_a_leak_of_a_command_that_failed_is_told_apart() -> None:
    failed = under_watch("sh", "-c", "setsid sleep 300 & exit 1")
    assert failed.returncode == LEFT_CODE


@pytest.mark.skipif(os.geteuid() != 0, reason="another user's process needs root")
def test_a_process_that_cannot_be_killed_is_reported(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    theirs = f"echo $$ > {note}; exec setpriv --reuid 65534 sleep 300"
    command = ["sh", "-c", f"setsid sh -c '{theirs}' >/dev/null 2>&1 & sleep 0.3"]
    try:
        done = under_watch(*command, watch=("setpriv", "--bounding-set", "-kill"))
    finally:
        os.kill(int(note.read_text()), signal.SIGKILL)
    assert done.returncode == LEFT_CODE, done.stderr
    process = note.read_text().strip()
    assert f"left behind: process {process}: sleep 300 (cannot be killed)" in done.stdout


def test_a_process_that_ends_in_time_is_no_leak() -> None:
    assert under_watch("sh", "-c", "setsid sleep 0.5 &").returncode == 0


TIDIES_UP = """
trap 'echo >tidy; exit' INT
setsid --fork sh -c 'echo $$ >daemon.new; mv daemon.new daemon; exec sleep 300'
while :; do sleep 0.05; done
"""


def test_a_terminated_watch_interrupts_the_command_and_ends_daemons(tmp_path: Path) -> None:
    note = tmp_path / "daemon"
    watch = subprocess.Popen([sys.executable, CI / "leaks.py", "sh", "-c", TIDIES_UP], cwd=tmp_path)
    deadline = time.monotonic() + 30
    while not note.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    watch.terminate()
    assert watch.wait(timeout=30) == 128 + signal.SIGTERM
    assert (tmp_path / "tidy").exists()
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)


def parent_of(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def test_a_watch_that_is_terminated_after_its_command_ends_daemons(tmp_path: Path) -> None:
    note = tmp_path / "daemon"
    daemon = "setsid sh -c 'echo $$ >daemon.new; mv daemon.new daemon; exec sleep 300' &"
    watch = subprocess.Popen([sys.executable, CI / "leaks.py", "sh", "-c", daemon], cwd=tmp_path)
    deadline = time.monotonic() + 30
    while not note.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process = int(note.read_text())
    while parent_of(process) != watch.pid and time.monotonic() < deadline:
        time.sleep(0.01)
    watch.terminate()
    assert watch.wait(timeout=30) == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="loop devices need root")
def test_a_loop_device_left_attached_is_reported(tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.write_bytes(bytes(1 << 20))
    done = under_watch("losetup", "--find", "--show", str(image), folder=tmp_path)
    device, report = done.stdout.split("\n", 1)
    subprocess.run(["losetup", "--detach", device], check=True)
    assert done.returncode == LEFT_CODE
    assert str(image) in report


# A mount that no server answers: enough to be in the table of mounts.
MOUNT = """
import ctypes, os, sys
fuse = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0".encode()
sys.exit(ctypes.CDLL(None).mount(b"x", sys.argv[1].encode(), b"fuse.streamfs", 0, options))
"""


def mount_under_watch(place: Path, of_the_run: Path) -> subprocess.CompletedProcess[str]:
    place.mkdir()
    try:
        return under_watch(sys.executable, "-c", MOUNT, str(place), folder=of_the_run)
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="mount(2) needs root")
@pytest.mark.skipif(not Path("/dev/fuse").exists(), reason="no device node")
def test_a_mount_left_in_place_is_reported(tmp_path: Path) -> None:
    done = mount_under_watch(tmp_path / "mine", of_the_run=tmp_path)
    assert done.returncode == LEFT_CODE
    assert f"left behind: mount fuse.streamfs on {tmp_path}/mine" in done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="mount(2) needs root")
@pytest.mark.skipif(not Path("/dev/fuse").exists(), reason="no device node")
def test_a_mount_of_somebody_else_is_no_leak(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    done = mount_under_watch(tmp_path / "theirs", of_the_run=run)
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(not Path("/dev/fuse").exists(), reason="needs a device node to contradict")
@pytest.mark.parametrize(("reason", "code"), [("no FUSE here", 1), ("needs root", 0)])
def test_a_skip_for_want_of_fuse_fails_where_fuse_is(
    tmp_path: Path, reason: str, code: int
) -> None:
    (tmp_path / "test_x.py").write_text(
        f"import pytest\n\n@pytest.mark.skip(reason={reason!r})\ndef test_x(): pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "pytest_fuse", "-c", os.devnull, str(tmp_path)]
    skipped = tmp_path / "skipped"
    environment = {**os.environ, "PYTHONPATH": str(CI), "STREAMFS_SKIPPED": str(skipped)}
    done = subprocess.run(command, check=False, capture_output=True, env=environment, timeout=60)
    assert done.returncode == code
    counted = skipped.read_text() if skipped.exists() else ""
    assert counted == ("" if code else f"test_x.py::test_x: {reason}\n")
