#!/usr/bin/env python3
"""Say how much of fuse-fs/meta the fuzzers' inputs reach.

Usage: coverage.py [--least PERCENT] [--verbose] BUILD CORPUS...

BUILD is what `cmake --preset fuzz-coverage` configured and its target `fuzzers` built; a CORPUS
holds a folder of inputs for each target, as seeds and corpora in the other build do. Prints the
share of lines; exits 1 when it is below PERCENT.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGETS = ["image", "fsck", "journal", "log"]
LLVM = "19"
FILES_AT_ONCE = 500


def replay(build: Path, target: str, corpora: list[Path], profiles: Path) -> int:
    """Run every input of a target once; return their number."""
    inputs = [str(each) for corpus in corpora for each in sorted((corpus / target).glob("*"))]
    for at in range(0, len(inputs), FILES_AT_ONCE):
        environment = os.environ | {"LLVM_PROFILE_FILE": str(profiles / f"{target}{at}.profraw")}
        command = [str(build / f"bin/fuzz_{target}"), *inputs[at : at + FILES_AT_ONCE]]
        subprocess.run(command, check=True, capture_output=True, env=environment)
    return len(inputs)


def summary(build: Path, profile: Path) -> list[tuple[str, int, int]]:
    """Name, lines and lines reached of each file of fuse-fs/meta."""
    command = [f"llvm-cov-{LLVM}", "export", "-summary-only", f"-instr-profile={profile}"]
    command.append(str(build / f"bin/fuzz_{TARGETS[0]}"))
    for target in TARGETS[1:]:
        command += ["-object", str(build / f"bin/fuzz_{target}")]
    command.append(str(ROOT / "fuse-fs/meta"))
    report = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    found = []
    for entry in report["data"][0]["files"]:
        lines = entry["summary"]["lines"]
        name = str(Path(entry["filename"]).resolve().relative_to(ROOT))
        found.append((name, int(lines["count"]), int(lines["covered"])))
    return sorted(found)


def main() -> int:
    """Replay, add up, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--least", type=float, default=0.0)
    parser.add_argument("--verbose", action="store_true", help="a line a file")
    parser.add_argument("build", type=Path)
    parser.add_argument("corpora", type=Path, nargs="+")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="streamfs-coverage-") as folder:
        profiles = Path(folder)
        inputs = sum(replay(args.build, target, args.corpora, profiles) for target in TARGETS)
        merged = profiles / "all.profdata"
        raw = [str(each) for each in sorted(profiles.glob("*.profraw"))]
        subprocess.run([f"llvm-profdata-{LLVM}", "merge", "-o", str(merged), *raw], check=True)
        files = summary(args.build, merged)
    if args.verbose:
        for name, lines, reached in files:
            sys.stdout.write(
                f"{100 * reached / max(lines, 1):6.1f} %  {reached:5} of {lines:5}  {name}\n"
            )
    lines, reached = sum(each[1] for each in files), sum(each[2] for each in files)
    percent = 100 * reached / max(lines, 1)
    sys.stdout.write(
        f"fuzz coverage: {percent:.1f} % of {lines} lines of fuse-fs/meta, by {inputs} inputs\n"
    )
    return 0 if percent >= args.least and lines > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
