"""The tests of libstream share this: programs and their results, and a folder that is a mount.

Neither FUSE nor root is needed: the mount is fake_streamfs.c, a second preload library that answers
the hint ioctl.
"""

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.integration.pairs import BIN, ROOT

HELPERS = Path(__file__).resolve().parent
LIB = BIN.parent / "lib"
STREAM_RUN = BIN / "stream-run"
PRELOAD = LIB / "libstream_preload.so"

RWH_SHORT, RWH_LONG = 2, 4
F_SET_RW_HINT, F_GET_FILE_RW_HINT, F_SET_FILE_RW_HINT = 1036, 1037, 1038

SQL = """
PRAGMA journal_mode={mode}; PRAGMA cache_size=10; PRAGMA temp_store=FILE; PRAGMA cache_spill=1;
CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<3000)
  INSERT INTO t SELECT i, hex(i*7919)||printf('%0200d', i) FROM n;
CREATE TEMP TABLE u AS SELECT * FROM t;
SELECT count(*), sum(a), max(b) FROM u;
SELECT count(*) FROM (SELECT DISTINCT b FROM t ORDER BY b DESC);
UPDATE t SET b = b||'x' WHERE a % 3 = 0;
VACUUM;
SELECT sum(length(b)) FROM t; PRAGMA integrity_check;
"""


class Result(NamedTuple):
    """The exit code and output of a program."""

    status: int
    out: str
    err: str


class Asked(NamedTuple):
    """A question to the fake mount."""

    command: str
    name: str
    number: int
    rw_hint: int
    path: str


def run(*command: str | Path, env: dict[str, str] | None = None, cwd: Path | None = None) -> Result:
    """Run a command without the variables that these tests are about, but for those given."""
    clean = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("STREAMFS_", "LD_", "PYTEST", "XDG_"))
    }
    done = subprocess.run(
        [str(word) for word in command],
        env=clean | (env or {}),
        cwd=cwd,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=120,
        check=False,
    )
    return Result(done.returncode, done.stdout, done.stderr)


def compile_c(out: Path, *words: str | Path) -> Path:
    """Compile a C program or library; a warning fails the test."""
    done = run("cc", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}", "-o", out, *words)
    assert done.status == 0, done.err
    return out


def preload_functions() -> set[str]:
    """Return the functions that the preload library stands in for."""
    header = (ROOT / "libstream/preload.h").read_text()
    return set(re.findall(r"X\((\w+)\)", header.split("#define PRELOAD_FUNCTIONS(X)")[1]))


class FakeMount:
    """A folder that answers like a streamfs mount, to programs started with run()."""

    def __init__(self, helpers: Path, tmp: Path) -> None:
        self.path = tmp / "mount"
        self.state = tmp / "state"
        self.path.mkdir()
        self.state.mkdir()
        self.env = {
            "LD_PRELOAD": str(helpers / "fake.so"),
            "FAKE_STREAMFS_MOUNT": str(self.path),
            "FAKE_STREAMFS_STATE": str(self.state),
        }

    def run(self, *command: str | Path, options: tuple[str | Path, ...] = ()) -> Result:
        """Run a command in the mount, under stream-run with these options."""
        return run(STREAM_RUN, *options, "--", *command, env=self.env, cwd=self.path)

    def asked(self) -> Iterator[Asked]:
        """Yield what the mount was asked so far."""
        log = self.state / "log"
        for line in log.read_text().splitlines() if log.exists() else []:
            command, name, number, rw_hint, path = line.split(" ", 4)
            yield Asked(command, name, int(number), int(rw_hint), path)

    def labels(self) -> dict[str, str]:
        """Return the name last given to each file, by the file's own name."""
        return {Path(a.path).name: a.name for a in self.asked() if a.command == "name"}


def python(source: str) -> list[str]:
    """Return a command that runs a Python program; fcntl takes the raw bytes it is given."""
    return [sys.executable, "-S", "-E", "-c", textwrap.dedent(source)]


def hints(path: str, *steps: tuple[int, bytes], mode: str = "w") -> list[str]:
    """Return a command that opens a file and calls fcntl; prints results or errnos."""
    return python(f"""
        import fcntl
        file = open({path!r}, {mode!r})
        for command, argument in {steps!r}:
            try:
                print(fcntl.fcntl(file, command, argument).hex())
            except OSError as error:
                print(error.errno)
    """)


def with_and_without(tmp: Path, env: dict[str, str], *command: str | Path) -> list[Result]:
    """Run in two fresh folders, {} in the command standing for the folder."""
    results = []
    for kind, runner in (("plain", ()), ("preload", (STREAM_RUN, "--"))):
        folder = tmp / kind
        folder.mkdir()
        words = [str(word).replace("{}", str(folder)) for word in command]
        results.append(run(*runner, *words, env=env, cwd=folder))
    return results
