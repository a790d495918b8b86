"""A bare Debian in a folder: made once, used in copies on top of it.

Mounts of a command are made in namespaces that end with the command.
"""

import os
import platform
import re
import shutil
from pathlib import Path

from tests.systemd.world import ROOT, Ran, execute

# Names of the variables that a machine may need to reach package registries.
REACHING = re.compile("CERT|CA_BUNDLE|CAINFO|PROXY|^PIP_", re.IGNORECASE)
TRUSTED = Path("/usr/local/share/ca-certificates")
INSIDE = """
set -e
mount --make-rprivate /
mount -t overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" none "$2/root"
mount -t proc none "$2/root/proc"
mount -t sysfs none "$2/root/sys"
mount --rbind /dev "$2/root/dev"
mount -t tmpfs -o mode=755 none "$2/root/run"
root=$2/root
shift 2
exec nice chroot "$root" "$@"
"""


def mirror() -> str:
    """Return the address from which this machine gets Debian's packages."""
    script = 'source "$1/scripts/lib.sh" && source "$1/scripts/libfuse.sh" && debian_mirror'
    return execute("bash", "-c", script, "bash", ROOT).stdout.strip().rstrip("/")


def why_not(suite: str, folder: Path) -> str:
    """Return why there can be no such Debian here; an empty text if there can."""
    if os.geteuid() != 0:
        return "a system of its own takes root"
    if not Path("/dev/fuse").exists():
        return "this machine has no FUSE"
    if shutil.which("mmdebstrap") is None:
        return "mmdebstrap is not installed (scripts/test packages brings it)"
    release = f"{mirror()}/dists/{suite}/Release"
    helper = "/usr/lib/apt/apt-helper"
    tried = execute(helper, "download-file", release, folder / "Release", check=False)
    said = " ".join(line for line in tried.stderr.splitlines() if line.startswith("E:"))
    return "" if tried.returncode == 0 else f"{release} cannot be had: {said}"


def make(suite: str, folder: Path) -> Path:
    """Make the system that an ordinary installation starts from. Raises AssertionError."""
    base = folder / "base"
    # mmdebstrap mounts /proc and /sys in the folder; its namespace ends with it, however it ends.
    execute(
        "unshare", "-m", "mmdebstrap", "--quiet", "--variant=minbase", "--mode=root",
        "--aptopt=Acquire::Check-Valid-Until false", "--include=systemd,ca-certificates",
        suite, base, f"deb {mirror()} {suite} main", seconds=900,
    )  # fmt: skip
    return base


def codename() -> str:
    """The suite of this machine's own Debian."""
    return platform.freedesktop_os_release().get("VERSION_CODENAME", "")


class Copy:
    """A copy-on-write copy of a system, or of a copy. Not thread-safe."""

    def __init__(self, base: Path | str, folder: Path) -> None:
        self.base, self.folder = base, folder
        for name in ("upper", "work", "root"):
            (folder / name).mkdir(parents=True)
        self.upper = folder / "upper"
        for name in ("resolv.conf", "hosts"):
            if Path("/etc", name).exists():
                self.put(Path("/etc", name), f"etc/{name}")
        for certificate in TRUSTED.glob("*.crt"):
            self.put(certificate, str(certificate).lstrip("/"))
        self.run("update-ca-certificates")

    def put(self, source: Path, target: str) -> None:
        """Copy a file of this machine into the copy."""
        at = self.upper / target
        at.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, at)

    def put_sources(self) -> None:
        """Copy the files of this tree that git knows, or would, to /src/streamfs."""
        source = self.upper / "src/streamfs"
        source.mkdir(parents=True)
        # git also lists files that are deleted and not yet committed.
        script = (
            'cd "$1" && git ls-files -z --cached --others --exclude-standard | '
            'rsync -a --from0 --files-from=- --ignore-missing-args . "$2"'
        )
        execute("sh", "-c", script, "sh", ROOT, source)

    def on_top(self, folder: Path) -> "Copy":
        """Return a copy of what this one is now, which changes neither it nor its base."""
        return Copy(f"{self.upper}:{self.base}", folder)

    def installed_sizes(self) -> dict[str, int]:
        """Return the installed size of each package, KiB."""
        said = self.run("dpkg-query", "-W", "-f", "${Package} ${Installed-Size}\n").stdout
        rows = (line.partition(" ") for line in said.splitlines())
        return {name: int(size or 0) for name, _, size in rows}

    def run(self, *words: str, seconds: float = 300) -> Ran:
        """Run a command inside. Raises AssertionError with what it said."""
        told = [f"{name}={value}" for name, value in os.environ.items() if REACHING.search(name)]
        path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        environment = ("env", "-i", "HOME=/root", "LC_ALL=C.UTF-8", path, *told)
        enter = ("unshare", "-m", "-p", "-f", "--kill-child", "sh", "-c", INSIDE, "sh")
        return execute(*enter, str(self.base), self.folder, *environment, *words, seconds=seconds)
