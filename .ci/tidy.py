"""House rules no compiler knows: floors include only downwards; big files and functions are shown.

Nor may the daemon import streamfs_lab. Only import statements are checked: importlib is allowed.

usage: tidy.py [ROOT]

Exits 1 when an include points up, sideways or out of the project, or an import is forbidden. Sizes
are a report, not a limit.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from includes import quoted_includes, source_files

# A folder may include itself and any folder with a smaller number.
FLOORS = {
    "base": 0,
    "libstream": 0,
    "trace": 1,
    "pmem": 1,
    "learning": 1,
    "fuse-fs/uring": 1,
    "ssd": 2,
    "fuse-fs/nvme": 2,
    "fuse-fs/blockdev": 3,
    "fuse-fs/meta": 3,
    "fuse-fs/placement": 4,
    "fuse-fs/pair": 4,
    "fuse-fs/data": 5,
    "fuse-fs/frontend": 6,
    "fuse-fs/tools": 7,
    # Beside the house: they use it, nothing in it uses them.
    "lab": 3,
    "classifierd": 4,
    "bench": 8,
    "tests": 9,
}
# Numbers alone would allow these: meta and placement meet only in data; NVMe is the data device's
# affair; the daemon is another process, and what it shares with the filesystem lies in base/wire.
# lab is research: only bench and tests include it.
FORBIDDEN = {
    ("fuse-fs/placement", "fuse-fs/meta"),
    *(
        (floor, "fuse-fs/nvme")
        for floor in ("fuse-fs/meta", "fuse-fs/placement", "fuse-fs/pair", "fuse-fs/data")
    ),
    *((floor, "classifierd") for floor in FLOORS if floor != "classifierd"),
    *((floor, "lab") for floor in FLOORS if floor not in ("lab", "bench", "tests")),
    *((floor, "libstream") for floor in FLOORS if floor not in ("libstream", "bench", "tests")),
}
# (folder, package): Python in the folder must not import the package.
FORBIDDEN_IMPORTS = {("classifierd", "streamfs_lab")}
# libstream is libc only, but the ioctl it sends is defined where both ends see it.
# The name rules are one table for the preload library and the filesystem.
# streamctl is a program that uses the library.
ALLOWED_PREFIXES = {
    "libstream": ("base/wire/",),
    "fuse-fs/placement": ("libstream/rules.h",),
    "fuse-fs/tools": ("libstream/include/",),
}

FILE_LINES_LARGE = 500
FUNCTION_LINES_LARGE = 70
# A line of a function's head stands at the edge, or inside a class; what continues it, deeper.
_EDGE = re.compile(r"^( {0,2})[^ ]")
_NO_FUNCTION = re.compile(r" *(//|namespace|class|struct|enum|union|extern)")


class Size(NamedTuple):
    """Something long: lines, and where it starts."""

    lines: int
    place: str


def floor_of(path: str) -> str | None:
    """Return the floor a path relative to the root lies on, None outside the house."""
    for depth in (2, 1):
        folder = "/".join(path.split("/")[:depth])
        if folder in FLOORS and folder != path:
            return folder
    return None


def may_include(source: str, target: str) -> bool:
    """Whether a file on one floor may include the file ``target``."""
    own, other = floor_of(source), floor_of(target)
    if own is None or other is None:
        return False
    if own == other or target.startswith(ALLOWED_PREFIXES.get(own, ("\0",))):
        return True
    return FLOORS[other] < FLOORS[own] and (own, other) not in FORBIDDEN


def include_errors(root: Path) -> Iterator[str]:
    """Yield one line for each include that the house does not allow."""
    for source in source_files(root):
        for include in quoted_includes(root / source):
            place = f"{source}:{include.line}"
            if not (root / include.target).is_file():
                yield f'{place}: "{include.target}" is no path from the repository root'
            elif not may_include(str(source), include.target):
                here, there = floor_of(str(source)), floor_of(include.target)
                yield f"{place}: {here} may not include {there} ({include.target})"


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the package of each import statement of a Python file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.partition(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.lineno, node.module.partition(".")[0]


def import_errors(root: Path) -> Iterator[str]:
    """Yield one line for each import that the house does not allow."""
    for source in python_files(root):
        for line, package in imported(root / source):
            if (source.parts[0], package) in FORBIDDEN_IMPORTS:
                yield f"{source}:{line}: {source.parts[0]} may not import {package}"


def cpp_functions(root: Path, source: Path) -> Iterator[Size]:
    """Yield the functions of a formatted C++ file: from the head to ``}`` at the same indent."""
    head, start, indent = 0, 0, ""
    for number, text in enumerate((root / source).read_text().splitlines(), start=1):
        if start:
            if text.rstrip(";") == indent + "}":
                yield Size(number - start + 1, f"{source}:{start}")
                start = 0
        elif edge := _EDGE.match(text):
            head, indent = 0 if _NO_FUNCTION.match(text) else number, edge.group(1)
        if head and text.endswith(("{", ";", "}")):
            opens = text.endswith("{") and not text.endswith("= {")  # a table of constants
            start, head = (head if opens else 0), 0


def python_functions(root: Path, source: Path) -> Iterator[Size]:
    """Yield the functions of a Python file."""
    for node in ast.walk(ast.parse((root / source).read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
            yield Size(node.end_lineno - node.lineno + 1, f"{source}:{node.lineno}")


def python_files(root: Path) -> list[Path]:
    """Every Python file of the project, relative to ``root``."""
    folders = ("classifierd", "lab/python", "tests", "bench", ".ci", "scripts")
    return sorted(p.relative_to(root) for f in folders for p in (root / f).rglob("*.py"))


def report_sizes(root: Path) -> None:
    """Print what is past the sizes at which a second idea usually hides inside."""
    cpp, python = source_files(root), python_files(root)
    functions = [size for path in cpp for size in cpp_functions(root, path)]
    functions += [size for path in python for size in python_functions(root, path)]
    files = [Size(len((root / p).read_text().splitlines()), str(p)) for p in [*cpp, *python]]
    for kind, sizes, limit in (
        ("file", files, FILE_LINES_LARGE),
        ("function", functions, FUNCTION_LINES_LARGE),
    ):
        for size in sorted((s for s in sizes if s.lines > limit), reverse=True):
            print(f"{size.place}: {kind} of {size.lines} lines; is there a second idea inside?")
    print(f"tidy: {len(files)} files, {len(functions)} functions")


def main(arguments: list[str]) -> int:
    """Check one tree and return the exit code."""
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    errors = [*include_errors(root), *import_errors(root)]
    for error in errors:
        print(error)
    report_sizes(root)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
