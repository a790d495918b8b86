"""The writes of a developer's machine: commits into a repository, and builds."""

import random
import shutil
from pathlib import Path

from bench.programs.place import Place
from bench.programs.plan import FilesPlan

_LINES = 120


class Repository:
    """A git repository: files change, are committed and packed, old versions are looked at."""

    name = "git"
    _COMMITS = 6  # a round

    def __init__(self, place: Place, plan: FilesPlan, seed: int) -> None:
        self.place, self.files = place, plan.tree_files
        self.randomness = random.Random(seed)
        self.folder = place.mount / "git"

    def prepare(self) -> None:
        """Commit all files once."""
        self.place.folder("git")
        self._git("init", "--quiet")
        for key, value in {"user.name": "bench", "user.email": "bench@localhost"}.items():
            self._git("config", key, value)
        self._git("config", "gc.auto", "0")
        self._change(list(range(self.files)))
        self._commit("all")

    def round(self, number: int) -> None:
        """Commit a few times; every fourth round packs, every other one looks back."""
        for each in range(self._COMMITS):
            self._change(self.randomness.sample(range(self.files), self.files // 20))
            self._commit(f"{number}.{each}")
        if number % 2 == 0:
            self._git("checkout", "--quiet", "HEAD~4")
            self._git("checkout", "--quiet", "-")
        if number % 4 == 0:
            self._git("gc", "--quiet", "--prune=now")

    def close(self) -> None:
        """Nothing runs between rounds."""

    def _change(self, numbers: list[int]) -> None:
        for number in numbers:
            path = self.folder / f"d{number // 50:03}" / f"f{number:04}.txt"
            path.parent.mkdir(exist_ok=True)
            lines = (f"{self.randomness.getrandbits(256):064x}\n" for _ in range(_LINES))
            path.write_text("".join(lines))
            self.place.own(path.parent)
            self.place.own(path)

    def _commit(self, message: str) -> None:
        self._git("add", "--all")
        self._git("commit", "--quiet", "-m", message)

    def _git(self, *arguments: str) -> None:
        self.place.run(None, ["git", *arguments], cwd=self.folder)


class Build:
    """A C program of many files, some of which change and are compiled and linked anew."""

    name = "build"
    _FILES = 40
    _FUNCTIONS = 60

    def __init__(self, place: Place, plan: FilesPlan, seed: int) -> None:
        del plan
        self.place = place
        self.randomness = random.Random(seed)
        self.sources = place.scratch / "sources"

    def prepare(self) -> None:
        """Write all sources and build them."""
        self.sources.mkdir()
        for number in range(self._FILES):
            self._write(number)
        self._build(list(range(self._FILES)))

    def round(self, number: int) -> None:
        """Change a third of the files, build; every fourth round is a clean build."""
        everything = list(range(self._FILES))
        if number % 4 == 0:
            shutil.rmtree(self.place.mount / "build")
            self._build(everything)
        else:
            self._build(self.randomness.sample(everything, self._FILES // 3))

    def close(self) -> None:
        """Nothing runs between rounds."""

    def _write(self, number: int) -> None:
        functions = "".join(
            f"int f{number}_{i}(int a) {{ for (int j = 0; j < a; ++j) a ^= {i} * j; return a; }}\n"
            for i in range(self._FUNCTIONS)
        )
        main = "int main(void) { return 0; }\n" if number == 0 else ""
        (self.sources / f"m{number}.c").write_text(functions + main)

    def _build(self, numbers: list[int]) -> None:
        folder = self.place.folder("build")
        objects = [folder / f"m{number}.o" for number in range(self._FILES)]
        for number in numbers:
            source: list[str | Path] = [self.sources / f"m{number}.c", "-o", objects[number]]
            self.place.run(None, ["gcc", "-O1", "-g", "-c", *source])
        self.place.run(None, ["gcc", "-o", folder / "program", *objects])
