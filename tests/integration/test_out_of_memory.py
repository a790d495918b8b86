"""Too little memory: a start says so, and a mount that gets no more ends and loses nothing."""

import os
import resource
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.integration.pairs import BIN, Pair, run

KIB = 1 << 10
LESS_THAN_A_STACK = 4 << 20
FILES_MOST = 20_000
IO = 70


def allow_memory(process: int, more: int) -> None:
    """Refuse a process writable memory beyond what it has mapped and `more` bytes.

    RLIMIT_DATA, because RLIMIT_AS does not see malloc's arenas grow into addresses they reserved.
    """
    status = Path(f"/proc/{process}/status").read_text()
    has = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmData:"))
    resource.prlimit(process, resource.RLIMIT_DATA, (has * KIB + more, has * KIB + more))


@pytest.mark.parametrize("kib", [120_000, 170_000, 200_000, 230_000, 260_000])
def test_a_start_with_too_little_memory_says_so(pair: Pair, kib: int) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (kib * KIB, kib * KIB))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    words = [str(BIN / "streamfs"), pair.data, str(pair.point), "-o", f"meta={pair.meta}"]
    done = run(*words, check=False, preexec_fn=limit)
    if done.returncode == 0:  # it was enough
        run("umount", pair.point)
        return
    assert done.returncode > 0, f"it ended by signal {-done.returncode}: {done.stderr}"
    assert "memory" in done.stderr, (done.returncode, done.stderr)


def test_a_mount_that_gets_no_more_memory_ends_and_says_so(pair: Pair) -> None:
    mount = pair.mount("cache_mib=1024")
    durable = []

    def write_files() -> None:
        for number in range(FILES_MOST):
            with (mount / f"folder/{number}").open("wb") as file:
                file.write(f"content of {number}".encode())
                if number % 100 == 0:
                    file.flush()
                    os.fsync(file.fileno())
                    durable.append(number)

    (mount / "folder").mkdir()
    allow_memory(mount.process.pid, 0)
    with pytest.raises(OSError, match=r"\[Errno"):
        write_files()
    code = mount.process.wait(30)
    assert code == IO, f"{code}: {mount.log.read_text()}"
    log = mount.log.read_text()
    if "Cannot allocate memory" not in log:  # libfuse's words, where its own buffer was refused
        assert "out of memory: the mount ends here" in log
    mount.kill()
    again = pair.mount()
    for number in durable:
        assert (again / f"folder/{number}").read_text() == f"content of {number}"
    again.unmount()
    pair.assert_sound()


def test_a_mount_without_memory_for_a_thread_refuses_commands_and_goes_on(pair: Pair) -> None:
    mount = pair.mount("transport=dev")  # it starts threads for requests later
    allow_memory(mount.process.pid, LESS_THAN_A_STACK)
    for _ in range(3):
        done = run(BIN / "streamctl", "status", mount.point, check=False)
        assert done.returncode == IO, done.stdout + done.stderr
        assert "thread" in done.stderr, done.stderr
    with ThreadPoolExecutor(8) as writers:
        list(writers.map(lambda number: (mount / str(number)).write_text("here"), range(500)))
    # libfuse reports with every request that it can start no thread.
    assert mount.log.read_text().count("error creating thread") == 1
    mount.unmount()
    pair.assert_sound()
