"""Everyday work on a filesystem, on a mount of its own.

usage: python -m tests.conformance.everyday [NAME...]

NAME is one of stress-ng, dbench, git, compile; without one, all of them run. Afterwards the mount
is taken down and fsck must find nothing. Unmounts whatever happens; exits 0 when all went well.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.conformance.sound import sound_mount
from tests.integration.pairs import ROOT

# Each stressor for this long, two workers, one stressor after the other.
STRESS_SECONDS = 3
STRESS_WORKERS = 2
DBENCH_SECONDS = 30
DBENCH_CLIENTS = 4


def run(*words: str | Path, cwd: Path | None = None, seconds: float = 3600) -> str:
    """Run a command; return what it said, or raise with it."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=seconds,
        check=False,
    )
    if done.returncode != 0:
        said = f"{words}: {done.returncode}\n{done.stdout[-4000:]}"
        raise AssertionError(said)
    return done.stdout


def stress_ng(mount: Path) -> str:
    """Every stressor of stress-ng's class "filesystem", results verified."""
    folder = mount / "stress"
    folder.mkdir()
    said = run(
        *("stress-ng", "--class", "filesystem", "--sequential", str(STRESS_WORKERS)),
        *("--timeout", f"{STRESS_SECONDS}s", "--verify", "--temp-path", folder, "--metrics-brief"),
        # Tests a filesystem of its own, and ends as a failure on a kernel without it.
        *("--exclude", "binderfs", "--oomable"),
        seconds=1800,
    )
    failed = re.search(r"failed: (\d+)", said)
    assert failed is None or failed[1] == "0", said[-4000:]
    stressors = set(re.findall(r"metrc: \[\d+\] ([\w-]+) +\d+ +\d+\.", said))
    assert stressors, said[-4000:]
    return f"{len(stressors)} stressors, each {STRESS_WORKERS} times, 0 failed"


def dbench(mount: Path) -> str:
    """Dbench's file server load."""
    said = run(
        *("dbench", "-D", mount, "-t", str(DBENCH_SECONDS), str(DBENCH_CLIENTS)),
        seconds=DBENCH_SECONDS + 120,
    )
    found = re.search(r"Throughput [\d.]+ MB/sec.*", said)
    assert found, said[-2000:]
    return found[0]


def git(mount: Path) -> str:
    """Clone this project, repack it, and let git check every object."""
    clone = mount / "clone"
    run("git", "clone", "--quiet", "--no-local", "--no-hardlinks", ROOT, clone)
    for _ in range(2):
        run("git", "gc", "--quiet", "--aggressive", "--prune=now", cwd=clone)
        run("git", "fsck", "--full", "--strict", cwd=clone)
    assert run("git", "status", "--porcelain", cwd=clone) == ""
    objects = re.search(r"in-pack: (\d+)", run("git", "count-objects", "-v", cwd=clone))
    return f"{objects[1] if objects else '?'} objects packed and checked twice"


def compile_itself(mount: Path) -> str:
    """Build streamfs in the mount, and let what was built say its version."""
    source = mount / "source"
    run("git", "clone", "--quiet", "--no-local", ROOT, source)
    (source / "build").mkdir()
    (source / "build" / "deps").symlink_to(ROOT / "build" / "deps")
    run("cmake", "--preset", "release", cwd=source)
    # Compiling is the load.
    run("env", "CCACHE_DISABLE=1", "cmake", "--build", "--preset", "release", cwd=source)
    programs = source / "build" / "release" / "bin"
    version = run(programs / "streamfs", "--version").strip()
    count = sum(1 for path in programs.iterdir() if os.access(path, os.X_OK))
    return f"{count} programs built; {version}"


LOADS: dict[str, Callable[[Path], str]] = {
    "stress-ng": stress_ng,
    "dbench": dbench,
    "git": git,
    "compile": compile_itself,
}


def run_all(folder: Path, names: list[str]) -> bool:
    """Make a filesystem, put every load on it, take it down again."""
    sound = True
    with sound_mount(folder, mkfs=("--mean-file-size", "32K"), size="12G") as mount:
        for name in names:
            began = time.monotonic()
            try:
                said = LOADS[name](mount.point)
            except (AssertionError, OSError, subprocess.TimeoutExpired) as failure:
                sound, said = False, f"FAILED: {failure}"
            print(f"{name}: {said} ({time.monotonic() - began:.0f} s)", flush=True)
    return sound


def main(arguments: list[str]) -> int:
    """Run and say how it went."""
    if any(name not in LOADS for name in arguments):
        print(__doc__, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="everyday.") as name:
        sound = run_all(Path(name), arguments or list(LOADS))
    print(f"everyday: {'all well, fsck finds nothing' if sound else 'FAILED'}")
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
