"""streamctl export: files out of a pair of devices without FUSE, without a mount, without META."""

import hashlib
import json
import mmap
import os
import socket
import stat
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.integration.pairs import BIN, Pair, run

EXISTS, FOREIGN, IO, CORRUPT, NO_DEVICE = 73, 65, 70, 76, 66


def export(pair: Pair, *words: str | Path, meta: bool = True) -> subprocess.CompletedProcess[str]:
    named = ["--meta", pair.meta] if meta else ["--from-log"]
    return run(BIN / "streamctl", "export", *named, pair.data, *words, check=False)


def sum_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def fill(root: Path) -> None:
    """Everything a file can have."""
    (root / "dir/below").mkdir(parents=True)
    (root / "dir/a").write_bytes(os.urandom(300_000))
    os.utime(root / "dir/a", ns=(1_234_567_890_123_456_789, 987_654_321_987_654_321))
    os.link(root / "dir/a", root / "dir/below/same")
    (root / "dir/below/link").symlink_to("../a")
    (root / "für \n").write_text("a name with a newline")
    with (root / "holes").open("wb") as file:
        file.seek(3 << 20)
        file.write(b"in the middle")
        file.truncate(8 << 20)
    (root / "one hole").touch()
    os.truncate(root / "one hole", 1 << 20)
    (root / "empty").touch()
    os.setxattr(root / "empty", "user.colour", b"blue\0\xff")
    run("setfacl", "-m", "u:1234:rw,g:99:r", root / "empty")
    run("setfacl", "-d", "-m", "u:1234:rwx", root / "dir/below")
    os.chown(root / "empty", 1000, 1001)
    os.mkfifo(root / "pipe")
    os.mknod(root / "node", stat.S_IFCHR | 0o600, os.makedev(5, 300))
    (root / "dir/below").chmod(0o2550)
    os.utime(root / "dir/below", ns=(1, 2_000_000_000))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(root / "socket"))


def facts(root: Path) -> dict[str, Any]:
    """The properties of every file that an export must keep."""
    out = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        if stat.S_ISSOCK(status.st_mode):
            continue
        link = path.is_symlink()
        said = run("getfacl", "-c", "-n", "-p", path).stdout if not link else str(path.readlink())
        names = [name for name in os.listxattr(path, follow_symlinks=False) if "acl" not in name]
        out[str(path.relative_to(root))] = (
            status.st_mode,
            status.st_uid,
            status.st_gid,
            status.st_nlink if not path.is_dir() else 0,
            status.st_size if not path.is_dir() else 0,
            status.st_rdev,
            0 if link else status.st_mtime_ns,
            said,
            {name: os.getxattr(path, name, follow_symlinks=False) for name in names},
            sum_of(path) if path.is_file() and not link else "",
        )
    return out


@pytest.fixture
def pair(make_pair: Callable[..., Pair]) -> Pair:
    """A formatted pair that is quickly read as a whole."""
    one = make_pair(size="128M")
    one.mkfs()
    return one


@pytest.fixture
def filled(pair: Pair) -> tuple[Pair, dict[str, Any]]:
    """A pair with files, unmounted."""
    mount = pair.mount()
    fill(mount.point)
    known = facts(mount.point)
    mount.unmount()
    return pair, known


@pytest.mark.quick
def test_a_directory_gets_everything_and_the_devices_stay(
    filled: tuple[Pair, dict[str, Any]],
) -> None:
    pair, known = filled
    before = sum_of(pair.meta), sum_of(pair.image)
    out = pair.folder / "out"
    done = export(pair, "-o", out)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert facts(out) == known
    assert (out / "holes").stat().st_blocks * 512 < 1 << 20
    assert (out / "dir/a").stat().st_ino == (out / "dir/below/same").stat().st_ino
    assert (sum_of(pair.meta), sum_of(pair.image)) == before


@pytest.mark.parametrize("kind", ["tar", "tar.gz", "tar.zst"])
def test_an_archive_holds_the_same(filled: tuple[Pair, dict[str, Any]], kind: str) -> None:
    pair, known = filled
    archive = pair.folder / f"out.{kind}"
    done = export(pair, "-o", archive, "--json")
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    report = json.loads(done.stdout)
    assert report["schema"] == 1
    assert (report["files"], report["hard_links"], report["damaged"]) == (5, 1, [])
    out = pair.folder / "unpacked"
    out.mkdir()
    run("tar", "--xattrs", "--xattrs-include=*", "--acls", "-xpf", archive, "-C", out)
    assert facts(out) == known
    assert archive.stat().st_size < 1 << 20, "holes are not stored"


def test_without_meta_the_log_says_what_it_held(filled: tuple[Pair, dict[str, Any]]) -> None:
    pair, known = filled
    pair.meta.unlink()
    out = pair.folder / "out"
    done = export(pair, "-o", out, meta=False)
    assert done.returncode == 0, done.stderr
    assert facts(out) == known
    assert not pair.meta.exists()


def test_after_a_kill_what_was_synced_is_taken(pair: Pair) -> None:
    mount = pair.mount()
    (mount / "synced").write_bytes(b"x" * 100_000)
    run(BIN / "streamctl", "sync", mount.point)
    mount.kill()
    before = sum_of(pair.meta)
    for number, meta in enumerate((True, False)):
        out = pair.folder / f"out{number}"
        assert export(pair, "-o", out, meta=meta).returncode == 0
        assert (out / "synced").read_bytes() == b"x" * 100_000
    assert sum_of(pair.meta) == before


def test_of_a_path_only_what_lies_below_and_to_standard_output(
    filled: tuple[Pair, dict[str, Any]],
) -> None:
    pair, known = filled
    words = f"{BIN}/streamctl export --meta {pair.meta} {pair.data} /dir/below/ empty".split()
    done = subprocess.run([*words, "-o", "-"], capture_output=True, check=True, timeout=60)
    archive = pair.folder / "some.tar"
    archive.write_bytes(done.stdout)
    with tarfile.open(archive) as tar:
        names = tar.getnames()
    assert names == ["dir", "dir/below", "dir/below/link", "dir/below/same", "empty"]
    missing = export(pair, "gone", "-o", pair.folder / "other")
    assert missing.returncode == NO_DEVICE
    assert "gone" in missing.stderr
    assert set(names) <= {*known, "dir"}


@pytest.mark.parametrize(
    "paths", [("dir", "/dir/./below/"), ("dir/below", "dir"), ("dir//", "dir")]
)
def test_what_lies_in_another_path_is_taken_once(
    filled: tuple[Pair, dict[str, Any]], tmp_path: Path, paths: tuple[str, str]
) -> None:
    pair, known = filled
    out = tmp_path / "out"
    done = export(pair, *paths, "-o", out)
    assert done.returncode == 0, done.stderr
    assert facts(out / "dir") == {
        name.removeprefix("dir/"): fact for name, fact in known.items() if name.startswith("dir/")
    }


def damage(pair: Pair, marker: bytes) -> None:
    """Overwrite where this lies on DATA."""
    with Path(pair.data).open("r+b") as device:
        with mmap.mmap(device.fileno(), 0) as held:
            at = held.find(marker)
        assert at > 0
        device.seek(at)
        device.write(b"damaged!")


@pytest.mark.parametrize("kind", ["out", "out.tar"])
def test_a_damaged_file_is_named_and_left_out(tmp_path: Path, kind: str) -> None:
    pair = Pair(tmp_path)
    data = tmp_path / "data"
    data.touch()
    os.truncate(data, 128 << 20)
    pair.data = str(data)
    pair.mkfs()
    try:
        mount = pair.mount()
        marker = os.urandom(4096)
        (mount / "bad").write_bytes(os.urandom(2 << 20) + marker)
        os.link(mount / "bad", mount / "worse")
        (mount / "good").write_text("whole")
        mount.unmount()
    finally:
        pair.end()
    damage(pair, marker)
    out = tmp_path / kind
    done = export(pair, "-o", out, "--json")
    assert done.returncode == CORRUPT
    assert "left out: bad: " in done.stderr
    assert [each["path"] for each in json.loads(done.stdout)["damaged"]] == ["bad", "worse"]
    if kind == "out":
        assert [path.name for path in out.iterdir()] == ["good"]
    else:
        with tarfile.open(out) as tar:
            assert not {"bad", "worse"} & set(tar.getnames())
            assert "good" in tar.getnames()


def test_bad_input_is_refused_and_overwrites_nothing(pair: Pair) -> None:
    full = pair.folder / "full"
    full.mkdir()
    (full / "mine").write_text("mine")
    there = pair.folder / "there.tar"
    there.write_text("mine")
    for target, code, what in (
        (full, EXISTS, "not empty"),
        (there, EXISTS, "there already"),
        (full / "mine", EXISTS, "no directory"),
        (pair.folder / "no/such/place", NO_DEVICE, "No such file"),
    ):
        done = export(pair, "-o", target)
        assert (done.returncode, done.stdout) == (code, ""), done.stderr
        assert what in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert there.read_text() == (full / "mine").read_text() == "mine"
    nothing = run(BIN / "streamctl", "export", pair.data, "-o", pair.folder / "x", check=False)
    assert nothing.returncode == FOREIGN
    assert "--from-log" in nothing.stderr
    pair.mkfs("-f", "--no-meta-log")
    done = export(pair, "-o", pair.folder / "y", meta=False)
    assert done.returncode == EXISTS
    assert "keeps no log" in done.stderr


def test_a_target_without_room_ends_it(filled: tuple[Pair, dict[str, Any]]) -> None:
    pair, _ = filled
    small = pair.folder / "small"
    small.mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=64k", "none", small)
    try:
        for target in (small / "out", small / "out.tar"):
            done = export(pair, "-o", target)
            assert done.returncode == 74, done.stderr
            assert "No space left" in done.stderr
    finally:
        run("umount", "-l", small)
