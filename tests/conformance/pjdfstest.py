"""pjdfstest on a mount of its own: what POSIX promises, from outside.

usage: python -m tests.conformance.pjdfstest PJDFSTEST [PATTERN...]

Runs as root over each transport of requests and unmounts whatever happens. Prints a line for each
transport: how many tests failed, were skipped, passed. Exits 0 when nothing failed and nothing was
skipped that Linux can do. The tests of a read-only filesystem run by themselves: others leave files
open, and then no filesystem becomes read-only.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.conformance.sound import sound_mount, transports
from tests.integration.pairs import BIN

CONFIGURATION = Path(__file__).parent / "pjdfstest.toml"
RUN_SECONDS = 600
READ_ONLY = "erofs"
# The kernel tells no LINK_MAX of a FUSE filesystem. (XFS is left out too: its limit is too high.)
NOT_TOLD = {"link::link_count_max"}
# A mount(8) that remounts as it does once the helper is installed in /sbin.
MOUNT = """#!/bin/sh
case "$1 $2" in
"-o remount,"*) exec "{helper}" none "$3" -o "$2,suid,dev" ;;
*) exec "{mount}" "$@" ;;
esac
"""
VERDICT = re.compile(r"^([\w:]+) +(ok|FAILED|skipped)$", re.MULTILINE)


class Counts(NamedTuple):
    """Names of tests by how they ended."""

    failed: set[str]
    skipped: set[str]
    passed: set[str]


def configuration(folder: Path, *, remounts: bool) -> Path:
    """Write the settings of one run."""
    text = CONFIGURATION.read_text()
    if not remounts:
        text = text.replace("allow_remount = true", "allow_remount = false")
    path = folder / f"remounts-{remounts}.toml"
    path.write_text(text)
    return path


def environment(folder: Path) -> dict[str, str]:
    """Return the environment in which `mount` finds the helper that is not installed."""
    tools = folder / "tools"
    tools.mkdir()
    script = tools / "mount"
    script.write_text(MOUNT.format(helper=BIN / "mount.fuse.streamfs", mount=shutil.which("mount")))
    script.chmod(0o755)
    return os.environ | {"PATH": f"{tools}:{os.environ['PATH']}", "RUST_BACKTRACE": "0"}


def run_tests(command: list[str], env: dict[str, str]) -> Counts:
    """Run some of the tests and show what the failed ones said."""
    done = subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=RUN_SECONDS, check=False
    )
    ended: dict[str, set[str]] = {"FAILED": set(), "skipped": set(), "ok": set()}
    for name, how in VERDICT.findall(done.stdout):
        ended[how].add(name)
    if done.returncode != 0:
        print(done.stdout + done.stderr)
        ended["FAILED"] = ended["FAILED"] or {"pjdfstest itself"}
    return Counts(ended["FAILED"], ended["skipped"], ended["ok"])


def test_mount(folder: Path, transport: str, program: str, patterns: list[str]) -> Counts:
    """Make a filesystem, run every test on it, take it down again."""
    second = Path(tempfile.mkdtemp(prefix="streamfs-conformance.", dir="/dev/shm"))
    options = ("allow_other", "default_permissions", "suid", "dev", transport)
    try:
        with sound_mount(folder, options) as mount:
            env = environment(folder)
            words = [program, "--path", str(mount.point), "--secondary-fs", str(second)]
            plain = [*words, "-c", str(configuration(folder, remounts=False)), *patterns]
            most = run_tests(plain, env)
            rest = [*words, "-c", str(configuration(folder, remounts=True)), READ_ONLY]
            read_only = run_tests(rest, env)
    finally:
        shutil.rmtree(second)
    return Counts(
        most.failed | read_only.failed,
        most.skipped - read_only.passed - read_only.failed,
        most.passed | read_only.passed,
    )


def run_over(transport: str, program: str, patterns: list[str]) -> bool:
    """Run everything on a mount with this option, and sum up; returns whether all is well."""
    # Not in TMPDIR: a socket's path holds 108 bytes, and the tests add names of their own.
    with tempfile.TemporaryDirectory(prefix="sfs.", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)  # the tests' other users reach into it
        counts = test_mount(folder, transport, program, patterns)
    unexpected = sorted(counts.skipped - NOT_TOLD)
    for skipped in unexpected:
        print(f"{skipped}: skipped, although Linux can do it")
    print(
        f"pjdfstest, {transport}: {len(counts.failed)} failed, {len(counts.skipped)} skipped,"
        f" {len(counts.passed)} passed"
    )
    return not counts.failed and not unexpected


def main(arguments: list[str]) -> int:
    """Run over each transport."""
    if not arguments or os.geteuid() != 0:
        print(__doc__ if not arguments else "conformance tests mount as root", file=sys.stderr)
        return 2
    program, *patterns = arguments
    with transports() as offered:
        ran = [run_over(transport, program, patterns) for transport in offered]
    return 0 if all(ran) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
