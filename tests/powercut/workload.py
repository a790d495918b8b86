"""A writer, which notes what it does before it does it and what is durable afterwards.

usage: workload.py FOLDER SEED MIX      (notes go to the standard output, a line each)

MIX is `data`, which mostly writes, or `names`, which mostly links, renames and unlinks. A note is:

  create NAME ID, link NAME ID, rename OLD NEW, unlink NAME    before the change
  names                        after an fsync of the folder that returned 0
  write ID FIRST COUNT VERSION before a write of COUNT slots
  sync ID                      after an fsync of the file that returned 0
  unsure ID                    after an error of a write or an fsync

Contents follow from ID, slot and version. The writer ends when a change of names fails, or many
writes in a row do.
"""

import contextlib
import os
import random
import sys
from pathlib import Path

SLOT_BYTES = 512
SLOTS_MOST = 96
FILES_MOST = 24
FAILURES_MOST = 12
PENDING_MOST = 3
WEIGHTS = {"data": (3, 10, 1, 1, 1), "names": (4, 3, 4, 5, 2)}


def slot(number: int, place: int, version: int) -> bytes:
    """The content of a slot of a file; version 0 is a hole."""
    if version == 0:
        return bytes(SLOT_BYTES)
    word = f"{number}.{place}.{version}|".encode()
    return (word * (SLOT_BYTES // len(word) + 1))[:SLOT_BYTES]


def note(line: str) -> None:
    """Say it at one stroke."""
    os.write(1, f"{line}\n".encode())


class Writer:
    """The names that it made in its folder, and how to change them."""

    def __init__(self, root: Path, seed: int, mix: str) -> None:
        self.root = root
        self.dice = random.Random(seed)
        self.weights = WEIGHTS[mix]
        self.folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        self.names: dict[str, int] = {}
        self.ids = 0
        self.version = 0
        self.made = 0
        self.pending = 0
        self.failures = 0

    def new_name(self) -> str:
        """Return a name that was never there."""
        self.made += 1
        return f"n{self.made}"

    def any_name(self) -> str:
        """Draw one of the names."""
        return self.dice.choice(sorted(self.names))

    def named(self) -> None:
        """Make changes of names durable, sooner or later."""
        self.pending += 1
        if self.pending >= PENDING_MOST or self.dice.random() < 0.5:
            os.fsync(self.folder)
            note("names")
            self.pending = 0

    def create(self) -> None:
        """Make a file, and write to it."""
        name, self.ids = self.new_name(), self.ids + 1
        note(f"create {name} {self.ids}")
        os.close(os.open(self.root / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
        self.names[name] = self.ids
        self.named()
        self.write(name)

    def link(self) -> None:
        """Give a file one more name."""
        old, name = self.any_name(), self.new_name()
        note(f"link {name} {self.names[old]}")
        os.link(self.root / old, self.root / name)
        self.names[name] = self.names[old]
        self.named()

    def rename(self) -> None:
        """Give a file another name, which another file may have had."""
        old = self.any_name()
        new = self.any_name() if self.dice.random() < 0.4 else self.new_name()
        if self.names.get(new) == self.names[old]:
            return  # of one file: rename(2) does nothing
        note(f"rename {old} {new}")
        (self.root / old).rename(self.root / new)
        self.names[new] = self.names.pop(old)
        self.named()

    def unlink(self) -> None:
        """Take a name away."""
        name = self.any_name()
        note(f"unlink {name}")
        (self.root / name).unlink()
        del self.names[name]
        self.named()

    def write(self, name: str) -> None:
        """Write slots, and fsync two times of three."""
        number = self.names[name]
        first = self.dice.randrange(SLOTS_MOST)
        count = min(self.dice.choice((1, 3, 8, 40)), SLOTS_MOST - first)
        self.version += 1
        note(f"write {number} {first} {count} {self.version}")
        try:
            file = os.open(self.root / name, os.O_RDWR)
        except OSError:
            self.failed(number)
            return
        try:
            content = b"".join(slot(number, first + i, self.version) for i in range(count))
            if os.pwrite(file, content, first * SLOT_BYTES) != len(content):
                self.failed(number)
            elif self.dice.random() < 0.7:
                os.fsync(file)
                note(f"sync {number}")
                self.failures = 0
        except OSError:
            self.failed(number)
        finally:
            with contextlib.suppress(OSError):
                os.close(file)

    def failed(self, number: int) -> None:
        """Nothing is known of what this file was to hold since its last fsync."""
        note(f"unsure {number}")
        self.failures += 1

    def step(self) -> None:
        """Do one thing."""
        actions = (self.create, self.write_any, self.link, self.rename, self.unlink)
        if not self.names:
            self.create()
        elif len(self.names) >= FILES_MOST:
            self.unlink()
        else:
            self.dice.choices(actions, self.weights)[0]()

    def write_any(self) -> None:
        """Write to a file that is there."""
        self.write(self.any_name())


def main(words: list[str]) -> None:
    """Work until something ends it."""
    with contextlib.suppress(OSError):
        writer = Writer(Path(words[1]), int(words[2]), words[3])
        while writer.failures < FAILURES_MOST:
            writer.step()


if __name__ == "__main__":
    main(sys.argv)
