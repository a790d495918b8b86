"""An ordinary user makes and mounts a filesystem through fusermount3."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.pairs import BIN, run
from tests.integration.transport import DISABLED, allowing_io_uring, kept

NOBODY = 65534
DROP = ("setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups")

# In a mount namespace of its own, where /dev/fuse is everybody's as udev makes it.
EVERYBODYS_FUSE = """
set -e
mkdir dev && mount -t tmpfs none dev && mknod -m 666 dev/fuse c 10 229
mount --bind dev/fuse /dev/fuse && umount -l dev
exec "$@"
"""

SESSION = """
set -e
../ssd-sim create ssd --size 256M --streams 4 --op 0.2 > /dev/null
../mkfs.streamfs -q --meta META emu:ssd
../streamfs emu:ssd mnt -o meta=META,transport=dev
trap 'fusermount3 -uzq mnt || true' EXIT
echo mine > mnt/file
stat -c '%U %s' mnt/file
../streamctl status mnt --json | grep meta_class
grep -c " $PWD/mnt fuse.streamfs " /proc/self/mounts
findmnt -nro VFS-OPTIONS mnt
fusermount3 -u mnt
trap - EXIT
# Waits for the daemon, which is still draining.
../streamfs emu:ssd mnt -o meta=META,transport=dev
cat mnt/file
fusermount3 -u mnt
"""


@pytest.fixture
def home(needs_fuse: None) -> Iterator[Path]:  # noqa: ARG001
    """Make a folder that is nobody's, with copies of the programs that nobody may run."""
    if shutil.which("fusermount3") is None:
        pytest.fail("fusermount3 is not installed")
    folder = Path(tempfile.mkdtemp(prefix="streamfs-user-"))
    folder.chmod(0o755)
    for name in ("streamfs", "mkfs.streamfs", "ssd-sim", "streamctl"):
        shutil.copy(BIN / name, folder / name)
    work = folder / "work"
    (work / "mnt").mkdir(parents=True)
    for path in (work, work / "mnt"):
        shutil.chown(path, NOBODY, NOBODY)
    yield work
    shutil.rmtree(folder)


def test_a_user_makes_mounts_writes_looks_and_unmounts(home: Path) -> None:
    namespace = ("unshare", "-m", "sh", "-c", EVERYBODYS_FUSE, "sh")
    done = run(*namespace, *DROP, "sh", "-c", SESSION, cwd=home, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0] == "nobody 5"
    assert "synced" in lines[1]
    assert lines[2] == "1"
    assert {"nosuid", "nodev"} <= set(lines[3].split(","))
    assert lines[4:] == ["mine"]


TRANSPORT = """
set -e
../ssd-sim create ssd --size 256M --streams 4 --op 0.2 > /dev/null
../mkfs.streamfs -q --meta META emu:ssd
../streamfs emu:ssd mnt -o meta=META 2> log
trap 'fusermount3 -uzq mnt || true' EXIT
echo mine > mnt/file
cat mnt/file
../streamctl status mnt --json
fusermount3 -u mnt
trap - EXIT
"""


@pytest.mark.parametrize("level", [0, 1])
def test_a_user_gets_io_uring_unless_the_machine_keeps_it_for_root(home: Path, level: int) -> None:
    namespace = ("unshare", "-m", "sh", "-c", EVERYBODYS_FUSE, "sh")
    with allowing_io_uring(), kept(DISABLED):
        DISABLED.write_text(str(level))
        done = run(*namespace, *DROP, "sh", "-c", TRANSPORT, cwd=home, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr + (home / "log").read_text()
    first, _, status = done.stdout.partition("\n")
    assert first == "mine"
    told = json.loads(status)
    if level == 0:
        assert told["kernel_transport"] == "io_uring"
        return
    assert told["kernel_transport"] == "/dev/fuse"
    assert "sysctl kernel.io_uring_disabled = 1" in told["kernel_transport_reason"]


REFUSED = """
set -e
../ssd-sim create ssd --size 256M --streams 4 --op 0.2 > /dev/null
../mkfs.streamfs -q --meta META emu:ssd
chmod 555 mnt
../streamfs emu:ssd mnt -o meta=META || echo $?
"""


def test_a_refusal_of_fusermount_is_not_told_as_a_missing_file(home: Path) -> None:
    namespace = ("unshare", "-m", "sh", "-c", EVERYBODYS_FUSE, "sh")
    done = run(*namespace, *DROP, "sh", "-c", REFUSED, cwd=home, check=False, timeout=60)
    assert done.stdout.splitlines()[-1] == "77", done.stdout + done.stderr
    assert "No such file" not in done.stderr
    assert "fusermount3" in done.stderr


HINTS = """
set -e
../ssd-sim create ssd --size 256M --streams 4 --op 0.2 > /dev/null
../mkfs.streamfs -q --meta META emu:ssd
../streamfs emu:ssd mnt -o meta=META,allow_other
trap 'fusermount3 -uzq mnt || true' EXIT
echo mine > mnt/file
echo shared > mnt/shared
chmod 666 mnt/shared
for file in file shared; do
  "$@" ../streamctl hint --name theirs mnt/$file || echo "refused $file"
done
../streamctl hint --name mine mnt/file
getfattr --only-values -n user.streamfs.vstream mnt/file; echo
getfattr --only-values -n user.streamfs.vstream mnt/shared; echo
fusermount3 -u mnt
trap - EXIT
"""


def test_only_who_may_write_a_file_may_label_it(home: Path) -> None:
    done = run("sh", "-c", HINTS, "sh", *DROP, cwd=home, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    words = done.stdout.split()
    assert "refused file" in done.stdout
    assert "refused shared" not in done.stdout
    assert words[-2:] == ["mine", "theirs"]
