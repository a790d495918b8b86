"""Unlabelled files get their program's vStream, then the one their context has earned."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.integration.pairs import Mount, Pair, run, until

# A database as placement sees it: a log that is written over and over, and tables that stay.
DATABASE = """
import os, sys, time
from pathlib import Path
Path("/proc/self/comm").write_text("database")
root, rounds = Path(sys.argv[1]), int(sys.argv[2])
for name in ("wal", "base"):
    (root / name).mkdir(exist_ok=True)
tables = os.open(root / "base" / "t.tab", os.O_RDWR | os.O_CREAT)
os.pwrite(tables, os.urandom(8 << 20), 0)
log = os.open(root / "wal" / "1.seg", os.O_RDWR | os.O_CREAT)
for number in range(rounds):
    os.pwrite(log, os.urandom(1 << 20), 0)
    os.fsync(log)
    time.sleep(.05)
os.fsync(tables)
"""


def names(mount: Mount) -> set[str]:
    """Return the names of the vStreams."""
    return {row["name"] for row in mount.streams()}


def label(path: Path) -> str:
    """Return the vStream of a file."""
    return os.getxattr(path, "user.streamfs.vstream").decode()


def work(mount: Mount, rounds: int = 64) -> None:
    """Let the database run."""
    subprocess.run([sys.executable, "-c", DATABASE, mount.point, str(rounds)], check=True)


def make_tree(root: Path) -> None:
    for number in range(600):
        name = "".join(chr(ord("a") + number // 26**place % 26) for place in range(3))
        (root / name).mkdir(parents=True)
        (root / name / f"file.{name}").write_bytes(b"x" * 5000)


def test_a_copied_tree_has_one_vstream_and_a_database_beside_it_its_own(
    pair: Pair, tmp_path: Path
) -> None:
    make_tree(tmp_path / "tree")
    mount = pair.mount("placement=learned")
    run("cp", "-a", tmp_path / "tree", mount / "tree")
    assert names(mount) == {"", "ctx:[copier]::"}
    work(mount)
    log, tables = mount / "wal" / "1.seg", mount / "base" / "t.tab"
    until(lambda: label(log) != label(tables), 10, "the log and the tables to part")
    found = {label(log), label(tables)}
    assert found < {"ctx:database::", "ctx:database:seg:", "ctx:database:tab:"}
    before = [label(log), label(tables)]
    mount.unmount()
    mount = pair.mount("placement=learned")
    assert [label(log), label(tables)] == before
    shutil.rmtree(mount / "tree")
    run("cp", "-a", tmp_path / "tree", mount / "tree")
    assert names(mount) == {"", "ctx:[copier]::", "ctx:database::"} | found
    mount.unmount()
    pair.assert_sound()


def test_a_flood_of_names_leaves_the_vstreams_and_the_labels_as_they_are(mounted: Mount) -> None:
    work(mounted)
    log, tables = mounted / "wal" / "1.seg", mounted / "base" / "t.tab"
    until(lambda: label(log) != label(tables), 10, "the log and the tables to part")
    before = names(mounted), label(log), label(tables)
    make_tree(mounted / "one")
    flood = {label(path) for path in mounted.point.glob("one/*/*")}
    assert len(flood) == 1
    assert (names(mounted) - flood, label(log), label(tables)) == before
