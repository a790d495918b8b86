"""The owners of written pages: contexts of files as streamfs would know them, and places."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from classifierd import recording
from classifierd.owners import Owners
from classifierd.requests import Requests


def test_a_request_is_divided_where_another_files_pages_begin() -> None:
    found = Owners(64 * 4096)
    log, db = found.context("/log/000012.log"), found.context("/var 1/main.db")
    assert found.names == {("log", "log"): log, ("db", "var_#"): db}
    assert found.context("/log/000013.log") == log
    found.place(4096, 8192, log)
    found.place(3 * 4096, 4096, db)
    parts = list(found.parts(0, 5 * 4096))
    assert parts == [(0, 4096, 0), (4096, 8192, log), (12288, 4096, db), (16384, 4096, 0)]
    assert list(found.parts(4608, 512)) == [(4608, 512, log)]
    found.place(4096, 8192, db)  # reused
    assert list(found.parts(4096, 3 * 4096)) == [(4096, 3 * 4096, db)]
    assert list(found.parts(1000 * 4096, 4096)) == [(1000 * 4096, 4096, 0)]  # where it is not


@pytest.mark.parametrize(
    ("path", "context"),
    [("/a.TXT", ("TXT", "")), ("/x/000012", ("#", "x")), ("/x/.bashrc", ("", "x")),
     ("/data-0012/b.123", ("#", "data-#")), ("/x/a.b:c", ("b_c", "x")), ("/x/a", ("", "x")),
     ("/x/a.seventeenletters1", ("", "x")), ("/x/a.résuméééééééé", ("", "x")),
     ('/q,"/a', ("", "q__"))],
)  # fmt: skip
def test_names_are_folded_as_streamfs_folds_them(path: str, context: tuple[str, str]) -> None:
    found = Owners(4096)
    assert found.context(path) == found.names[context]


def test_a_tree_that_is_hostile_is_walked(tmp_path: Path) -> None:
    (tmp_path / "\udcff").mkdir()
    (tmp_path / "\udcff" / "a.\udce9").write_bytes(bytes(8192))
    (tmp_path / "loop").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "fifo")
    deep = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1500):  # deeper than a path can say or a recursion go
        os.mkdir("d", dir_fd=deep)
        above, deep = deep, os.open("d", os.O_RDONLY, dir_fd=deep)
        os.close(above)
    os.close(deep)
    found = Owners(1 << 40)
    try:
        assert found.walk(tmp_path) <= 1  # tmpfs does not say where files lie
        assert found.context("/\udcff/a.\udce9") == found.names["_", "_"]
    finally:
        subprocess.run(["rm", "-rf", tmp_path / "d"], check=True)
    with (tmp_path / "trace.csv").open("w") as file:
        none = np.zeros(0, np.int64)
        asked = Requests(none != 0, none, none, none != 0, none, none)
        recording.write(file, recording.Recording(asked, found.names))
    assert recording.read(tmp_path / "trace.csv") is not None
