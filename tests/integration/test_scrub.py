"""streamctl scrub on a mount whose data rots beneath it."""

import json
import os
import re
from pathlib import Path

from tests.integration.pairs import BIN, Mount, run

DAMAGED = 76


def test_a_scrub_finds_what_rots_and_says_which_file(tmp_path: Path) -> None:
    data, meta, point = tmp_path / "data", tmp_path / "META", tmp_path / "mnt"
    point.mkdir()
    with data.open("wb") as file:
        file.truncate(256 << 20)
    run(BIN / "mkfs.streamfs", "--meta", meta, data)
    words = [str(BIN / "streamfs"), str(data), str(point), "-f", "-o", f"meta={meta}"]
    mounted = Mount(words, point, tmp_path / "log")
    try:
        for name in ("sound", "rotten"):
            (mounted / name).write_bytes(name.encode() * 40_000)
        run(BIN / "streamctl", "sync", point)
        before = json.loads(run(BIN / "streamctl", "scrub", "status", point, "--json").stdout)
        assert before["state"] == "never"
        assert "0 damaged" in run(BIN / "streamctl", "scrub", "start", "--wait", point).stdout
        with data.open("r+b") as file:
            file.seek(data.read_bytes().index(b"rotten" * 1000) + 9000)
            file.write(os.urandom(4))
        done = run(BIN / "streamctl", "scrub", "start", "--wait", point, check=False)
        assert done.returncode == DAMAGED, done.stdout + done.stderr
        assert re.search("^streamctl: damage was found.*-inum[^;]*$", done.stderr), done.stderr
        inode = re.search(r"inode (\d+): data at offset \d+", done.stdout)
        assert inode is not None, done.stdout
        assert int(inode[1]) == (mounted / "rotten").stat().st_ino
        again = run(BIN / "streamctl", "scrub", "status", point, check=False)
        assert again.returncode == DAMAGED
    finally:
        mounted.end()
