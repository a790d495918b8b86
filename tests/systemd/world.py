"""A systemd that is init of namespaces of its own, on a copy-on-write copy of this system.

The project is installed in it as a package would, with `cmake --install`. Its changes stay in a
folder, and end with it; services of the machine itself are neither seen nor touched.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("STREAMFS_BIN", ROOT / "build/release/bin")).parent
VENV = ROOT / "build/venv"
MEDIA = Path("/media/test")  # the folder `media` inside
REPOSITORY = Path("/media/repository")  # ROOT inside
BOOT_SECONDS = 60.0
# Units that nobody needs here, or that would reach out of the system.
MASKED = (
    "getty.target",
    "getty@tty1.service",
    "console-getty.service",
    "systemd-logind.service",
    "cron.service",
    "systemd-udevd.service",
    "systemd-udev-trigger.service",
    "systemd-timesyncd.service",
    "ssh.service",
    "systemd-networkd.service",
    "systemd-resolved.service",
    "e2scrub_reap.service",
    "apt-daily.timer",
    "systemd-update-utmp.service",
    "systemd-update-utmp-runlevel.service",
    "systemd-rfkill.socket",
    "systemd-sysctl.service",
    "systemd-modules-load.service",
    "systemd-random-seed.service",
    "systemd-user-sessions.service",
    "postgresql.service",
    "mariadb.service",
    "etcd.service",
)

Ran = subprocess.CompletedProcess[str]


def until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.02)


def execute(*words: str | Path, check: bool = True, seconds: float = 120) -> Ran:
    """Run a command of the host's; a failure shows what it said."""
    done = subprocess.run(
        [str(word) for word in words],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        start_new_session=True,
    )
    assert not check or done.returncode == 0, (
        f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
    )
    return done


def why_not(folder: Path) -> str:
    """Why there can be no such world in a folder of this machine; empty: there can."""
    if os.geteuid() != 0:
        return "namespaces and mounts of their own take root"
    if not Path("/lib/systemd/systemd").exists():
        return "systemd is not installed"
    if not Path("/dev/fuse").exists():
        return "this machine has no FUSE"
    script = (
        'cd "$1" && mkdir -p try/u try/w try/r && mount -t cgroup2 none try/r && umount try/r && '
        "mount -t overlay -o lowerdir=/,upperdir=try/u,workdir=try/w none try/r"
    )
    tried = execute("unshare", "-mpfC", "sh", "-c", script, "sh", folder, check=False)
    said = tried.stderr.strip()
    return "" if tried.returncode == 0 else f"no cgroup2 or overlay in namespaces here: {said}"


class World:
    """Boots, runs commands inside, and is switched off. For one thread."""

    def __init__(self, folder: Path, *, installed: bool = True) -> None:
        self.folder = folder
        self._init: subprocess.Popen[bytes] | None = None
        self._pid = 0
        self.upper = folder / "upper"
        for name in ("upper", "work", "root", "media"):
            (folder / name).mkdir()
        if installed:
            self._install()

    @property
    def init_pid(self) -> int:
        """The systemd, as it is numbered outside."""
        return self._pid

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """A file of the system, while it is off."""
        target = self.upper / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        target.write_text(text)
        target.chmod(mode)

    def _install(self) -> None:
        environment = {**os.environ, "DESTDIR": str(self.upper)}
        subprocess.run(
            ["cmake", "--install", str(BUILD), "--prefix", "/usr"],
            env=environment, check=True, capture_output=True, timeout=120,
        )  # fmt: skip
        # With a merged /usr, as Debian has it, /sbin is a link and the mount helper is found there.
        # The program runs the classifierd that these tests would import themselves.
        paths = [path for path in os.environ.get("PYTHONPATH", "").split(":") if path[:1] == "/"]
        python = REPOSITORY / VENV.relative_to(ROOT) / "bin/python"
        program = f'PYTHONPATH={":".join(paths)} exec {python} -m classifierd "$@"'
        self.write("/usr/bin/classifierd", f"#!/bin/sh\n{program}\n", 0o755)
        self.write("/etc/fstab", "")
        self.write("/etc/machine-id", "00000000000000000000000000000001\n")
        self.write("/etc/systemd/journald.conf.d/kept.conf", "[Journal]\nStorage=persistent\n")
        self.write("/var/log/journal/.keep", "")
        system = self.upper / "etc/systemd/system"
        system.mkdir(parents=True, exist_ok=True)
        for wants in Path("/etc/systemd/system").glob("*.wants"):
            (system / wants.name).mkdir()
            os.setxattr(system / wants.name, "trusted.overlay.opaque", b"y")
        for unit in MASKED:
            (system / unit).symlink_to("/dev/null")
        (system / "default.target").symlink_to("/lib/systemd/system/multi-user.target")

    def boot(self) -> None:
        """Switch on, and wait until systemd has started what it should."""
        script = Path(__file__).with_name("boot")
        log = (self.folder / "console").open("ab")
        with log:
            self._init = subprocess.Popen(
                ["unshare", "--mount", str(script), str(self.folder), str(ROOT)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        until(self._found_init, BOOT_SECONDS, "systemd")
        until(self._settled, BOOT_SECONDS, "the end of its start")

    def _found_init(self) -> bool:
        assert self._init is not None
        assert self._init.poll() is None, (self.folder / "console").read_text()
        at = Path(f"/proc/{self._init.pid}/task/{self._init.pid}/children").read_text().split()
        try:
            found = bool(at) and Path(f"/proc/{at[0]}/comm").read_text() == "systemd\n"
        except (FileNotFoundError, ProcessLookupError):  # of the script's own, and over already
            found = False
        if not found:
            return False
        self._pid = int(at[0])
        return self.run("test", "-S", "/run/systemd/private", check=False).returncode == 0

    def _settled(self) -> bool:
        state = self.run("systemctl", "is-system-running", check=False).stdout.strip()
        return state in ("running", "degraded")

    def run(self, *words: str | Path, check: bool = True, seconds: float = 120) -> Ran:
        """Run a command inside."""
        inside = ("nsenter", "-t", str(self._pid), "-a", "env", "-i", "LC_ALL=C.UTF-8",
                  "PATH=/usr/sbin:/usr/bin:/sbin:/bin")  # fmt: skip
        return execute(*inside, *words, check=check, seconds=seconds)

    def chrooted(self, *words: str, check: bool = True) -> Ran:
        """Run a command in the installed system, which is off: no systemd runs."""
        script = (
            "mount --make-rprivate / && mount -t overlay -o "
            '"lowerdir=/,upperdir=$1/upper,workdir=$1/work" none "$1/root" && '
            'mount -t tmpfs none "$1/root/run" && mount -t proc none "$1/root/proc" && '
            'mount --rbind /dev "$1/root/dev" && '
            'root=$1/root && shift && exec chroot "$root" "$@"'
        )
        return execute("unshare", "-m", "sh", "-c", script, "sh", self.folder, *words, check=check)

    def pid_of(self, unit: str) -> int:
        """The main process, as it is numbered inside."""
        return int(self.show(unit, "MainPID"))

    def signal(self, unit: str, number: int) -> int:
        """Send a signal to its main process; which one that was."""
        pid = self.pid_of(unit)
        assert pid > 0, self.journal(unit)
        self.run("kill", f"-{number}", str(pid))
        return pid

    def show(self, unit: str, what: str) -> str:
        """A property."""
        return self.run("systemctl", "show", "--value", "-p", what, unit).stdout.strip()

    def active(self, unit: str) -> bool:
        """Whether it is up."""
        return self.show(unit, "ActiveState") == "active"

    def journal(self, unit: str = "") -> str:
        """The journal, of this boot and earlier ones; also when the system is off."""
        folder = self.upper / "var/log/journal"
        which = ["-u", unit] if unit else []
        return execute("journalctl", "-D", folder, "-o", "cat", "--no-pager", *which).stdout

    def power_off(self) -> None:
        """As systemctl poweroff does, in an orderly way."""
        assert self._init is not None
        self.run("systemctl", "poweroff", check=False)
        self._init.wait(BOOT_SECONDS)
        self._remove_group()

    def _remove_group(self) -> None:
        """The control group that a boot was given."""
        if self._init is None:
            return
        script = (
            'cd "$1" && mount -t cgroup2 none root && '
            'find "root/streamfs-test-$2" -depth -type d -exec rmdir {} + '
        )
        words = ("unshare", "-m", "sh", "-c", script, "sh", self.folder, str(self._init.pid))
        until(lambda: execute(*words, check=False).returncode == 0, 10, "its processes' end")
        self._init = None

    def end(self) -> None:
        """Whatever happened, leave no process behind."""
        if self._init is not None and self._init.poll() is None:
            os.killpg(self._init.pid, signal.SIGKILL)  # --kill-child ends init, and so all inside
            self._init.wait(BOOT_SECONDS)
        self._remove_group()
        shutil.rmtree(self.folder / "work", ignore_errors=True)
