#!/usr/bin/env python3
"""Delete each call to Region::flush, Region::fence and Device::flush, and each guard that
mutation.toml lists: a test must notice each.

Usage: mutation.py [--json FILE] [--jobs N] BUILD [FILE.cc ...]   (default: every file with a call)

BUILD is a build directory whose test binaries are up to date (build/asan in the gate). The files
with calls are compiled once more, with those that a unity build compiles them with, from copies in
which every call asks the environment whether it is the deleted one; mutation.toml says which tests
look at which file. A guard is a statement, given by its text, the file and, if the text occurs more
than once, its number there (nth). The programs are not changed. Prints a line for each deletion and
a closing line; exits 1 when a deletion went unnoticed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "fuse-fs"
# The object of a call is a region or a device. Other objects with a method of these names forward
# to such a call, or implement it for a device.
CALL = re.compile(r"\b((?:store_\.)?region_?|device_?|blocks_)\.(flush|fence)\(")
ANY_CALL = re.compile(r"([\w)\]]+)(?:\.|->)(flush|fence)\(")
# Among them a dump, a file of the host's: nothing here cuts its power.
NOT_CALLS = {"checksums_", "ssd_", "beneath_", "inner_", "file", "logger"}
INCLUDED = re.compile(r'^#include "([^"]+)"$', re.MULTILINE)
ARCHIVES_FIRST = re.compile(r"-Xlinker --whole-archive .* --no-whole-archive ")
SWITCH = "STREAMFS_DELETED_CALL"
TIMEOUT_SECONDS = 120
HEADER = f"""#pragma once
#include <cstdlib>
#include <type_traits>
#include <utility>
namespace streamfs::mutation {{
template <typename T>
struct Call {{
  T& object;
  bool deleted;
  template <typename... Arguments>
  auto flush(Arguments... arguments) const {{
    using R = decltype(object.flush(arguments...));
    return deleted ? R() : object.flush(arguments...);
  }}
  template <typename... Flushed>
  void fence(Flushed... flushed) const {{
    if (!deleted) return object.fence(std::move(flushed)...);
    (flushed.leave(), ...);
  }}
}};
inline bool is_deleted(int number) {{
  const char* deleted = std::getenv("{SWITCH}");
  return deleted != nullptr && std::atoi(deleted) == number;
}}
template <typename T>
Call<T> call(int number, T& object) {{
  return {{object, is_deleted(number)}};
}}
}}  // namespace streamfs::mutation
"""


@dataclass(frozen=True)
class Tests:
    """The tests that look at a file's calls, or at a guard."""

    binary: str
    filter: str


@dataclass
class Site:
    """A call or a guard, its tests, and whether one of them failed without it."""

    number: int
    file: str
    line: int
    text: str
    tests: Tests
    guard_at: int | None = None  # offset in the file; None: a call
    caught: bool = False


def say(text: str) -> None:
    """Print a line to standard output, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def read(file: str) -> str:
    """A file's text."""
    return Path(file).read_text()


def find_calls(tests: dict[str, Tests]) -> list[Site]:
    """Every call to flush or fence, numbered."""
    sites: list[Site] = []
    for path in sorted((ROOT / FOLDER).rglob("*")):
        if path.suffix not in {".cc", ".h"}:
            continue
        file = str(path.relative_to(ROOT))
        text = path.read_text()
        for call in ANY_CALL.finditer(text):
            if call[1] in NOT_CALLS:
                continue
            line = text.count("\n", 0, call.start()) + 1
            if path.suffix == ".h" or not CALL.match(text, call.start()):
                msg = f"{file}:{line}: a call in a shape that is not known here"
                raise SystemExit(msg)
            if file not in tests:
                msg = f"mutation.toml says no tests for {file}"
                raise SystemExit(msg)
            source = text.splitlines()[line - 1].strip()
            sites.append(Site(len(sites) + 1, file, line, source, tests[file]))
    return sites


def find_guards(entries: list[dict[str, str | int]], first_number: int) -> list[Site]:
    """The guards of mutation.toml, numbered from first_number on."""
    guards: list[Site] = []
    for entry in entries:
        file, statement = str(entry["file"]), str(entry["statement"])
        nth = int(entry.get("nth", 1))
        text = (ROOT / file).read_text()
        places = [match.start() for match in re.finditer(re.escape(statement), text)]
        if len(places) < nth or (len(places) > 1 and "nth" not in entry):
            msg = f"{file}: {len(places)} times there: {statement}"
            raise SystemExit(msg)
        at = places[nth - 1]
        line = text.count("\n", 0, at) + 1
        tests = Tests(str(entry["binary"]), str(entry["filter"]))
        first_line = statement.splitlines()[0]
        number = first_number + len(guards)
        guards.append(Site(number, file, line, first_line, tests, guard_at=at))
    return guards


def mutable_copy(file: str, sites: list[Site], guards: dict[int, str]) -> str:
    """The file's text with every call and every guard behind the switch."""
    text = (ROOT / file).read_text()
    here = [site for site in sites if site.file == file]
    for site in sorted(here, key=lambda each: -(each.guard_at or 0)):
        if site.guard_at is None:
            continue
        end = site.guard_at + len(guards[site.number])
        condition = f"if (!::streamfs::mutation::is_deleted({site.number}))"
        guard = text[site.guard_at : end]
        text = text[: site.guard_at] + f"{condition} {{ {guard} }}" + text[end:]
    numbers = iter(site.number for site in here if site.guard_at is None)
    return CALL.sub(
        lambda call: f"::streamfs::mutation::call({next(numbers)}, {call[1]}).{call[2]}(", text
    )


class Build:
    """The build directory's own commands, with our copies in the place of some files."""

    def __init__(self, build: Path, work: Path) -> None:
        """Read the commands; `work` is for what is made here."""
        self.build, self.work = build, work
        commands = json.loads((build / "compile_commands.json").read_text())
        self.commands = {entry["file"]: entry["command"] for entry in commands}
        units = [unit for unit in self.commands if "/Unity/" in unit]
        self.unit_of = {file: unit for unit in units for file in INCLUDED.findall(read(unit))}
        (work / "mutation.h").write_text(HEADER)

    def by_unit(self, files: list[str]) -> dict[str, list[str]]:
        """Which files are compiled together, by what includes them: alone, the file itself."""
        units: dict[str, list[str]] = {}
        for file in files:
            path = str(ROOT / file)
            units.setdefault(self.unit_of.get(path, path), []).append(file)
        return units

    def compile_copies(
        self, unit: str, files: list[str], sites: list[Site], guards: dict[int, str]
    ) -> Path:
        """Compile a unit with the calls and guards of its files behind the switch."""
        text = read(unit) if unit in self.unit_of.values() else f'#include "{unit}"\n'
        for file in files:
            copy = self.work / file.replace("/", "_")
            copy.write_text(mutable_copy(file, sites, guards))
            text = text.replace(f'"{ROOT / file}"', f'"{copy}"')
        source = self.work / f"unit_of_{files[0].replace('/', '_')}"
        source.write_text(text)
        arguments = shlex.split(self.commands[unit])
        arguments[arguments.index("-o") + 1] = str(source.with_suffix(".o"))
        arguments[arguments.index("-c") + 1] = str(source)
        arguments += ["-include", str(self.work / "mutation.h"), "-Wno-error"]
        arguments.append("-fno-sanitize=undefined")  # costs time, and lost data is looked for
        subprocess.run(arguments, cwd=self.build, check=True)
        return source.with_suffix(".o")

    def library_of(self, unit: str) -> str:
        """The library that the build puts a unit into."""
        folder = re.search(r" -o \S*/(streamfs_\w+)\.dir/", self.commands[unit])
        if folder is None:
            msg = f"{unit} is compiled for no library"
            raise SystemExit(msg)
        return f"lib{folder[1]}.a"

    def link(self, binary: str, objects: dict[str, Path]) -> None:
        """Link a test binary with our objects before the libraries that hold the originals."""
        command = ["ninja", "-C", str(self.build), "-t", "commands", f"bin/{binary}"]
        known = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        line = next(each for each in known.splitlines() if f"-o bin/{binary} " in each)
        line = ARCHIVES_FIRST.sub("", line)  # else what ours replace is there already
        wanted = [str(made) for unit, made in objects.items() if self.library_of(unit) in line]
        ours = " ".join(wanted) + f" -o {self.work / binary} "
        line = line.split(f"&& cd {self.build}", 1)[0].replace(f"-o bin/{binary} ", ours)
        if line.rstrip().endswith("&&"):
            line += " :"
        subprocess.run(line, cwd=self.build, check=True, shell=True)

    def passes(self, tests: Tests, deleted: int) -> bool:
        """Run the tests without this call."""
        command = [str(self.work / tests.binary), f"--gtest_filter={tests.filter}"]
        command += ["--gtest_brief=1", "--gtest_fail_fast"]
        environment = os.environ | {SWITCH: str(deleted)}
        try:
            done = subprocess.run(
                command, cwd=self.work, check=False, capture_output=True, env=environment,
                timeout=TIMEOUT_SECONDS,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0 and b"PASSED  ] 0 tests" not in done.stdout


def main() -> int:
    """Compile, link, and run without each call in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("build", type=Path)
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()
    table = tomllib.loads((ROOT / "tests/crash/mutation.toml").read_text())
    entries = table.pop("guard")
    calls = find_calls({file: Tests(**entry) for file, entry in table.items()})
    found = find_guards(entries, len(calls) + 1)
    guards = {site.number: str(e["statement"]) for site, e in zip(found, entries, strict=True)}
    sites = [site for site in calls + found if not args.files or site.file in args.files]
    files = sorted({site.file for site in sites})
    with (
        tempfile.TemporaryDirectory(prefix="streamfs-mutation-") as folder,
        ThreadPoolExecutor(max_workers=args.jobs) as pool,
    ):
        build = Build(args.build.resolve(), Path(folder))
        units = build.by_unit(files)
        made = pool.map(lambda unit: build.compile_copies(unit, units[unit], sites, guards), units)
        objects = dict(zip(units, made, strict=True))
        binaries = sorted({site.tests.binary for site in sites})
        list(pool.map(lambda binary: build.link(binary, objects), binaries))
        used = sorted({site.tests for site in sites}, key=str)
        for each, passed in zip(used, pool.map(lambda t: build.passes(t, 0), used), strict=True):
            if not passed:
                say(f"{each.binary} {each.filter} fails with every call in its place")
                return 2
        caught = pool.map(lambda site: not build.passes(site.tests, site.number), sites)
        for site, noticed in zip(sites, caught, strict=True):
            site.caught = noticed
            say(f"{'caught' if noticed else 'MISSED'} {site.file}:{site.line} {site.text}")
    if args.json:
        args.json.write_text(json.dumps([asdict(site) for site in sites], indent=1) + "\n")
    missed = sum(not site.caught for site in sites)
    say(f"mutations: {len(sites)} deletions; {len(sites) - missed} passed, {missed} failed")
    return 1 if missed or not sites else 0


if __name__ == "__main__":
    sys.exit(main())
