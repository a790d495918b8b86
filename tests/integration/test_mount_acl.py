"""POSIX ACLs through a real mount: kept, inherited, and obeyed by the kernel."""

import errno
import os
import stat
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from tests.integration.pairs import Mount, Pair, run

USER, OTHER_USER, GROUP = 2001, 2002, 3001


def acl(path: Path, *, default: bool = False) -> list[str]:
    """Return what getfacl says, without its header."""
    which = "-d" if default else "-a"
    return run("getfacl", "-ncE", which, path).stdout.split()


def setfacl(path: Path, *words: str) -> None:
    run("setfacl", *words, path)


def as_user(
    mount: Mount, uid: int, *words: str, groups: str = "", gid: int = 65534
) -> CompletedProcess[str]:
    """Run in the mount's root, as somebody."""
    more = ("--groups", groups) if groups else ("--clear-groups",)
    drop = ("setpriv", "--reuid", str(uid), "--regid", str(gid), *more)
    return run(*drop, *words, cwd=mount.point, check=False)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def secret(mounted: Mount) -> Path:
    """A file of root's that others may not read."""
    path = mounted / "secret"
    path.write_text("x")
    path.chmod(0o600)
    return path


def test_an_acl_is_obeyed_for_users_and_groups_it_names(mounted: Mount, secret: Path) -> None:
    setfacl(secret, "-m", f"u:{USER}:r,g:{GROUP}:rw")
    assert mode_of(secret) == 0o660
    assert as_user(mounted, USER, "cat", "secret").stdout == "x"
    assert as_user(mounted, USER, "sh", "-c", "echo y > secret").returncode != 0
    assert as_user(mounted, OTHER_USER, "cat", "secret").returncode != 0
    write = ("sh", "-c", "echo -n y > secret")
    assert as_user(mounted, OTHER_USER, *write, groups=str(GROUP)).returncode == 0
    assert secret.read_text() == "y"


def test_the_mask_limits_and_chmod_sets_it(mounted: Mount, secret: Path) -> None:
    setfacl(secret, "-m", f"u:{USER}:rwx")
    secret.chmod(0o640)
    assert acl(secret) == ["user::rw-", f"user:{USER}:rwx", "group::---", "mask::r--", "other::---"]
    assert as_user(mounted, USER, "cat", "secret").returncode == 0
    assert as_user(mounted, USER, "sh", "-c", "echo y > secret").returncode != 0
    setfacl(secret, "-m", "m::---")
    assert mode_of(secret) == 0o600
    assert as_user(mounted, USER, "cat", "secret").returncode != 0
    setfacl(secret, "-b")
    assert acl(secret) == ["user::rw-", "group::---", "other::---"]


def test_acls_survive_a_remount_and_a_kill(pair: Pair) -> None:
    mount = pair.mount()
    (mount / "d").mkdir()
    setfacl(mount / "d", "-m", f"u:{USER}:rwx,d:u:{USER}:rx,d:g:{GROUP}:rw")
    expected, inherited = acl(mount / "d"), acl(mount / "d", default=True)
    assert len(expected) == 5
    assert len(inherited) == 6
    mount.kill()
    mount = pair.mount()
    assert (acl(mount / "d"), acl(mount / "d", default=True)) == (expected, inherited)
    mount.unmount()
    pair.assert_sound()


def test_a_default_acl_takes_the_umasks_place(mounted: Mount) -> None:
    (mounted / "d").mkdir(mode=0o777)
    setfacl(mounted / "d", "-m", f"d:u:{USER}:rw,d:g::rw,d:o::r")
    make = "umask 077; cd d; echo x > file; mkdir sub; mkfifo fifo; ln -s file link"
    run("sh", "-c", make, cwd=mounted.point)
    assert mode_of(mounted / "d/file") == 0o664
    assert acl(mounted / "d/file")[1] == f"user:{USER}:rw-"
    assert mode_of(mounted / "d/fifo") == 0o664
    assert acl(mounted / "d/sub", default=True) == acl(mounted / "d", default=True)
    assert (mounted / "d/link").lstat().st_mode == stat.S_IFLNK | 0o777
    assert as_user(mounted, USER, "sh", "-c", "echo y >> d/file").returncode == 0
    fd = os.open(mounted / "d", os.O_TMPFILE | os.O_RDWR, 0o640)
    assert stat.S_IMODE(os.fstat(fd).st_mode) == 0o640
    assert b"system.posix_acl_access" in [os.fsencode(name) for name in os.listxattr(fd)]
    os.close(fd)


@pytest.mark.parametrize("direct", [False, True])
def test_the_umask_is_applied_where_there_is_no_default_acl(pair: Pair, direct: bool) -> None:
    mount = pair.mount("direct_io") if direct else pair.mount()
    run("sh", "-c", "umask 027; echo x > file; mkdir sub; mkfifo fifo", cwd=mount.point)
    assert mode_of(mount / "file") == 0o640
    assert mode_of(mount / "sub") == 0o750
    assert mode_of(mount / "fifo") == 0o640


def test_an_acl_set_by_someone_outside_the_group_takes_setgid_away(mounted: Mount) -> None:
    mounted.point.chmod(0o777)
    for name, groups in (("in", str(GROUP)), ("out", "")):
        path = mounted / name
        path.write_text("x")
        os.chown(path, USER, GROUP)
        path.chmod(0o2770)
        done = as_user(mounted, USER, "setfacl", "-m", f"u:{OTHER_USER}:r", name, groups=groups)
        assert done.returncode == 0, done.stderr
    assert mode_of(mounted / "in") == 0o2770
    assert mode_of(mounted / "out") == 0o770


def test_only_the_owner_changes_an_acl(mounted: Mount, secret: Path) -> None:
    secret.chmod(0o666)
    done = as_user(mounted, USER, "setfacl", "-m", f"u:{USER}:rw", "secret")
    assert "not permitted" in done.stderr


def test_a_default_acl_belongs_to_a_directory(mounted: Mount, secret: Path) -> None:
    (mounted / "d").mkdir()
    setfacl(mounted / "d", "-m", f"d:u:{USER}:r")
    value = os.getxattr(mounted / "d", "system.posix_acl_default")
    with pytest.raises(PermissionError):
        os.setxattr(secret, "system.posix_acl_default", value)
    with pytest.raises(OSError, match="Invalid argument") as refused:
        os.setxattr(secret, "system.posix_acl_access", value[:-8])
    assert refused.value.errno == errno.EINVAL


def test_an_acl_is_copied_with_its_file(mounted: Mount, secret: Path) -> None:
    setfacl(secret, "-m", f"u:{USER}:r")
    run("cp", "-a", secret, mounted / "copy")
    assert acl(mounted / "copy") == acl(secret)
