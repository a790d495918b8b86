"""Run a command and fail when it leaves a process, a FUSE mount or a loop device behind.

usage: leaks.py COMMAND [ARGUMENT...]

Becomes the reaper of every orphaned descendant, so a daemon that forked itself away is seen too.
Processes that are left are reported and killed; mounts and loop devices are only reported.
Mounts and loop devices count when they lie in the directory for temporary files (TMPDIR), which
scripts/test makes for its own run: other mounts of streamfs on the machine are not the command's.

Ctrl-C, SIGTERM and the parent's death end the command: all descendants are interrupted, in whatever
session they are, and have ten seconds to tidy up. The exit code is then 128 and the signal.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
MOUNT_TYPES = {"fuse.streamfs", "fuse.ssd-sim", "fuse.limit_fs"}
GRACE_SECONDS = 3.0
INTERRUPTED_SECONDS = 10.0


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


def reap() -> bool:
    """Collect the exit codes of adopted processes; whether any process is still ours."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def end(processes: dict[int, str]) -> None:
    """Kill what was left, and wait a moment until it is gone."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    deadline = time.monotonic() + GRACE_SECONDS
    while reap() and time.monotonic() < deadline:
        time.sleep(0.01)


def interrupt(by: int) -> None:
    """Interrupt every descendant, except those that a terminal's Ctrl-C has reached."""
    for process in descendants():
        with contextlib.suppress(ProcessLookupError):
            if by != signal.SIGINT or os.getpgid(process) != os.getpgrp():
                os.kill(process, signal.SIGINT)


def stop(by: int, _frame: object) -> None:
    """Handle a signal, once."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt(by)


def run(command: list[str]) -> tuple[int, float]:
    """Run the command until it ends or a signal arrives; return exit code and seconds of grace."""
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    process = subprocess.Popen(command)
    try:
        return process.wait(), GRACE_SECONDS
    except KeyboardInterrupt as signalled:
        by: int = signalled.args[0]
        interrupt(by)
        return 128 + by, INTERRUPTED_SECONDS


def main(command: list[str]) -> int:
    """Run the command and return its exit code, or 1 when something stayed."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    folder = os.path.realpath(tempfile.gettempdir())
    before = left_in(folder)
    code, grace_s = run(command)
    deadline = time.monotonic() + grace_s
    while True:
        reap()
        processes = descendants()
        left = left_in(folder) - before
        if not (processes or left) or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    for process, text in processes.items():
        print(f"left behind: process {process}: {text[:200]}")
    end(processes)
    for thing in sorted(left):
        print(f"left behind: {thing}")
    return code or (1 if processes or left else 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
