"""Let a checkout of xfstests find streamfs: devices, mount helper, users, shutdown helper.

Nothing is installed and the checkout is not changed: xfstests runs in a folder of links to it, and
in a mount namespace whose /etc/passwd and /etc/group have the users that its tests want.
"""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.integration.pairs import BIN, run

RC = Path(__file__).with_name("xfstests_rc.sh")
DEVICE_BYTES = 6 << 30
PROGRAMS = {
    "xfs_io": "xfsprogs",
    "getfattr": "attr",
    "getfacl": "acl",
    "bc": "bc",
    "gawk": "gawk",
    "perl": "perl",
    "killall": "psmisc",
    "quota": "quota",
}
BUILD_PACKAGES = "xfslibs-dev uuid-dev libtool-bin automake libaio-dev libcap-dev libgdbm-dev"
USERS = ("fsgqa", "fsgqa2", "123456-fsgqa")
FIRST_UID = 65100

# mount(8) as it works once the helper is installed in /sbin.
MOUNT = """#!/bin/bash
type= options=suid,dev places=() words=("$@")
while [[ $# -gt 0 ]]; do
  case $1 in
  -t) type=$2 && shift ;;
  -o) options+=,$2 && shift ;;
  -o*) options+=,${1#-o} ;;
  -*) ;;
  *) places+=("$1") ;;
  esac
  shift
done
if [[ $options == *remount* ]]; then
  point=${places[-1]}
  [[ $type == fuse.streamfs || $(findmnt -n -o FSTYPE "$point") == fuse.streamfs ]] ||
    exec @mount@ "${words[@]}"
  exec @helper@ none "$(findmnt -n -o TARGET "$point")" -o "$options"
fi
meta=STREAMFS_META_${places[0]##*/}
[[ $type == fuse* && $meta =~ ^[A-Z_a-z0-9]+$ && -n ${!meta:-} ]] || exec @mount@ "${words[@]}"
exec @helper@ "${places[@]}" -o "meta=${!meta},$options"
"""
# xfstests knows the type "fuse" only.
DF = """#!/bin/bash
set -o pipefail
@df@ "$@" | sed 's/ fuse[.]streamfs / fuse          /'
"""
GODOWN = """#!/bin/sh
mode=nologflush
for word; do
  case $word in
  -f) mode=logflush ;;
  -v) ;;
  *) point=$word ;;
  esac
done
exec {streamctl} shutdown --mode $mode "$point"
"""
# The daemons live in the namespace and keep it: their mounts do not go by themselves.
INSIDE = """set -e
mount --bind {folder}/passwd /etc/passwd
mount --bind {folder}/group /etc/group
mount --bind {folder}/shadow /etc/shadow
trap 'umount -l {folder}/scratch {folder}/test 2>/dev/null || true' EXIT
trap 'exit 143' TERM
cd {folder}/xfstests
./check -T -R xunit-quiet "$@" &
wait $!
"""


class Place(NamedTuple):
    """Where one run takes place."""

    folder: Path
    devices: dict[str, str]  # loop device: "test" or "scratch"

    def meta(self, device: str) -> Path:
        """Return the META of a device."""
        return self.folder / f"{self.devices[device]}.meta"

    @property
    def report(self) -> Path:
        """The file in which xfstests writes each test's result."""
        return self.folder / "results/result.xml"


def missing(checkout: Path) -> list[str]:
    """Say what a run lacks, with the Debian package that has it."""
    out = [
        f"{program} (package {package})"
        for program, package in PROGRAMS.items()
        if not shutil.which(program)
    ]
    if not (checkout / "check").exists():
        out.append(f"{checkout} is no checkout of xfstests")
    elif not all((checkout / built).exists() for built in ("src/godown", "ltp/fsx")):
        out.append(f"{checkout} is not built: `make` there (packages {BUILD_PACKAGES})")
    return out


def digest(checkout: Path) -> str:
    """Return one digest over every generic test and what it is expected to print."""
    total = hashlib.sha256()
    for path in sorted((checkout / "tests/generic").glob("[0-9]*")):
        if path.is_file() and not path.is_symlink():  # some tests link NNN.out to what fits
            total.update(f"{path.name}\0".encode())
            total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def script(path: Path, text: str) -> None:
    """Write a program."""
    path.write_text(text)
    path.chmod(0o755)


def link_checkout(checkout: Path, folder: Path) -> None:
    """Make a folder that looks like the checkout, with a src/godown and a common/rc of our own."""
    (folder / "src").mkdir(parents=True)
    (folder / "common").mkdir()
    for entry in checkout.iterdir():
        if entry.name not in ("src", "common", "results", "local.config"):
            (folder / entry.name).symlink_to(entry)
    for entry in [*(checkout / "src").iterdir(), *(checkout / "common").iterdir()]:
        if entry.name not in ("godown", "rc"):
            (folder / entry.parent.name / entry.name).symlink_to(entry)
    script(folder / "src/godown", GODOWN.format(streamctl=BIN / "streamctl"))
    (folder / "common/rc").write_text(f". {checkout}/common/rc\n. {RC}\n")


def add_users(folder: Path) -> None:
    """Copy the machine's users and groups, and add those of the tests."""
    texts = {name: Path("/etc", name).read_text() for name in ("passwd", "group", "shadow")}
    for number, name in enumerate(USERS, FIRST_UID):
        if f"\n{name}:" not in texts["passwd"]:
            texts["passwd"] += f"{name}:x:{number}:{number}::/tmp:/bin/bash\n"
            texts["group"] += f"{name}:x:{number}:\n"
            texts["shadow"] += f"{name}:*:19000:0:99999:7:::\n"
    for name, text in texts.items():
        (folder / name).write_text(text)


@contextmanager
def loop_device(path: Path) -> Iterator[str]:
    """Put a loop device on a new sparse file."""
    with path.open("wb") as file:
        file.truncate(DEVICE_BYTES)
    device = run("losetup", "--find", "--show", path).stdout.strip()
    try:
        yield device
    finally:
        run("losetup", "--detach", device)


@contextmanager
def placed(checkout: Path, folder: Path) -> Iterator[Place]:
    """Make devices, filesystems and everything that `check` needs, in `folder`."""
    with ExitStack() as stack:
        devices = {}
        for name in ("test", "scratch"):
            (folder / name).mkdir()
            device = stack.enter_context(loop_device(folder / f"{name}.data"))
            devices[device] = name
            run(BIN / "mkfs.streamfs", "--meta", folder / f"{name}.meta", device)
        tools = folder / "tools"
        tools.mkdir()
        text = MOUNT.replace("@mount@", shutil.which("mount") or "mount")
        text = text.replace("@helper@", str(BIN / "mount.fuse.streamfs"))
        script(tools / "mount", text)
        script(tools / "df", DF.replace("@df@", shutil.which("df") or "df"))
        add_users(folder)
        link_checkout(checkout, folder / "xfstests")
        (folder / "results").mkdir()
        yield Place(folder, devices)


def environment(place: Place) -> dict[str, str]:
    """Return what xfstests reads its configuration from."""
    test, scratch = place.devices
    paths = {
        f"STREAMFS_{what.upper()}_{Path(device).name}": f"{place.folder}/{name}.{suffix}"
        for device, name in place.devices.items()
        for what, suffix in (("meta", "meta"), ("file", "data"))
    }
    return (
        os.environ
        | paths
        | {
            "STREAMFS_PROGRAMS": str(BIN),
            "STREAMFS_DEVICE_BYTES": str(DEVICE_BYTES),
            "PATH": f"{place.folder}/tools:{os.environ['PATH']}:/usr/sbin:/sbin",
            "HOST_OPTIONS": "/dev/null",
            "FSTYP": "fuse",
            "FUSE_SUBTYP": ".streamfs",
            "TEST_DEV": test,
            "TEST_DIR": str(place.folder / "test"),
            "SCRATCH_DEV": scratch,
            "SCRATCH_MNT": str(place.folder / "scratch"),
            "RESULT_BASE": str(place.folder / "results"),
            "LC_ALL": "C",
        }
    )


def check(place: Place, words: list[str], seconds: float) -> None:
    """Run `check` in its own mount namespace; whatever happens, nothing stays mounted."""
    inside = INSIDE.format(folder=place.folder)
    command = ["unshare", "--mount", "--propagation", "private", "bash", "-c", inside, "check"]
    with subprocess.Popen([*command, *words], env=environment(place)) as process:
        try:
            process.wait(seconds)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(60)


def faults(place: Place) -> list[str]:
    """Return what fsck finds on either device, once its daemon has gone."""
    out = []
    for device, name in place.devices.items():
        meta = place.meta(device)
        done = run(BIN / "fsck.streamfs", "-n", "-f", "--meta", meta, device, check=False)
        if done.returncode != 0:
            out.append(f"fsck of {name}: {done.returncode}\n{done.stdout}{done.stderr}")
    return out
