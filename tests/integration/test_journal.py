"""The messages in the journal: their ids, which the catalog explains, and their subjects.

Each runs in a mount namespace of its own, with a socket of ours where the journal's would be.
"""

import os
import re
import subprocess
import sys
from ast import literal_eval
from pathlib import Path

import pytest
from tests.integration.pairs import BIN

ROOT = Path(__file__).resolve().parents[2]
EVENTS = ROOT / "base/event.cc"
CATALOG = ROOT / "systemd/streamfs.catalog"

# argv: folder, bin. Prints each message's fields on a line.
INSIDE = """
import os, socket, subprocess, sys, time
from ast import literal_eval
from pathlib import Path
folder, programs = Path(sys.argv[1]), Path(sys.argv[2])
journal = Path("/run/systemd/journal")
journal.mkdir(parents=True, exist_ok=True)
subprocess.run(["mount", "-t", "tmpfs", "journal", journal], check=True)  # of this namespace
listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
listener.bind(str(journal / "socket"))
listener.settimeout(10)
data, meta, mount = folder / "data", folder / "meta", folder / "mnt"
data.write_bytes(b"")
os.truncate(data, 64 << 20)
mount.mkdir()
subprocess.run([programs / "mkfs.streamfs", "--meta", meta, data], check=True, stdout=2)
subprocess.run([programs / "streamfs", data, mount, "-o", f"meta={meta}"], check=True)
try:
    (mount / "file").write_bytes(os.urandom(1 << 20))
    subprocess.run([programs / "streamctl", "sync", mount], check=True)
    scrub = [programs / "streamctl", "scrub", "start", "--wait", mount]
    subprocess.run(scrub, check=True, stdout=2)
    subprocess.run(["umount", mount], check=True)
finally:
    if os.path.ismount(mount):  # or its daemon would live on
        subprocess.run(["umount", "-l", mount])
end = time.monotonic() + 20
while time.monotonic() < end:
    told = listener.recv(1 << 16).decode()
    print(repr(told))
    if "unmounted" in told:
        break
"""


def ids() -> list[str]:
    """The message ids that the programs send."""
    return re.findall(r'"([0-9a-f]{32})"', EVENTS.read_text())


def test_every_message_id_is_in_the_catalog_with_a_subject() -> None:
    entries = re.split(r"^-- ", CATALOG.read_text(), flags=re.MULTILINE)[1:]
    assert [entry.split("\n", 1)[0] for entry in entries] == ids()
    assert len(set(ids())) == len(ids()) >= 8
    for entry in entries:
        assert re.search(r"^Subject: .+\nDefined-By: streamfs\n\n\S", entry, re.MULTILINE)
        assert set(re.findall(r"@(\w+)@", entry)) <= {"STREAMFS_MOUNTPOINT", "STREAMFS_DATA"}


def test_a_mounts_life_is_told_with_ids_and_fields(tmp_path: Path) -> None:
    if os.geteuid() != 0 or not Path("/dev/fuse").exists():
        pytest.skip("needs root and /dev/fuse")
    ran = subprocess.run(
        ["unshare", "--mount", sys.executable, "-c", INSIDE, tmp_path, BIN],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    told = [
        dict(field.split("=", 1) for field in literal_eval(line).splitlines() if "=" in field)
        for line in ran.stdout.splitlines()
    ]
    by_id = {fields.get("MESSAGE_ID"): fields for fields in told}
    mounted, unmounted, scrubbed = (by_id[ids()[number]] for number in (0, 1, 7))
    assert f"META {tmp_path / 'meta'} is synced" in mounted["MESSAGE"]
    assert unmounted["MESSAGE"].endswith("unmounted")
    assert scrubbed["MESSAGE"].startswith("scrub done")
    for fields in (mounted, unmounted, scrubbed):
        assert fields["STREAMFS_MOUNTPOINT"] == str(tmp_path / "mnt")
        assert fields["STREAMFS_DATA"] == str(tmp_path / "data")
        assert fields["PRIORITY"] == "6"
        assert fields["SYSLOG_IDENTIFIER"] == "streamfs"
