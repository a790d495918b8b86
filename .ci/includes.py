"""Which project file includes which, read from the sources themselves."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SOURCE_FOLDERS = (
    "base", "libstream", "pmem", "trace", "learning", "ssd", "lab", "fuse-fs", "bench", "tests",
    "classifierd",
)  # fmt: skip
SUFFIXES = {".c", ".cc", ".h"}
_QUOTED_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


class Include(NamedTuple):
    """A quoted include: where it stands and what it names."""

    line: int
    target: str


def source_files(root: Path) -> list[Path]:
    """Every C and C++ file of the project, as paths relative to ``root``, sorted."""
    found = (
        path.relative_to(root)
        for folder in SOURCE_FOLDERS
        for path in (root / folder).rglob("*")
        if path.suffix in SUFFIXES and path.is_file()
    )
    return sorted(found)


def quoted_includes(path: Path) -> Iterator[Include]:
    """Yield the quoted includes of one file."""
    for number, text in enumerate(path.read_text(errors="replace").splitlines(), start=1):
        if match := _QUOTED_INCLUDE.match(text):
            yield Include(number, match.group(1))


def closure(root: Path, source: Path) -> set[Path]:
    """``source`` and every project file it includes, directly or not, relative to ``root``."""
    seen: set[Path] = set()
    waiting = [source]
    while waiting:
        current = waiting.pop()
        if current in seen or not (root / current).is_file():
            continue
        seen.add(current)
        waiting += [Path(include.target) for include in quoted_includes(root / current)]
    return seen
