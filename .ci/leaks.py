"""Run a command and fail when it leaves a process, a FUSE mount or a loop device behind.

usage: leaks.py COMMAND [ARGUMENT...]

Becomes the reaper of every orphaned descendant, so a daemon that forked itself away is seen too.
Processes that are left are reported and killed; mounts and loop devices are only reported.
Mounts and loop devices count when they lie in the directory for temporary files (TMPDIR), which
scripts/test makes for its own run: other mounts of streamfs on the machine are not the command's.

The exit code is the command's, or 99 when something was left, whether or not the command failed.

Ctrl-C, SIGTERM and the parent's death end the command: all descendants are interrupted, in whatever
session they are, and have ten seconds to tidy up. The exit code is then 128 and the signal.
"""

import contextlib
import ctypes
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
MOUNT_TYPES = {"fuse.streamfs", "fuse.ssd-sim", "fuse.limit_fs"}
LEFT_CODE = 99  # no other command of the gate exits with it
GRACE_SECONDS = 3.0
INTERRUPTED_SECONDS = 10.0
# The watch blocks these signals and takes them only in wait(), so none interrupts the clean-up.
ENDING = {signal.SIGINT, signal.SIGTERM}
BLOCKED = {*ENDING, signal.SIGCHLD}


def mounts(folder: str) -> set[str]:
    """Every FUSE mount of streamfs beneath a folder, as 'type on place'."""
    rows = (line.split() for line in Path("/proc/self/mounts").read_text().splitlines())
    return {
        f"mount {row[2]} on {row[1]}"
        for row in rows
        if row[2] in MOUNT_TYPES and row[1].startswith(folder + "/")
    }


def loop_devices(folder: str) -> set[str]:
    """Every loop device whose file is beneath a folder, with its file."""
    found = set()
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):  # it was detached meanwhile
            file = path.read_text().strip()
            if file.startswith(folder + "/"):
                found.add(f"loop device {path.parts[3]} of {file}")
    return found


def left_in(folder: str) -> set[str]:
    """Name the mounts and loop devices of a folder."""
    return mounts(folder) | loop_devices(folder)


def living() -> dict[int, list[int]]:
    """Read which processes each process is the parent of, zombies excepted."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = entry.read_text().rpartition(")")[2].split()[:2]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if state != "Z":
            children.setdefault(int(parent), []).append(int(entry.parent.name))
    return children


def command_of(process: int) -> str:
    """Return the command line of a process, empty when it is gone."""
    try:
        return Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ").strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def descendants() -> dict[int, str]:
    """Read the living processes beneath this one: id and command line."""
    children = living()
    found: dict[int, str] = {}
    waiting = children.get(os.getpid(), [])
    while waiting:
        process = waiting.pop()
        found[process] = command_of(process)
        waiting += children.get(process, [])
    return found


def reap() -> None:
    """Collect the exit codes of adopted processes."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def end() -> dict[int, str]:
    """Kill every descendant, and return those that live on after a moment."""
    deadline = time.monotonic() + GRACE_SECONDS
    while (processes := descendants()) and time.monotonic() < deadline:
        for process in processes:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.01)
    reap()
    return processes


def interrupt(by: int) -> None:
    """Interrupt every descendant, except those that a terminal's Ctrl-C has reached."""
    for process in descendants():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if by != signal.SIGINT or os.getpgid(process) != os.getpgrp():
                os.kill(process, signal.SIGINT)


def wait(done: Callable[[], bool], seconds: float, signals: set[signal.Signals]) -> int:
    """Wait until something is done or the time is over; return the signal that came first, or 0."""
    deadline = time.monotonic() + seconds
    while not done() and time.monotonic() < deadline:
        taken = signal.sigtimedwait({*signals, signal.SIGCHLD}, 0.1)
        if taken and taken.si_signo in signals:
            return taken.si_signo
    return 0


def start(command: list[str], mask: set[signal.Signals | int]) -> subprocess.Popen[bytes]:
    """Start the command with the signals blocked that were blocked when the watch began."""
    return subprocess.Popen(
        command, preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    )


def main(command: list[str]) -> int:
    """Run the command and return the exit code."""
    parent = os.getppid()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, BLOCKED)
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:  # it died before the kernel was asked to tell
        return 128 + signal.SIGTERM
    folder = os.path.realpath(tempfile.gettempdir())
    before = left_in(folder)

    def nothing_is_left() -> bool:
        reap()
        return not descendants() and left_in(folder) <= before

    try:
        process = start(command, mask)
        by = wait(lambda: process.poll() is not None, math.inf, ENDING)
        by = by or wait(nothing_is_left, GRACE_SECONDS, ENDING)
        if by:
            interrupt(by)
            wait(nothing_is_left, INTERRUPTED_SECONDS, set())
        left = left_in(folder) - before
    finally:
        processes = descendants()
        survivors = end()
    for number, text in (processes | survivors).items():
        note = " (cannot be killed)" if number in survivors else ""
        print(f"left behind: process {number}: {text[:200]}{note}")
    for thing in sorted(left):
        print(f"left behind: {thing}")
    if by:
        return 128 + by
    return LEFT_CODE if processes or left else process.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
