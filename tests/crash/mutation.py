#!/usr/bin/env python3
"""Delete each call to Region::flush and Region::fence in turn: the crash tests must notice.

Usage: mutation.py [--json FILE] [FILE.cc ...]   (default: the journal and its recovery)

Prints a line a site and a closing line; exits 1 when a deletion went unnoticed.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DEFAULT_FILES = ["fuse-fs/meta/journal.cc", "fuse-fs/meta/recovery.cc"]
CALL = re.compile(r"\bregion_?\.(flush|fence)\(")
NOTHING = "[](auto...) -> uint64_t { return 0; }("
COMPILE = ["g++", "-std=c++20", "-O1", f"-I{ROOT}", "-w", "-c"]
LIBRARIES = ["-lgtest", "-lgmock", "-lgtest_main", "-lisal", "-lpthread"]


@dataclass
class Site:
    """One call that was deleted and whether a test failed for it."""

    file: str
    line: int
    text: str
    caught: bool = False


def sources() -> list[Path]:
    """Everything the journal's crash tests need."""
    meta = ["journal", "record", "recovery", "transaction", "geometry", "superblock", "format"]
    files = [ROOT / f"fuse-fs/meta/{name}.cc" for name in [*meta, "label", "image"]]
    files += sorted((ROOT / "base").glob("*.cc")) + sorted((ROOT / "pmem").glob("*.cc"))
    return [*files, ROOT / "tests/crash/journal_crash_test.cc"]


def say(text: str) -> None:
    """One line to standard output, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def compile_object(source: Path, out: Path) -> None:
    """Compile one file."""
    subprocess.run([*COMPILE, str(source), "-o", str(out)], check=True)


def tests_pass(objects: list[Path], program: Path) -> bool:
    """Link and run the crash tests."""
    subprocess.run(["g++", *map(str, objects), *LIBRARIES, "-o", str(program)], check=True)
    run = subprocess.run([str(program), "--gtest_brief=1"], check=False, capture_output=True)
    return run.returncode == 0


def find_sites(file: str) -> list[tuple[Site, str]]:
    """Each call in a file, with the file's text without it."""
    text = (ROOT / file).read_text()
    found = []
    for call in CALL.finditer(text):
        line = text.count("\n", 0, call.start()) + 1
        mutated = text[: call.start()] + NOTHING + text[call.end() :]
        found.append((Site(file, line, text.splitlines()[line - 1].strip()), mutated))
    return found


def main() -> int:
    """Run the mutations."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("files", nargs="*", default=DEFAULT_FILES)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="streamfs-mutation-") as directory:
        work = Path(directory)
        objects = {source: work / f"{i}.o" for i, source in enumerate(sources())}
        for source, out in objects.items():
            compile_object(source, out)
        if not tests_pass(list(objects.values()), work / "whole"):
            say("the crash tests fail without any mutation")
            return 2
        sites = []
        for file in args.files:
            for site, mutated in find_sites(file):
                changed = work / "mutated.cc"
                changed.write_text(mutated)
                compile_object(changed, work / "mutated.o")
                others = [out for source, out in objects.items() if source != ROOT / file]
                site.caught = not tests_pass([*others, work / "mutated.o"], work / "mutant")
                verdict = "caught" if site.caught else "MISSED"
                say(f"{verdict} {site.file}:{site.line} {site.text}")
                sites.append(site)
    if args.json:
        args.json.write_text(json.dumps([asdict(site) for site in sites], indent=1) + "\n")
    missed = sum(not site.caught for site in sites)
    say(f"mutations: {len(sites) - missed} passed, {missed} failed")
    return 1 if missed or not sites else 0


if __name__ == "__main__":
    sys.exit(main())
