"""Where a workload runs and how its programs are started."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.system import BenchError


class ProgramError(BenchError):
    """A program of the workload failed."""


def unprivileged_user() -> str | None:
    """Whom to run the workload as: PostgreSQL refuses root. None: the caller is not root."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError:
        return "nobody"


@dataclass(frozen=True)
class Place:
    """A mount to work in, a scratch folder outside it, and the user to work as.

    ``stream_run`` is the program that says hints for others, or None for a run without hints.
    ``user`` is None when the demo itself is not run by root: then everybody is the caller.
    """

    mount: Path
    scratch: Path
    stream_run: Path | None
    user: str | None
    log: Path

    def command(self, profile: str | None, arguments: Sequence[str | Path]) -> list[str]:
        """Put ``stream-run`` before a command where hints are wanted."""
        words = [str(word) for word in arguments]
        if self.stream_run is None:
            return words
        chosen = [] if profile is None else ["--profile", profile]
        return [str(self.stream_run), *chosen, "--", *words]

    def environment(self) -> dict[str, str]:
        """Temporary files land in the mount, as they do where / is the filesystem in use."""
        temporary = str(self.folder("tmp"))
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TERM") if name in os.environ}
        return {**kept, "TMPDIR": temporary, "SQLITE_TMPDIR": temporary, "LC_ALL": "C"}

    def folder(self, name: str) -> Path:
        """Return a folder of the mount, made if need be and owned by the workload's user."""
        path = self.mount / name
        if not path.is_dir():
            path.mkdir(exist_ok=True)
            self.own(path)
        return path

    def own(self, path: Path) -> None:
        """Give a path to the workload's user."""
        if self.user is not None:
            shutil.chown(path, self.user, pwd.getpwnam(self.user).pw_gid)

    def start(
        self, profile: str | None, arguments: Sequence[str | Path], cwd: Path | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a program; its output goes to the log."""
        group = None if self.user is None else pwd.getpwnam(self.user).pw_gid
        with self.log.open("ab") as log:
            return subprocess.Popen(
                self.command(profile, arguments),
                cwd=cwd or self.mount,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=self.user,
                group=group,
                extra_groups=None if self.user is None else [],
            )

    def run(
        self, profile: str | None, arguments: Sequence[str | Path], cwd: Path | None = None
    ) -> None:
        """Run a program to its end; raise ProgramError if it fails."""
        process = self.start(profile, arguments, cwd)
        if process.wait() != 0:
            last = self.log.read_text(errors="replace").strip()[-300:].splitlines()[-1:]
            message = f"{arguments[0]} failed with {process.returncode}; see {self.log}: {last}"
            raise ProgramError(message)
