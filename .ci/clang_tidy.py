"""clang-tidy over every .cc, skipping what is known to be clean.

usage: clang_tidy.py [--fix | --quick] BUILD_DIR CACHE_DIR

A file is known to be clean when it, every project header it reaches, its compile command, the
settings and the tool's version all hash to a name in CACHE_DIR. Exits 1 when a file is not clean.
--fix lets clang-tidy repair what it can (missing and needless includes above all), file by file.
--quick leaves out the path-sensitive analyzer, which takes three quarters of the time, what is not
shipped (tests, benches), and what did not change in the last commits: it was looked at then. A
changed header is looked at through one of the files that include it, best the one of its name.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from includes import closure

ROOT = Path(__file__).resolve().parent.parent
FINDING = re.compile(r": (error|warning): ")
SHIPPED = {"base", "libstream", "pmem", "trace", "learning", "ssd", "lab", "fuse-fs", "classifierd"}
RECENT_COMMITS = 20
# A change to one of these bears on every file.
BEARS_ON_ALL = {Path(".clang-tidy"), Path("requirements.lock")}
TOOL = Path(sys.executable).parent / "clang-tidy"


class Unit(NamedTuple):
    """A file to look at, and the name under which its being clean is remembered."""

    source: Path
    key: str


def settings_hash() -> str:
    """Hash what bears on every file alike."""
    version = subprocess.run([TOOL, "--version"], check=True, capture_output=True).stdout
    configs = sorted(ROOT.glob(".clang-tidy")) + sorted(ROOT.glob("*/**/.clang-tidy"))
    parts = [version, *(path.read_bytes() for path in configs if "build" not in path.parts)]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def unit_key(source: Path, command: str, settings: str) -> str:
    """Hash everything the verdict on one file depends on."""
    digest = hashlib.sha256(f"{settings}\0{command}\0".encode())
    for path in sorted(closure(ROOT, source)):
        digest.update(str(path).encode() + b"\0" + (ROOT / path).read_bytes())
    return digest.hexdigest()


def units(build: Path) -> list[Unit]:
    """Read the files to look at from the compile commands."""
    settings = settings_hash()
    commands = json.loads((build / "compile_commands.json").read_text())
    found = []
    for entry in commands:
        path = Path(entry["file"])
        if path.suffix == ".cc" and path.is_relative_to(ROOT):
            source = path.relative_to(ROOT)
            found.append(Unit(source, unit_key(source, entry["command"], settings)))
    return found


def recently_changed() -> set[Path] | None:
    """Files changed in the last commits or not yet committed; None where history does not say."""
    names: set[Path] = set()
    for command in (
        ["git", "diff", "--name-only", f"HEAD~{RECENT_COMMITS}"],
        ["git", "ls-files", "--others", "--exclude-standard"],
    ):
        done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            return None
        names.update(Path(name) for name in done.stdout.splitlines())
    return None if names & BEARS_ON_ALL else names


def that_show(recent: set[Path], reached: dict[Path, set[Path]]) -> set[Path]:
    """Sources in which every recent file is seen, of those that reach the files given with each."""
    taken = set(reached) & recent
    for header in sorted(path for path in recent if path.suffix == ".h"):
        users = [source for source, files in reached.items() if header in files]
        if users and not taken.intersection(users):
            taken.add(min(users, key=lambda source: (source.stem != header.stem, source)))
    return taken


def wanted(everything: list[Unit]) -> list[Unit]:
    """Select the units that a quick look takes."""
    shipped = [unit for unit in everything if unit.source.parts[0] in SHIPPED]
    recent = recently_changed()
    if recent is None:
        return shipped
    taken = that_show(recent, {unit.source: closure(ROOT, unit.source) for unit in shipped})
    return [unit for unit in shipped if unit.source in taken]


def fix(unit: Unit, build: Path) -> None:
    """Let the tool repair one file, and bring it back into format."""
    tidy: list[str | Path] = [TOOL, "--quiet", "--fix-errors", "-p", build, ROOT / unit.source]
    subprocess.run(tidy, check=False, capture_output=True)
    subprocess.run([TOOL.with_name("clang-format"), "-i", ROOT / unit.source], check=True)


class Cache(NamedTuple):
    """The units known to be clean. The analyzer's pass makes a unit clean for a quick look too."""

    folder: Path
    quick: bool

    def knows(self, unit: Unit) -> bool:
        """Whether this unit need not be looked at."""
        names = [unit.key, unit.key + ".quick"] if self.quick else [unit.key]
        return any((self.folder / name).exists() for name in names)

    def remember(self, unit: Unit) -> None:
        """Note that the unit is clean."""
        (self.folder / (unit.key + (".quick" if self.quick else ""))).touch()


def check(unit: Unit, build: Path, cache: Cache) -> bool:
    """Look at one file; remember it when it is clean, print what is wrong when it is not."""
    command: list[str | Path] = [TOOL, "--quiet", "-p", build, ROOT / unit.source]
    if cache.quick:
        command.append("--checks=-clang-analyzer-*")
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode == 0:
        cache.remember(unit)
        return True
    findings = [line for line in done.stdout.splitlines() if FINDING.search(line)]
    print("\n".join(findings) or done.stdout + done.stderr, flush=True)
    return False


def main(arguments: list[str]) -> int:
    """Check what is not known to be clean and return the exit code."""
    build, folder = (Path(argument).resolve() for argument in arguments[-2:])
    folder.mkdir(parents=True, exist_ok=True)
    cache = Cache(folder, quick=arguments[0] == "--quick")
    everything = wanted(units(build)) if cache.quick else units(build)
    waiting = [unit for unit in everything if not cache.knows(unit)]
    if arguments[0] == "--fix":
        for unit in waiting:
            fix(unit, build)
        everything = units(build)
        waiting = [unit for unit in everything if not cache.knows(unit)]
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        verdicts = list(pool.map(lambda unit: check(unit, build, cache), waiting))
    failed = verdicts.count(False)
    known = len(everything) - len(waiting)
    print(f"clang-tidy: {len(everything)} files, {known} known to be clean, {failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
