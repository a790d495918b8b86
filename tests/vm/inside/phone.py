"""A phone's work on a filesystem: photographs, apps, databases, a browser's cache, a log.

usage: phone.py FOLDER MEBIBYTES SEED
First photographs until it is 70 % full, then all of it until so many MiB are written, photographs
being deleted beyond 85 %. It rests now and then, as phones do, so that the filesystem discards.
Prints "filled" and "done", each with the bytes written so far.
"""

import contextlib
import os
import random
import sqlite3
import sys
import time
from pathlib import Path

KIB, MIB = 1024, 1 << 20
FILLED, FULL = 0.70, 0.85
ROWS = 4000
MOST_ROWS = 5  # changed in a transaction
SKEW_ROWS, SKEW_SIZES = 0.6, 0.9  # Pareto's
CACHE_BYTES = 48 * MIB
LOG_BYTES, LOGS = 2 * MIB, 4
APPS = 12
REST_AFTER, REST_SECONDS = 128 * MIB, 8.0  # F2FS discards after five idle seconds


class Phone:
    """The content of a phone, and its use."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.noise = self.random.randbytes(4 * MIB)
        self.written = 0
        self.serial = 0
        self.photos: list[Path] = []
        self.cache: list[tuple[Path, int]] = []
        self.cached = 0
        for name in ("photos", "apps", "cache", "data", "logs"):
            (folder / name).mkdir()
        self.databases = [self.database("messages", "WAL"), self.database("settings", "DELETE")]

    def used(self) -> float:
        """How full the filesystem is."""
        found = os.statvfs(self.folder)
        return 1 - found.f_bavail / found.f_blocks

    def put(self, path: Path, size: int, *, sync: bool) -> None:
        """Write a file."""
        begin = self.random.randrange(len(self.noise) // 2)
        with path.open("wb") as file:
            for at in range(0, size, MIB):
                file.write(self.noise[begin : begin + min(MIB, size - at)])
            if sync:
                file.flush()
                os.fsync(file.fileno())
        self.written += size

    def database(self, name: str, mode: str) -> sqlite3.Connection:
        """Make one with all its rows."""
        db = sqlite3.connect(self.folder / f"data/{name}.db", isolation_level=None)
        db.execute(f"PRAGMA journal_mode={mode}")
        db.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, v BLOB)")
        db.execute("CREATE INDEX i ON t (substr(v, 1, 8))")
        db.execute("BEGIN")
        for key in range(ROWS):
            db.execute("INSERT INTO t VALUES (?, ?)", (key, self.blob()))
        db.execute("COMMIT")
        self.written += ROWS * KIB
        return db

    def blob(self) -> bytes:
        """A row's content."""
        at = self.random.randrange(len(self.noise) - 2 * KIB)
        return self.noise[at : at + self.random.randrange(200, 1800)]

    def transact(self) -> None:
        """Change some rows, mostly the same few."""
        db = self.random.choice(self.databases)
        db.execute("BEGIN")
        for _ in range(self.random.randrange(1, MOST_ROWS)):
            key = min(int(self.random.paretovariate(SKEW_ROWS)), ROWS) - 1
            db.execute("UPDATE t SET v = ? WHERE k = ?", (self.blob(), key))
        db.execute("COMMIT")
        self.written += 16 * KIB

    def photograph(self) -> None:
        """Take one more; there may be too many then."""
        self.serial += 1
        path = self.folder / f"photos/{self.serial:06}.jpg"
        self.put(path, self.random.randrange(MIB, 5 * MIB), sync=True)
        self.photos.append(path)
        while self.used() > FULL and self.photos:
            self.photos.pop(self.random.randrange(len(self.photos))).unlink()

    def install(self) -> None:
        """Update an app, or install one."""
        app = self.folder / f"apps/{self.random.randrange(APPS):02}"
        app.mkdir(exist_ok=True)
        for name, most in (("base.apk", 6), ("lib.so", 3), ("base.odex", 3)):
            new = app / f"{name}.new"
            self.put(new, self.random.randrange(MIB, most * MIB), sync=True)
            new.rename(app / name)

    def browse(self) -> None:
        """Put something into the cache; of the older half of it some goes."""
        self.serial += 1
        size = min(int(4 * KIB * self.random.paretovariate(SKEW_SIZES)), MIB)
        path = self.folder / f"cache/{self.serial:06}"
        self.put(path, size, sync=False)
        self.cache.append((path, size))
        self.cached += size
        while self.cached > CACHE_BYTES:
            path, size = self.cache.pop(self.random.randrange(len(self.cache) // 2))
            path.unlink()
            self.cached -= size

    def log(self) -> None:
        """Append a few lines; the log is rotated."""
        path = self.folder / "logs/log"
        with path.open("ab") as file:
            file.write(self.noise[: self.random.randrange(200, 8000)])
        self.written += 4 * KIB
        if path.stat().st_size < LOG_BYTES:
            return
        with contextlib.suppress(FileNotFoundError):
            (self.folder / f"logs/log.{LOGS}").unlink()
        for number in range(LOGS - 1, -1, -1):
            old = path if number == 0 else self.folder / f"logs/log.{number}"
            if old.exists():
                old.rename(self.folder / f"logs/log.{number + 1}")

    def work(self, until: int) -> None:
        """Do all of that in turn."""
        kinds = (self.transact, self.browse, self.log, self.photograph, self.install)
        rest = self.written + REST_AFTER
        while self.written < until:
            (kind,) = self.random.choices(kinds, (1500, 1200, 400, 5, 2))
            kind()
            if self.written >= rest:
                time.sleep(REST_SECONDS)
                rest = self.written + REST_AFTER


def main() -> None:
    """Do it."""
    folder, mebibytes, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    phone = Phone(folder, seed)
    while phone.used() < FILLED:
        phone.photograph()
    os.sync()
    print("filled", phone.written, flush=True)  # noqa: T201
    phone.work(phone.written + mebibytes * MIB)
    os.sync()
    print("done", phone.written, flush=True)  # noqa: T201


main()
