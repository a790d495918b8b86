"""How requests come from the kernel: chosen by what the machine offers, or by name."""

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.integration.pairs import BIN, ROOT, Mount, Pair, run, until
from tests.integration.transport import (
    DISABLED,
    EVENTFD2,
    SWITCH,
    allowing_io_uring,
    kept,
    refusing,
)

NO_FUSE = 69
ONLINE = Path("/sys/devices/system/cpu/cpu1/online")
HOW_TO_ALLOW = "echo Y >/sys/module/fuse/parameters/enable_uring"
# From each processor: makes files, writes, waits until one is durable, and reads. $0 is the mount.
WORK = """
for cpu in $1; do
  mkdir "$0/$cpu"
  taskset -c $cpu sh -ec '
    for name in 1 2 3 4; do head -c 3000000 /dev/urandom >"$0/$name"; done
    dd if="$0/1" of="$0/copy" bs=1M conv=fsync status=none
    dd if="$0/copy" of="$0/direct" bs=64k iflag=direct status=none
    cmp "$0/1" "$0/direct"
    rm "$0/2" && mv "$0/3" "$0/4" && ls -l "$0" >/dev/null
  ' "$0/$cpu"
  rm -r "$0/$cpu"
done
"""


def works(mount: Mount) -> None:
    """Requests from every processor are answered."""
    cpus = " ".join(str(cpu) for cpu in sorted(os.sched_getaffinity(0)))
    run("sh", "-ec", WORK, mount.point, cpus, timeout=60)


def over(mount: Mount) -> tuple[str, str]:
    """How requests come, and why."""
    status = mount.status()
    return status["kernel_transport"], status["kernel_transport_reason"]


def refusal(pair: Pair, option: str, before: Callable[[], None] | None = None) -> str:
    """Mount with an option that must fail for want of the transport; returns the line."""
    listed = f"meta={pair.meta},{option}"
    words: list[str | Path] = [BIN / "streamfs", pair.data, pair.point, "-f", "-o", listed]
    try:
        done = run(*words, check=False, preexec_fn=before, timeout=30)
    except subprocess.TimeoutExpired:
        run("umount", "-l", pair.point, check=False)
        raise
    assert done.returncode == NO_FUSE, done.stdout + done.stderr
    assert not pair.point.is_mount()
    return done.stderr.splitlines()[-1]


def ring_threads(mount: Mount) -> dict[str, str]:
    """The processors that each ring's thread may run on, by its name."""
    found = {}
    for task in Path(f"/proc/{mount.process.pid}/task").iterdir():
        with suppress(OSError):  # it has ended
            status = dict(
                line.split(":\t", 1) for line in (task / "status").read_text().splitlines()
            )
            if status["Name"].startswith("fuse-ring-"):
                found[status["Name"]] = status["Cpus_allowed_list"]
    return found


@pytest.fixture
def allowed() -> Iterator[None]:
    """The kernel lets FUSE servers ask for io_uring."""
    with allowing_io_uring():
        yield


@pytest.fixture
def forbidden(allowed: None) -> None:  # noqa: ARG001
    """The kernel supports FUSE over io_uring, and enable_uring is N."""
    SWITCH.write_text("N\n")


@pytest.mark.usefixtures("allowed")
def test_io_uring_is_the_default_where_the_kernel_offers_it(pair: Pair) -> None:
    mount = pair.mount()
    assert over(mount) == ("io_uring", "offered by the kernel")
    shown = run(BIN / "streamctl", "status", mount.point).stdout
    assert "io_uring from the kernel (offered by the kernel)" in shown
    works(mount)
    mount.unmount()
    mount = pair.mount("transport=dev")
    assert over(mount) == ("/dev/fuse", "transport=dev")
    assert "requests come" not in mount.log.read_text()
    works(mount)


@pytest.mark.usefixtures("allowed")
def test_the_environment_does_not_switch_rings_on(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """libfuse reads FUSE_URING_ENABLE. A mount through /dev/fuse may block its threads."""
    monkeypatch.setenv("FUSE_URING_ENABLE", "1")
    mount = pair.mount("transport=dev")
    assert ring_threads(mount) == {}
    works(mount)


@pytest.mark.usefixtures("forbidden")
def test_a_kernel_that_is_told_not_to_is_named_in_one_line_and_not_changed(pair: Pair) -> None:
    for options in ([], ["io_uring"]):
        mount = pair.mount(*options)
        transport, why = over(mount)
        assert transport == "/dev/fuse"
        assert HOW_TO_ALLOW in why
        lines = [line for line in mount.log.read_text().splitlines() if HOW_TO_ALLOW in line]
        assert len(lines) == 1, lines
        assert "warning: requests come through /dev/fuse" in lines[0]
        mount.unmount()
        mount.log.unlink()
    said = refusal(pair, "transport=io_uring")
    assert "transport=io_uring: FUSE over io_uring is off in this kernel" in said
    assert HOW_TO_ALLOW in said
    assert SWITCH.read_text() == "N\n"
    mount = pair.mount("transport=io_uring", "enable_uring")
    assert over(mount) == ("io_uring", "transport=io_uring")
    assert SWITCH.read_text() == "Y\n"


@pytest.mark.usefixtures("allowed")
@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOSYS])
def test_a_container_without_io_uring_gets_dev_fuse(pair: Pair, code: int) -> None:
    refuse = refusing(code=code)
    mount = pair.mount(before=refuse)
    transport, why = over(mount)
    assert transport == "/dev/fuse"
    assert "a sandbox" in why
    works(mount)
    mount.unmount()
    assert "transport=io_uring: " in refusal(pair, "transport=io_uring", refuse)


@pytest.mark.usefixtures("allowed")
def test_rings_that_libfuse_cannot_start_leave_dev_fuse(pair: Pair) -> None:
    """Each ring takes an eventfd, which nothing before it does."""
    refuse = refusing(EVENTFD2, errno.EMFILE)
    mount = pair.mount(before=refuse)
    transport, why = over(mount)
    assert transport == "/dev/fuse"
    assert "could not start its rings" in why
    works(mount)
    mount.unmount()
    assert "could not start its rings" in refusal(pair, "transport=io_uring", refuse)
    assert over(pair.mount("transport=io_uring"))[0] == "io_uring"


def first_cpu() -> int:
    return min(os.sched_getaffinity(0))


# Seeks in a file with dirty pages and renames it over another, as often as it is told.
DIRTY = """
import errno, os, sys
point, name, turns = sys.argv[1:]
for turn in range(int(turns)):
    with open(f"{point}/{name}", "wb") as file:
        file.write(os.urandom(1 << 18))
        file.flush()
        try:
            assert os.lseek(file.fileno(), 0, os.SEEK_DATA) == 0
        except OSError as error:
            assert error.errno == errno.EAGAIN, error
        os.rename(f"{point}/{name}", f"{point}/{name}-old")
"""


@pytest.mark.usefixtures("allowed")
def test_more_seeks_and_renames_of_dirty_files_than_a_queue_has_entries_end(pair: Pair) -> None:
    """Each of them keeps an entry and waits for WRITEs, which the server's threads cause."""
    one = {first_cpu()}
    mount = pair.mount("transport=io_uring", before=lambda: os.sched_setaffinity(0, one))
    words = ["taskset", "-c", str(first_cpu()), sys.executable, "-c", DIRTY, str(mount.point)]
    workers = [subprocess.Popen([*words, f"f{number}", "40"]) for number in range(24)]
    try:
        assert [worker.wait(timeout=120) for worker in workers] == [0] * len(workers)
    except subprocess.TimeoutExpired:
        run("umount", "-f", mount.point, check=False)  # ends the connection, so that none waits
        raise


@pytest.mark.usefixtures("allowed")
@pytest.mark.parametrize("transport", ["dev", "io_uring"])
def test_a_server_killed_while_dirty_pages_are_written_back_frees_all_programs(
    pair: Pair, transport: str
) -> None:
    """The kernel cannot kill the server's threads that wait for the write-back."""
    for _ in range(5):
        mount = pair.mount(f"transport={transport}")
        words = [sys.executable, "-c", DIRTY, str(mount.point)]
        workers = [
            subprocess.Popen([*words, f"f{number}", "1000000"], stderr=subprocess.DEVNULL)
            for number in range(8)
        ]
        time.sleep(0.5)
        assert [worker.poll() for worker in workers] == [None] * len(workers)
        mount.process.kill()
        try:
            mount.process.wait(timeout=20)
            codes = [worker.wait(timeout=20) for worker in workers]
        except subprocess.TimeoutExpired:
            run("umount", "-f", mount.point, check=False)  # ends the connection
            raise
        assert 0 not in codes
        run("umount", mount.point)
    works(pair.mount(f"transport={transport}"))


def test_programs_that_kill_by_name_spare_the_guard(mounted: Mount) -> None:
    guards = run("ps", "--ppid", str(mounted.process.pid), "-o", "comm=,args=").stdout.splitlines()
    assert [line.split()[:2] for line in guards] == [["fs-guard", "fs-guard"]]


def policies_of_ring_threads(mount: Mount) -> set[int]:
    tasks = Path(f"/proc/{mount.process.pid}/task").iterdir()
    rings = [task for task in tasks if (task / "comm").read_text().startswith("fuse-ring-")]
    return {os.sched_getscheduler(int(task.name)) for task in rings}


@pytest.mark.usefixtures("allowed")
def test_ring_threads_leave_their_cpus_idle_to_the_scheduler(pair: Pair) -> None:
    """The machine's other threads decide when (ring_scheduling.h), so it may take a while."""
    mount = pair.mount("transport=io_uring")

    def idle() -> bool:
        for name in range(32):
            assert not (mount.point / f"none-{time.monotonic_ns()}-{name}").exists()
        return os.SCHED_IDLE in policies_of_ring_threads(mount)

    until(idle, 60, "a ring thread that is SCHED_IDLE")


@pytest.mark.usefixtures("allowed")
def test_a_server_bound_to_one_cpu_answers_all(pair: Pair) -> None:
    mount = pair.mount("transport=io_uring", before=lambda: os.sched_setaffinity(0, {first_cpu()}))
    works(mount)


def join(processes: Path) -> None:
    """Move this process into a control group."""
    processes.write_text("0")


@contextmanager
def cpuset_of_one() -> Iterator[Path]:
    """A control group whose processes run on one processor; yields the file that takes them."""
    top = Path("/sys/fs/cgroup")
    if (top / "cpuset/cpuset.cpus").exists():  # version 1
        group = top / f"cpuset/streamfs-test-{os.getpid()}"
    elif "cpuset" in (top / "cgroup.subtree_control").read_text().split():
        group = top / f"streamfs-test-{os.getpid()}"
    else:
        pytest.skip("no cpuset: the root of the control groups does not pass it on")
    group.mkdir()
    try:
        (group / "cpuset.cpus").write_text(str(first_cpu()))
        (group / "cpuset.mems").write_text("0")
        yield group / "cgroup.procs"
    finally:
        for process in (group / "cgroup.procs").read_text().split():  # a test failed
            (group.parent / "cgroup.procs").write_text(process)
        group.rmdir()


@pytest.mark.usefixtures("allowed")
def test_a_server_in_a_cpuset_of_one_cpu_answers_all(pair: Pair) -> None:
    with cpuset_of_one() as processes:
        mount = pair.mount("transport=io_uring", before=lambda: join(processes))
        threads = ring_threads(mount)
        assert len(threads) == os.sysconf("SC_NPROCESSORS_CONF")
        assert set(threads.values()) == {str(first_cpu())}
        assert "Failed to bind" not in mount.log.read_text()
        works(mount)
        mount.unmount()


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.integration.transport import kept
setting = Path(sys.argv[1])
with kept(setting):
    setting.write_text("Y")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_setting_is_given_back_although_the_test_is_killed(tmp_path: Path) -> None:
    setting = tmp_path / "setting"
    setting.write_text("N\n")
    done = run(sys.executable, "-c", KILLED, setting, check=False, cwd=ROOT)
    assert done.returncode == -signal.SIGKILL
    until(lambda: setting.read_text() == "N\n", 10, "the setting")


# Other programs notice the settings below. The gate runs no other mounts beside these tests.


def switch(on: bool) -> None:
    """Take the second processor into use, or out of it."""
    ONLINE.write_text(str(int(on)))


@pytest.fixture
def second_cpu() -> Iterator[None]:
    """A second processor, which may be switched off and is on in the end."""
    if not ONLINE.exists():
        pytest.skip("no second processor that can be switched off")
    with kept(ONLINE):
        try:
            switch(False)
            switch(True)
        except OSError as error:
            pytest.skip(f"the second processor cannot be switched off ({error.strerror})")
        yield


@pytest.mark.usefixtures("allowed", "second_cpu")
def test_a_cpu_that_is_off_at_the_mount_may_come(pair: Pair) -> None:
    switch(False)
    mount = pair.mount("transport=io_uring")
    assert "Failed to bind" not in mount.log.read_text()
    works(mount)
    switch(True)
    works(mount)


@pytest.mark.usefixtures("allowed", "second_cpu")
def test_a_cpu_may_go_and_come_while_it_is_mounted(pair: Pair) -> None:
    mount = pair.mount("transport=io_uring")
    for on in (False, True):
        switch(on)
        works(mount)


@pytest.mark.usefixtures("allowed")
@pytest.mark.parametrize("level", [1, 2])
def test_io_uring_may_be_disabled(pair: Pair, level: int) -> None:
    """Level 1 refuses io_uring to processes without CAP_SYS_ADMIN, level 2 to all."""
    with kept(DISABLED):
        DISABLED.write_text(str(level))
        mount = pair.mount()
        transport, why = over(mount)
        works(mount)
        mount.unmount()
        if level == 1:
            assert transport == "io_uring"
            return
        assert transport == "/dev/fuse"
        assert "sysctl kernel.io_uring_disabled = 2" in why
        assert "sysctl kernel.io_uring_disabled = 2" in refusal(pair, "transport=io_uring")
