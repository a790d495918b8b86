"""META kept twice: either copy may be lost, stale or damaged, on mounts and under fsck."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.pairs import BIN, Mount, Pair, run

MENDED, FOREIGN, DAMAGED = 1, 65, 76


class Mirrored:
    """A pair whose META lies in two files."""

    def __init__(self, pair: Pair, *options: str) -> None:
        self.pair = pair
        self.first, self.second = pair.meta, pair.folder / "META2"
        self.said = pair.mkfs("--mirror", str(self.second), *options)

    def mount(self) -> Mount:
        return self.pair.mount(f"mirror={self.second}")

    def alone(self, copy: Path) -> Mount:
        """Mount one copy, without naming the other."""
        self.pair.meta = copy
        try:
            return self.pair.mount("degraded")
        finally:
            self.pair.meta = self.first

    def log(self) -> str:
        return (self.pair.folder / "log").read_text()

    def fsck(self, *options: str) -> tuple[int, str]:
        done = self.pair.fsck(*options, "--mirror", str(self.second))
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def mirrored(make_pair: Callable[..., Pair]) -> Mirrored:
    return Mirrored(make_pair())


def write_durably(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def fill(mounted: Mount, tag: str) -> None:
    """Names, attributes and data that only fsync made durable."""
    (mounted / f"dir-{tag}").mkdir()
    for i in range(40):
        write_durably(mounted / f"dir-{tag}" / f"file-{i}", f"{tag}{i}".encode() * 3000)
    (mounted / f"dir-{tag}" / "file-0").rename(mounted / f"moved-{tag}")
    (mounted / f"link-{tag}").symlink_to("x" * 500)
    os.setxattr(mounted / f"moved-{tag}", "user.tag", tag.encode() * 500)


def check(mounted: Mount, tag: str) -> None:
    names = sorted(entry.name for entry in (mounted / f"dir-{tag}").iterdir())
    assert names == sorted(f"file-{i}" for i in range(1, 40))
    for i in range(1, 40):
        content = (mounted / f"dir-{tag}" / f"file-{i}").read_bytes()
        assert content == f"{tag}{i}".encode() * 3000
    assert (mounted / f"moved-{tag}").read_bytes() == f"{tag}0".encode() * 3000
    assert str((mounted / f"link-{tag}").readlink()) == "x" * 500
    assert os.getxattr(mounted / f"moved-{tag}", "user.tag") == tag.encode() * 500


def flip(path: Path, marker: bytes, distance: int = 0) -> None:
    """Change a byte at this distance from where the marker was last in a file."""
    content = path.read_bytes()
    at = content.rindex(marker) + distance
    with path.open("r+b") as file:
        file.seek(at)
        file.write(bytes([content[at] ^ 5]))


@pytest.mark.quick
def test_either_copy_alone_has_everything_after_a_kill(mirrored: Mirrored) -> None:
    assert str(mirrored.second) in mirrored.said
    mounted = mirrored.mount()
    assert mounted.status()["mirror"] == "in step"
    fill(mounted, "one")
    mounted.kill()
    mirrored.first.unlink()

    mounted = mirrored.mount()  # on the second alone
    check(mounted, "one")
    status = mounted.status()
    assert status["mirror"] == "degraded"
    assert str(mirrored.first) in status["mirror_reason"]
    assert "DEGRADED" in run(BIN / "streamctl", "status", mounted.point).stdout
    assert "META is degraded" in mirrored.log()
    fill(mounted, "two")
    mounted.kill()
    assert not mirrored.first.exists(), "nobody asked for it"

    mirrored.first.touch()  # a new place for it
    mounted = mirrored.mount()
    assert mounted.status()["mirror"] == "in step"
    assert f"{mirrored.first} is made a copy of {mirrored.second} (it is empty)" in mirrored.log()
    mounted.kill()
    mirrored.second.write_bytes(b"")

    mounted = mirrored.alone(mirrored.first)
    for tag in ("one", "two"):
        check(mounted, tag)
    mounted.unmount()


def test_the_newer_of_two_that_disagree_counts_and_that_is_said(mirrored: Mirrored) -> None:
    mounted = mirrored.mount()
    fill(mounted, "old")
    mounted.unmount()
    shutil.copy(mirrored.first, mirrored.pair.folder / "stale")
    mounted = mirrored.mount()
    fill(mounted, "new")
    mounted.kill()
    shutil.copy(mirrored.pair.folder / "stale", mirrored.first)
    mounted = mirrored.mount()
    said = f"{mirrored.first} is made a copy of {mirrored.second} (it is older)"
    assert said in mirrored.log()
    for tag in ("old", "new"):
        check(mounted, tag)
    mounted.unmount()
    code, text = mirrored.fsck("-n", "-f")
    assert code == 0, text


def test_one_of_two_is_not_left_behind_by_mistake(mirrored: Mirrored) -> None:
    words = [str(BIN / "streamfs"), mirrored.pair.data, str(mirrored.pair.point)]
    done = run(*words, "-o", f"meta={mirrored.first}", check=False)
    assert done.returncode == 65, done.stderr
    assert "mirror=" in done.stderr
    assert "degraded" in done.stderr
    assert mirrored.pair.fsck("-f").returncode == 8
    again = run(*words, "-o", f"meta={mirrored.first},mirror={mirrored.first}", check=False)
    assert "the same" in again.stderr


def test_damage_in_one_copy_is_read_past_and_mended(mirrored: Mirrored) -> None:
    mounted = mirrored.mount()
    fill(mounted, "one")
    inode = (mounted / "moved-one").stat().st_ino
    mounted.unmount()
    flip(mirrored.first, b"file-17")  # a directory slot
    with mirrored.first.open("r+b") as file:
        file.seek(inode * 256)
        file.write(b"\0" * 256)
    flip(mirrored.second, b"file-23")
    mounted = mirrored.mount()
    check(mounted, "one")
    assert mounted.status()["meta"]["mended"] == 2
    done = run(BIN / "streamctl", "scrub", "start", "--wait", mounted.point)
    assert "0 damaged, 1 mended" in done.stdout, done.stdout
    assert "mended from the other" in mirrored.log()
    mounted.unmount()
    mounted = mirrored.alone(mirrored.second)
    check(mounted, "one")
    mounted.unmount()


def test_fsck_mends_either_copy(mirrored: Mirrored) -> None:
    mounted = mirrored.mount()
    fill(mounted, "one")
    mounted.unmount()
    for copy in (mirrored.first, mirrored.second):
        flip(copy, b"file-17")
        code, text = mirrored.fsck("-f")
        assert code == MENDED, text
        assert "1 objects mended" in text
        code, text = mirrored.fsck("-n", "-f")
        assert code == 0, text


def test_damage_in_both_copies_is_an_error_of_that_object_only(mirrored: Mirrored) -> None:
    mounted = mirrored.mount()
    fill(mounted, "one")
    inode = (mounted / "moved-one").stat().st_ino
    mounted.unmount()
    for copy in (mirrored.first, mirrored.second):
        with copy.open("r+b") as file:
            file.seek(inode * 256 + 20)
            file.write(b"\x55")
    mounted = mirrored.mount()
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        (mounted / "moved-one").read_bytes()
    assert (mounted / "dir-one" / "file-1").read_bytes() == b"one1" * 3000
    done = run(BIN / "streamctl", "scrub", "start", "--wait", mounted.point, check=False)
    assert done.returncode == DAMAGED
    mounted.unmount()


def test_a_filesystem_gets_a_mirror_and_a_place_is_taken_when_asked_for(pair: Pair) -> None:
    mounted = pair.mount()
    fill(mounted, "one")
    mounted.unmount()
    second = pair.folder / "META2"
    second.write_bytes(b"mine" * 5000)
    assert pair.fsck("--mirror", str(second)).returncode == 8
    assert second.read_bytes() == b"mine" * 5000
    done = pair.fsck("-f", "--mirror", str(second), "--resync")
    assert done.returncode == 0, done.stdout + done.stderr
    pair.meta.unlink()
    mounted = pair.mount(f"mirror={second}")
    check(mounted, "one")
    mounted.unmount()


def metadata(action: str, pair: Pair, file: Path, *options: str) -> tuple[int, str]:
    words = ["metadata", action, *options, "--meta", str(pair.meta), pair.data, str(file)]
    done = run(BIN / "streamctl", *words, check=False)
    return done.returncode, done.stdout + done.stderr


def rebuild(mirrored: Mirrored, *options: str) -> tuple[int, str]:
    pair = mirrored.pair
    words = ["--restore", *options, "--meta", str(pair.meta), pair.data]
    done = run(BIN / "mkfs.streamfs", *words, check=False)
    return done.returncode, done.stdout + done.stderr


def both_lost(pair: Pair) -> tuple[Mirrored, bytes]:
    """Lose META twice after a kill; also returns what the second copy was."""
    mirrored = Mirrored(pair, "--meta-log")
    mounted = mirrored.mount()
    fill(mounted, "one")
    run(BIN / "streamctl", "sync", mounted.point)
    mounted.kill()
    second = mirrored.second.read_bytes()
    for copy in (mirrored.first, mirrored.second):
        copy.unlink()
    return mirrored, second


def test_both_lost_are_rebuilt_from_the_log(make_pair: Callable[..., Pair]) -> None:
    mirrored, found_again = both_lost(make_pair())
    code, text = rebuild(mirrored)
    assert code == FOREIGN, text
    code, text = rebuild(mirrored, "--mirror", str(mirrored.second))
    assert code == 0, text
    for copy in (mirrored.first, mirrored.second):
        assert copy.exists()
    mirrored.second.write_bytes(found_again)  # is not in step with what was rebuilt
    mounted = mirrored.mount()
    assert f"{mirrored.second} is made a copy of {mirrored.first}" in mirrored.log()
    check(mounted, "one")
    mounted.unmount()
    code, text = mirrored.fsck("-n", "-f")
    assert code == 0, text


def test_one_copy_is_rebuilt_where_that_is_asked_for(make_pair: Callable[..., Pair]) -> None:
    mirrored, found_again = both_lost(make_pair())
    code, text = rebuild(mirrored, "--degraded")
    assert code == 0, text
    mounted = mirrored.alone(mirrored.first)
    check(mounted, "one")
    fill(mounted, "two")
    mounted.unmount()
    mirrored.second.write_bytes(found_again)
    mounted = mirrored.mount()
    check(mounted, "two")
    assert mounted.status()["mirror"] == "in step"
    mounted.unmount()


def test_a_dump_is_restored_into_both_or_into_one(mirrored: Mirrored) -> None:
    pair, dump = mirrored.pair, mirrored.pair.folder / "dump"
    mounted = mirrored.mount()
    fill(mounted, "one")
    mounted.unmount()
    code, text = metadata("dump", pair, dump)
    assert code == 0, text
    for copy in (mirrored.first, mirrored.second):
        copy.unlink()
    code, text = metadata("restore", pair, dump)
    assert code == FOREIGN, text
    assert not mirrored.first.exists()
    code, text = metadata("restore", pair, dump, "--mirror", str(mirrored.second))
    assert code == 0, text
    for copy in (mirrored.first, mirrored.second):
        assert copy.exists()
    mounted = mirrored.mount()
    assert "is made a copy" not in mirrored.log()
    check(mounted, "one")
    mounted.unmount()
    code, text = metadata("dump", pair, pair.folder / "dump2")
    assert code == 0, text
    mirrored.first.unlink()
    code, text = metadata("restore", pair, pair.folder / "dump2", "--degraded")
    assert code == 0, text  # and the second copy, which is as old, turns up again
    mounted = mirrored.mount()
    assert f"{mirrored.second} is made a copy of {mirrored.first}" in mirrored.log()
    check(mounted, "one")
    mounted.unmount()
