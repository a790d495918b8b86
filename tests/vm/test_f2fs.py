"""A real F2FS on the FDP SSD: which reclaim unit handles its temperatures get, and a recording.

The recording is what `ssd-sim reproduce yong2021-f2fs` replays (lab/figures/recorded).
"""

import csv
import gzip
import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.vm.guest import PAYLOAD, Setup
from tests.vm.machine import GUEST_F2FS, ROOT, Machine
from tests.vm.payload import BIN

pytestmark = pytest.mark.long

POINT = "/mnt/f2fs"
TRACING = "/sys/kernel/tracing"
EVENTS = ("f2fs_submit_folio_write", "f2fs_submit_folio_bio", "f2fs_issue_discard")
WRITES_ONLY = "op == 1"  # REQ_OP_WRITE
BUFFER_KIB = 16384
RECORDED = ROOT / "build/vm-f2fs/f2fs_phone.csv.gz"
MEBIBYTES, SEED = 1536, 1
PHONE_SECONDS = 1800.0
FILE_BYTES = 4 << 20
# The files are hot and cold by F2FS's own list of suffixes; the numbers are the handles by which
# Linux 7.2 writes each temperature. Nodes and metadata go to the first, too.
HANDLES = {"a.db": 0, "a.txt": 1, "a.jpg": 2}
COLUMNS = ("ts_us", "op", "offset_bytes", "length_bytes", "vstream", "pstream")
HOT_NODE, WARM_NODE, HOT_DATA, WARM_DATA, COLD_DATA, METADATA = 1, 2, 4, 5, 6, 7
SECOND = 1_000_000


@pytest.fixture
def f2fs(payload: Path, tmp_path: Path) -> Iterator[Setup]:
    """A machine with another kernel, an F2FS mounted on its second SSD."""
    if not (GUEST_F2FS / "vmlinuz").exists():
        pytest.fail(f"{GUEST_F2FS} is not there: scripts/test --long vm makes it")
    machine = Machine(tmp_path, payload, kernel=GUEST_F2FS)
    try:
        machine.boot()
        setup = Setup(machine, "block")
        machine.run("mkfs.f2fs", "-f", "-q", setup.data)
        machine.run("mkdir", POINT)
        machine.run("mount", "-t", "f2fs", "-o", "discard", setup.data, POINT)
        yield setup
    finally:
        machine.cut()


def record(machine: Machine) -> None:
    """Have the kernel's events of what F2FS writes and discards in the notes from now on."""
    machine.run("mount", "-t", "tracefs", "tracing", TRACING)
    lines = [f"cd {TRACING}", f"echo {BUFFER_KIB} > buffer_size_kb"]
    lines.append(f"echo '{WRITES_ONLY}' > events/f2fs/{EVENTS[1]}/filter")
    lines += [f"echo 1 > events/f2fs/{event}/enable" for event in EVENTS]
    machine.run("bash", "-ec", "\n".join(lines))
    machine.start("block", "cat", f"{TRACING}/trace_pipe")


def imported(notes: Path, folder: Path) -> list[dict[str, str]]:
    """The recording, as ssd-sim understands it."""
    out = folder / "f2fs.csv"
    subprocess.run([BIN / "ssd-sim", "import", "f2fs", notes, "-o", out], check=True)
    return list(csv.DictReader(out.read_text().splitlines()))


def keep(rows: list[dict[str, str]]) -> None:
    """Write what a figure needs of it: times in whole seconds, as they are most of its size."""
    lines = [",".join(COLUMNS)]
    for row in rows:
        row["ts_us"] = str(int(row["ts_us"]) // SECOND * SECOND)
        lines.append(",".join(row[name] for name in COLUMNS))
    text = "".join(f"{line}\n" for line in lines).encode()
    RECORDED.write_bytes(gzip.compress(text, mtime=0))


def waf(placement: str) -> float:
    """Write amplification of the recording on a device of its size."""
    words = ["replay", str(RECORDED), "--size", "1G", "--placement", placement, "--json"]
    said = subprocess.run([BIN / "ssd-sim", *words], check=True, capture_output=True).stdout
    return float(json.loads(said)["waf"])


def test_linux_gives_each_temperature_of_data_its_own_handle(f2fs: Setup) -> None:
    for name, handle in HANDLES.items():
        before = f2fs.writable()
        f2fs.machine.run(
            *("dd", "if=/dev/zero", f"of={POINT}/{name}", "bs=1M", "count=4", "conv=fsync")
        )
        used = [was - now for was, now in zip(before, f2fs.writable(), strict=True)]
        assert used[handle] >= FILE_BYTES, (name, used)
        others = [bytes_ for place, bytes_ in enumerate(used) if place not in (0, handle)]
        assert not any(others), (name, used)


def test_a_phones_work_is_recorded_with_its_temperatures(f2fs: Setup, tmp_path: Path) -> None:
    record(f2fs.machine)
    words = ["python3", f"{PAYLOAD}/phone.py", POINT, str(MEBIBYTES), str(SEED)]
    said = f2fs.machine.run(*words, seconds=PHONE_SECONDS).out
    assert "done" in said
    # Lines under way are in the notes once the guest is off.
    f2fs.machine.run("umount", POINT)
    f2fs.machine.off()
    rows = imported(f2fs.machine.notes("block"), tmp_path)
    written = Counter[int]()
    for row in rows:
        if row["op"] == "W":
            written[int(row["vstream"])] += int(row["length_bytes"])
    # Cold nodes are those of directories' and indirect blocks: a phone's files may have none.
    for kind in (HOT_NODE, WARM_NODE, HOT_DATA, WARM_DATA, COLD_DATA, METADATA):
        assert written[kind] > 0, written
    assert sum(written.values()) >= MEBIBYTES << 20
    assert any(row["op"] == "T" for row in rows)
    keep(rows)
    figures = {name: waf(name) for name in ("legacy", "manual", "vstream-sgc", "oracle")}
    megabytes = {kind: bytes_ >> 20 for kind, bytes_ in sorted(written.items())}
    print(f"MiB by vStream {megabytes}; WAF {figures}; {RECORDED}: {said}")  # noqa: T201
    assert figures["oracle"] <= figures["vstream-sgc"] < figures["legacy"]
