"""Both transports under load: every request answered in time and rightly, and no memory lost."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.pairs import BIN, Mount, Pair, until
from tests.integration.transport import TRANSPORTS

THREADS = 4
PARTS = 10
SETTLED = 5  # parts after which everything is as large as it gets, on a busy machine too
DEADLINE_SECONDS = 30
GROWTH_BYTES_MAX = 4 << 20
SHORT, LONG = 50_000, 10_000_000


@pytest.fixture
def pair(make_pair: Callable[..., Pair]) -> Pair:
    """DATA in a file: an emulated SSD has memory of its own."""
    one = make_pair(size="64M")
    one.data = str(one.folder / "data")
    with Path(one.data).open("wb") as file:
        file.truncate(1 << 30)
    one.mkfs("--mean-file-size", "64K")
    return one


def unanswered(mount: Mount, connections: Path) -> int:
    """Requests that the kernel has sent, or is to send, and that have no answer."""
    number = os.minor(mount.point.stat().st_dev)
    return int((connections / str(number) / "waiting").read_text())


def soak(mount: Mount, operations: int) -> list[int]:
    """Run it; return the daemon's own memory after each part."""
    command = [BIN / "mount_soak", mount.point, "--operations", operations, "--parts", PARTS]
    command += ["--threads", THREADS, "--deadline", DEADLINE_SECONDS]
    memory, lines = [], []
    with subprocess.Popen(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        for line in running.stdout:
            lines.append(json.loads(line))
            if "late" in lines[-1]:
                mount.kill()  # nothing else ends who waits for the answer
                pytest.fail(f"no answer within {DEADLINE_SECONDS} s: {lines[-1]['late']}")
            memory.append(int(mount.status()["memory"]["anonymous_bytes"]))
        said = running.stderr.read()
    assert running.returncode == 0, said
    counts = lines[-1]["counts"]
    print(f"{sum(counts.values())} operations in {lines[-1]['seconds']:.0f} s:", counts)  # noqa: T201
    assert sum(counts.values()) >= operations
    assert min(counts.values()) > 0
    return memory


@pytest.mark.parametrize("operations", [SHORT, pytest.param(LONG, marks=pytest.mark.long)])
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.usefixtures("io_uring_allowed")
def test_a_soak_loses_no_reply_and_no_memory(
    pair: Pair, connections: Path, transport: str, operations: int
) -> None:
    mount = pair.mount(*TRANSPORTS[transport])
    memory = soak(mount, operations)
    print("MiB:", [f"{each / (1 << 20):.1f}" for each in memory])  # noqa: T201
    assert max(memory[SETTLED:]) - max(memory[:SETTLED]) <= GROWTH_BYTES_MAX
    until(lambda: unanswered(mount, connections) == 0, 10, "the last answers")
    assert mount.status()["checksum_errors"] == 0
    mount.unmount()
    pair.assert_sound()
