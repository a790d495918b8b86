"""A workload that notes what it was promised, and the check of it after a kill or a power cut.

usage: promises.py work FOLDER SEED     (notes go to the standard output, a line each)
       promises.py check FOLDER         (reads the notes from the standard input)

Contents follow from names, so a note is enough to check by. A line of the notes that has no end is
one that was never promised.
"""

import os
import random
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

SIZES = (0, 10, 4096, 5000, 70000, 300000)
SLOTS = 16
SLOT_BYTES = 5000
ROWS_A_SEED = 100000


def content(word: str, size: int) -> bytes:
    """A word, repeated as often as it fits."""
    return (word.encode() + b"|") * (size // (len(word) + 1))


def slot_content(version: int) -> bytes:
    """The content of a slot of the file that is overwritten in place."""
    return f"{version:015}|".encode() * (SLOT_BYTES // 16 + 1)


def write_file(root: Path, seed: int, number: int, dice: random.Random) -> Path:
    """A new file under its name at one stroke; two of three are fsync'd before."""
    name = f"{seed}-{number}"
    path = root / f"d{number % 7}" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(name + ".tmp")
    with temporary.open("wb") as file:
        file.write(content(name, dice.choice(SIZES)))
        file.flush()
        if number % 3:
            os.fsync(file.fileno())
    temporary.rename(path)
    return path


def overwrite(file: int, slot: int, version: int) -> None:
    """A slot, in place, durable when this returns."""
    os.pwrite(file, slot_content(version)[:SLOT_BYTES], slot * SLOT_BYTES)
    os.fsync(file)


def work(root: Path, seed: int, note: Callable[[str], None]) -> None:
    """Write files, rows and slots for ever; say what is durable only afterwards."""
    dice = random.Random(seed)
    base = sqlite3.connect(root / "base.db", isolation_level=None)
    base.execute("create table if not exists t (k integer primary key, v text)")
    slots = os.open(root / f"slots-{seed}", os.O_RDWR | os.O_CREAT)
    number = 0
    while True:
        number += 1
        path = write_file(root, seed, number, dice)
        if number % 3:
            note(f"file {path.relative_to(root)} {path.stat().st_size}")
        if number % 4 == 0:
            note(f"writing {seed} {number // 4 % SLOTS} {number}")
            overwrite(slots, number // 4 % SLOTS, number)
            note(f"slot {seed} {number // 4 % SLOTS} {number}")
        if number % 5 == 0:
            base.execute("insert into t values (?, ?)", (seed * ROWS_A_SEED + number, "x" * 100))
            note(f"row {seed * ROWS_A_SEED + number}")
        if number % 11 == 0:
            note(f"going {path.relative_to(root)}")
            path.unlink()
            note(f"gone {path.relative_to(root)}")


def ended(notes: str) -> Iterator[tuple[str, str]]:
    """The lines that have an end: first word and rest."""
    for line in notes.split("\n")[:-1]:
        kind, _, rest = line.partition(" ")
        yield kind, rest


def check_files(root: Path, notes: str) -> int:
    """Every file that was said to be durable has its content; every unlinked one is gone.

    An unlink that was under way at the end may have happened or not; where it has not, the file is
    whole.
    """
    said: dict[str, int] = {}
    going: set[str] = set()
    for kind, rest in ended(notes):
        if kind == "file":
            path, _, size = rest.rpartition(" ")
            said[path] = int(size)
        elif kind == "going":
            going.add(rest)
        elif kind == "gone":
            said.pop(rest, None)
            assert not (root / rest).exists(), f"{rest} came back"
    for name, length in said.items():
        if name in going and not (root / name).exists():
            continue
        found = (root / name).read_bytes()
        assert found == content(Path(name).name, length), f"{name}: {len(found)} of {length} bytes"
    return len(said)


def check_slots(root: Path, notes: str) -> int:
    """Every slot holds what was last said of it, or a mix with what was being written over it."""
    durable: dict[tuple[str, int], int] = {}
    coming: dict[tuple[str, int], int] = {}
    for kind, rest in ended(notes):
        if kind in {"writing", "slot"}:
            seed, which, number = rest.split()
            (durable if kind == "slot" else coming)[seed, int(which)] = int(number)
    for (seed, slot), version in durable.items():
        start = slot * SLOT_BYTES
        found = (root / f"slots-{seed}").read_bytes()[start : start + SLOT_BYTES]
        old, new = slot_content(version), slot_content(coming[seed, slot])
        assert len(found) == SLOT_BYTES, f"slot {slot} of {seed}: {len(found)} bytes"
        assert all(f in pair for f, *pair in zip(found, old, new, strict=False)), (
            f"slot {slot} of {seed}: not {version} nor {coming[seed, slot]}: {found[:64]!r}"
        )
    return len(durable)


def check_rows(root: Path, notes: str) -> int:
    """SQLite is whole and has every row whose insert returned."""
    said = {int(rest) for kind, rest in ended(notes) if kind == "row"}
    if not said:
        return 0
    base = sqlite3.connect(root / "base.db")
    assert base.execute("pragma integrity_check").fetchone() == ("ok",)
    missing = said - {row[0] for row in base.execute("select k from t")}
    base.close()
    assert not missing, f"rows lost: {sorted(missing)[:5]}"
    return len(said)


def check(root: Path, notes: str) -> int:
    """All of it; returns how many promises were looked at."""
    return check_files(root, notes) + check_slots(root, notes) + check_rows(root, notes)


def main(words: list[str]) -> None:
    """Work or check."""
    root = Path(words[1])
    if words[0] == "work":
        work(root, int(words[2]), lambda line: (os.write(1, f"{line}\n".encode()), None)[1])
    else:
        sys.stdout.write(f"{check(root, sys.stdin.read())}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
