"""The promises in a writer's notes, and whether a folder keeps them.

Names: the folder is as after some change since the last `names`, all before it included. Data: each
slot of a file holds a version that was durable, or one that was written after it.
"""

from collections.abc import Iterator
from pathlib import Path

from tests.powercut.workload import SLOT_BYTES, slot

Names = dict[str, int]


class File:
    """The versions that each slot may hold."""

    def __init__(self) -> None:
        self.slots: dict[int, set[int]] = {}
        self.fresh: dict[int, int] = {}  # written since the last fsync that counted

    def write(self, first: int, count: int, version: int) -> None:
        """Some slots may hold this version, too."""
        for place in range(first, first + count):
            self.slots.setdefault(place, {0}).add(version)
            self.fresh[place] = version

    def sync(self) -> None:
        """Each slot holds the version that was written last."""
        for place, version in self.fresh.items():
            self.slots[place] = {version}
        self.fresh.clear()

    def doubt(self) -> None:
        """The last writes may be there or not, whatever later fsyncs say."""
        self.fresh.clear()

    def faults(self, path: Path, number: int) -> Iterator[str]:
        """Compare with what is stored."""
        found = path.read_bytes()
        for place, versions in self.slots.items():
            stored = found[place * SLOT_BYTES : (place + 1) * SLOT_BYTES].ljust(SLOT_BYTES, b"\0")
            if stored not in [slot(number, place, version) for version in versions]:
                yield (
                    f"{path}: slot {place} of file {number} is {stored[:24]!r}, not one of"
                    f" {sorted(versions)} (size {len(found)})"
                )


class Promises:
    """Everything that one writer's notes say."""

    def __init__(self, notes: str) -> None:
        self.files: dict[int, File] = {}
        self.states: list[Names] = [{}]  # as of the last `names`, and after each change since
        self.kept = 0
        for line in notes.split("\n")[:-1]:
            self._take(*line.split())

    def _take(self, kind: str, *rest: str) -> None:
        if kind == "names":
            self.states = self.states[-1:]
            self.kept += 1
        elif kind in ("write", "sync", "unsure"):
            number, *more = map(int, rest)
            file = self.files.setdefault(number, File())
            if kind == "write":
                file.write(*more)
            elif kind == "sync":
                file.sync()
                self.kept += 1
            else:
                file.doubt()
        else:
            self._change(kind, *rest)

    def _change(self, kind: str, name: str, other: str = "") -> None:
        after = dict(self.states[-1])
        if kind in ("create", "link"):
            after[name] = int(other)
        elif kind == "rename":
            after[other] = after.pop(name)
        else:
            del after[name]
        self.states.append(after)

    def faults(self, root: Path) -> list[str]:
        """Say what is wrong in the writer's folder."""
        there = {path.name: path.stat().st_ino for path in root.iterdir()}
        state = next((each for each in self.states if each.keys() == there.keys()), None)
        if state is None:
            wanted = [sorted(each) for each in self.states]
            return [f"{root}: the names are {sorted(there)}, not one of {wanted}"]
        matching = [
            each
            for each in self.states
            if each.keys() == there.keys() and not self._mixed(each, there)
        ]
        if not matching:
            return [f"{root}: {there} are not the files of {state}"]
        found = [self._wrong_content(root, each) for each in matching]
        return min(found, key=len)

    @staticmethod
    def _mixed(state: Names, there: Names) -> bool:
        """Whether names of one file are several files, or the other way round."""
        pairs = {(number, there[name]) for name, number in state.items()}
        return not len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})

    def _wrong_content(self, root: Path, state: Names) -> list[str]:
        by_file = {number: name for name, number in state.items()}
        return [
            fault
            for number, name in by_file.items()
            for fault in self.files.get(number, File()).faults(root / name, number)
        ]
