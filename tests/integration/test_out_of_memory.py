"""Too little memory: a start says so, and a mount that gets no more ends and loses nothing."""

import os
import resource
import signal
from pathlib import Path

import pytest
from tests.integration.pairs import BIN, Pair, run

KIB = 1 << 10
FILES_MOST = 20_000
IO = 70


def mapped_bytes(process: int) -> int:
    """What a process has in its address space."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[0])
    return pages * resource.getpagesize()


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
    durable = 0
    (mount / "folder").mkdir()
    limit = mapped_bytes(mount.process.pid)
    resource.prlimit(mount.process.pid, resource.RLIMIT_AS, (limit, limit))
    try:
        for number in range(FILES_MOST):
            with (mount / f"folder/{number}").open("wb") as file:
                file.write(f"content of {number}".encode())
                if number % 100 == 0:
                    file.flush()
                    os.fsync(file.fileno())
                    durable = number
    except OSError:
        pass
    else:
        pytest.skip(f"{FILES_MOST} files fit the memory that it had")
    code = mount.process.wait(30)
    assert code == IO, f"{code}: {mount.log.read_text()}"
    assert code != -signal.SIGABRT
    assert "out of memory: the mount ends here" in mount.log.read_text()
    mount.kill()
    again = pair.mount()
    for number in range(0, durable + 1, 100):
        assert (again / f"folder/{number}").read_text() == f"content of {number}"
    again.unmount()
    pair.assert_sound()
