"""OPERATIONS' walk with emulated persistent memory, from an empty machine to the second boot.

The commands of the section "Emulate persistent memory" run in their order, in a virtual machine
with systemd whose DRAM `memmap=` sets aside. Its power is cut; DRAM is empty at the next boot.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.systemd.test_docs import Block, blocks
from tests.vm.machine import GUEST, ROOT
from tests.vm.payload import BIN
from tests.vm.workstation import MEMMAP, WORKSTATION, Workstation, make_workstation_payload

SECTION = "Emulate persistent memory"
MARK = "tests/vm/test_workstation.py"
POINT = "/srv/data"
NAME = "srv-data"
SECONDS = 300.0
COMMITS = 40
# Commits and says so, each commit durable before it is counted.
WORK = f"""
import os, sqlite3, sys
point = sys.argv[1]
db = sqlite3.connect(point + "/app.db", isolation_level=None)
db.execute("pragma synchronous = full")
for number in range({COMMITS}):
    db.execute("insert into t values (?)", (number,))
fd = os.open(point + "/file", os.O_CREAT | os.O_WRONLY, 0o644)
os.write(fd, b"promised" * 10000)
os.fsync(fd)
"""
CHECK = f"""
import sqlite3, sys
point = sys.argv[1]
db = sqlite3.connect(point + "/app.db")
assert db.execute("pragma integrity_check").fetchone() == ("ok",)
assert db.execute("select count(*) from t").fetchone() == ({COMMITS} + 1,)
assert open(point + "/file", "rb").read() == b"promised" * 10000
"""


def walk() -> tuple[Block, Block, Block]:
    """The section's blocks: set the parameter, set up, look after the cut."""
    text = (ROOT / "docs/OPERATIONS.md").read_text()
    begin = text[: text.index(f"## {SECTION}\n")].count("\n")
    end = text[: text.index("\n## ", text.index(f"## {SECTION}\n") + 1)].count("\n")
    found = [each for each in blocks("OPERATIONS") if begin < each.line < end and MARK in each.mark]
    first, second, third = found
    return first, second, third


@pytest.fixture
def workstation(tmp_path: Path) -> Iterator[Workstation]:
    """A machine with systemd, off."""
    for needed in (BIN / "streamctl", GUEST / "vmlinuz", WORKSTATION / "root.img"):
        if not needed.exists():
            pytest.fail(f"{needed} is not there: scripts/test vm makes it")
    one = Workstation(tmp_path, make_workstation_payload(tmp_path))
    try:
        yield one
    finally:
        one.cut()


def run(machine: Workstation, block: Block) -> str:
    """Run a block of the page; what it said."""
    commands = block.text.replace("sudo ", "")
    done = machine.run("bash", "-euc", commands, check=False, seconds=SECONDS)
    assert done.code == 0, f"OPERATIONS.md:{block.line}\n{done.out}{done.err}\n{journal(machine)}"
    return done.out


def journal(machine: Workstation) -> str:
    """The last lines of the units in this boot."""
    words = ("journalctl", "-b", "-n", "80", "-o", "cat", "--no-pager")
    units = (f"-u{unit}@{NAME}" for unit in ("streamfs", "streamfs-pmem", "classifierd"))
    return machine.run(*words, *units, check=False).out


def wait_for_daemon(machine: Workstation) -> None:
    """Wait until the learning daemon of this boot has attached itself to the mount."""
    script = (
        f"until journalctl -b -u classifierd@{NAME} -o cat | grep -q attached:; do sleep 1; done"
    )
    done = machine.run("timeout", "240", "bash", "-c", script, check=False, seconds=SECONDS)
    assert done.code == 0, journal(machine)


def test_from_an_empty_machine_to_the_boot_after_a_power_cut(workstation: Workstation) -> None:
    parameter, set_up, after_the_cut = walk()
    assert "&memmap=4G!12G " in parameter.text
    workstation.memmap = MEMMAP  # of this machine's RAM
    workstation.boot()
    workstation.run("udevadm", "settle", "--timeout=240", seconds=SECONDS)  # it is a slow machine
    said = run(workstation, set_up)
    assert "ndctl create-namespace --bus=e820 -f -e namespace0.0 -m devdax" in said
    assert "checksums of data are lost" in said
    status = json.loads(workstation.run("streamctl", "status", "--json", POINT).out)
    assert status["meta_class"] == "volatile"
    config = workstation.run("cat", f"/etc/streamfs{POINT}.conf").out
    settings = dict(line.split("=", 1) for line in config.splitlines() if "=" in line)
    assert settings["DATA"].startswith("/dev/disk/by-id/nvme-generic-"), "it outlives a boot"
    assert status["device_mechanism"] == "FDP"
    for timer in ("trim", "maintain", "scrub"):
        assert f"streamfs-{timer}@{NAME}.timer" in said
    workstation.run("systemctl", "is-active", f"streamfs-pmem@{NAME}")
    wait_for_daemon(workstation)
    assert "sqlite" in workstation.run("streamctl", "streams", POINT).out
    workstation.run("sync", "-f", "/etc")  # the units' links; their disk is no matter here
    workstation.run("python3", "-c", WORK, POINT, seconds=SECONDS)
    workstation.cut()

    workstation.boot()
    assert not workstation.run("sh", "-c", "ls /dev/pmem*", check=False).out
    run(workstation, after_the_cut)
    workstation.run("python3", "-c", CHECK, POINT)
    assert "rebuilt" in journal(workstation)
    wait_for_daemon(workstation)
    workstation.run("systemctl", "stop", f"streamfs@{NAME}")
    fsck = ("fsck.streamfs", "-n", "-f", "--meta", settings["META"], settings["DATA"])
    workstation.run(*fsck, seconds=SECONDS)
