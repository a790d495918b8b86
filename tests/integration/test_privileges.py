"""Setuid and setgid do not outlive a write by somebody else, however it is done."""

import os
import shutil
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.integration import write_ways
from tests.integration.pairs import Mount, Pair, run
from tests.integration.transport import TRANSPORTS

MODES = {"cached": [], "direct_io": ["direct_io"]}  # mount options
INTERPRETER = Path(sys.executable).resolve()  # any user may run it
WRITER, OTHER = 65534, 65533
# The kernel may ask for the mode alone, or only check it to execute the file: whichever is first.
LOOKS = {"runs": "./{0} -u; stat -c %a {0}", "looks": "stat -c %a {0}; ./{0} -u"}


def as_user(mount: Mount, user: int, *words: str | Path, groups: str = "", **more: Any) -> str:
    """Run a command in the mount's root; returns its output."""
    drop = ["setpriv", "--reuid", str(user), "--regid", str(user)]
    drop.append(f"--groups={groups}" if groups else "--clear-groups")
    return run(*drop, *words, cwd=mount.point, **more).stdout


def change(mount: Mount, user: int, *names: str, groups: str = "") -> None:
    """Change files as this user, each in the way that its name says."""
    source = Path(write_ways.__file__).read_text()
    as_user(mount, user, INTERPRETER, "-", *names, groups=groups, input=source)


def make_program(mount: Mount, name: str, mode: int) -> str:
    """Root's copy of id(1), padded, so that it runs whatever becomes of its last page."""
    path = mount / name
    shutil.copyfile(shutil.which("id") or "/usr/bin/id", path)
    os.truncate(path, (path.stat().st_size // write_ways.PAGE + 3) * write_ways.PAGE)
    path.chmod(mode)
    return name


def seen(mount: Mount, name: str) -> tuple[str, ...]:
    """The mode, and who the program is when another user runs it."""
    look = LOOKS[name.partition(".")[2]].format(name)
    return tuple(sorted(as_user(mount, OTHER, "sh", "-c", look).split()))


@pytest.fixture
def programs(pair: Pair, mode: str, transport: str) -> tuple[Mount, list[str]]:
    """Setuid programs of root's on a mount, two for each way, that anyone may write."""
    mount = pair.mount("suid", *MODES[mode], *TRANSPORTS[transport])
    names = [f"{way}.{look}" for way in write_ways.WAYS for look in LOOKS]
    for name in names:
        make_program(mount, name, 0o6777)
    return mount, names


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.usefixtures("io_uring_allowed")
class TestPrograms:
    def test_another_users_write_takes_the_bits_at_once(
        self, programs: tuple[Mount, list[str]]
    ) -> None:
        mount, names = programs
        assert {name: seen(mount, name) for name in names} == dict.fromkeys(names, ("0", "6777"))
        change(mount, WRITER, *names)
        wanted = dict.fromkeys(names, (str(OTHER), "777"))
        assert {name: seen(mount, name) for name in names} == wanted

    def test_roots_write_leaves_the_bits(self, programs: tuple[Mount, list[str]]) -> None:
        mount, names = programs
        change(mount, 0, *names)
        assert {name: seen(mount, name) for name in names} == dict.fromkeys(names, ("0", "6777"))


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("way", ["overwrite", "direct", "allocate"])
def test_setgid_without_group_execution_stays_for_members_only(
    pair: Pair, mode: str, way: str
) -> None:
    mount = pair.mount(*MODES[mode])
    path = mount / make_program(mount, way, 0)
    os.chown(path, 0, 4321)
    for groups, left in ("4321", 0o2666), ("", 0o666):
        path.chmod(0o6666)
        change(mount, WRITER, way, groups=groups)
        assert mode_of(path) == left
