"""Processes, mounts and root: everything that must be undone is pushed on a stack when it is done.

Root is needed for loop devices and for mounting what is on them, for nothing else; an ordinary
user's benches ask sudo for exactly those commands.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path


class BenchError(Exception):
    """Something a bench cannot go on without; the message says what to do."""


def as_root(arguments: Sequence[str | Path]) -> list[str]:
    """Put sudo before a command unless we are root already."""
    words = [str(word) for word in arguments]
    if os.geteuid() == 0:
        return words
    if shutil.which("sudo") is None:
        message = "root is needed for loop devices and mounts, and there is no sudo"
        raise BenchError(message)
    return ["sudo", "--", *words]


def output_of(arguments: Sequence[str | Path]) -> str:
    """Run a command to its end and return what it printed."""
    words = [str(word) for word in arguments]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()
        message = f"{' '.join(words)}: exit {done.returncode}: {last[-1] if last else ''}"
        raise BenchError(message)
    return done.stdout


def cpu_us(process: int | None) -> float:
    """Return the CPU time of all threads that a process has now; 0 of none."""
    if process is None:
        return 0.0
    took = 0
    for thread in Path(f"/proc/{process}/task").iterdir():
        with suppress(OSError):  # it ended meanwhile
            took += int((thread / "schedstat").read_text().split()[0])
    return took / 1000


def wait_until(
    ready: Callable[[], bool], what: str, process: subprocess.Popen[bytes], log: Path
) -> None:
    """Wait up to half a minute for ``ready``; the death of ``process`` ends the wait."""
    for _ in range(600):
        if ready():
            return
        if process.poll() is not None:
            break
        time.sleep(0.05)
    tail = log.read_text(errors="replace").strip().splitlines()[-1:] if log.exists() else []
    message = f"{what} did not come up: {tail[0] if tail else 'no output'} (see {log})"
    raise BenchError(message)


def start(
    stack: ExitStack, arguments: Sequence[str | Path], log: Path, patience_seconds: float = 30
) -> subprocess.Popen[bytes]:
    """Start a server; when the stack unwinds it is given time to end by itself, then ended."""
    with log.open("ab") as file:
        process = subprocess.Popen(
            [str(word) for word in arguments],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,  # Ctrl-C is the bench's; it unmounts, then the servers end
        )
    stack.callback(finish, process, patience_seconds)
    return process


def finish(process: subprocess.Popen[bytes], patience_seconds: float) -> None:
    """Wait for a process to end; past its time, ask it, then kill it."""
    for seconds, number in ((patience_seconds, signal.SIGTERM), (5.0, signal.SIGKILL)):
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            if process.args and isinstance(process.args, list) and process.args[0] == "sudo":
                subprocess.run(["sudo", "--", "kill", f"-{number}", str(process.pid)], check=False)
            else:
                process.send_signal(number)
        else:
            return
    process.wait()


def unmount(arguments: Sequence[str | Path], mount: Path) -> None:
    """Unmount by the given command; a busy mount is tried again, then detached."""
    for _ in range(50):
        if not os.path.ismount(mount):
            return
        done = subprocess.run([*arguments, mount], capture_output=True, check=False)
        if done.returncode == 0:
            return
        time.sleep(0.1)
    subprocess.run([*arguments, "-z" if "fusermount3" in arguments else "-l", mount], check=False)
