"""META lost: wiped after each way a mount can end, and rebuilt; dumped, lost, and put back."""

import os
import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.integration.pairs import BIN, Mount, Pair, run
from tests.integration.test_fsck import clear_name

Done = subprocess.CompletedProcess[str]

BLOCK = 4096
USAGE, FOREIGN, NO_FILE, BUSY, NOT_EMPTY, CORRUPT = 64, 65, 66, 75, 73, 76


def blocks(name: str, version: int, count: int) -> bytes:
    """Return blocks that tell whose they are, and which."""
    return b"".join(f"{name}|{version}|{i}|".encode().ljust(BLOCK, b".") for i in range(count))


def write_synced(path: Path, content: bytes) -> None:
    """Make the file this content, durably."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def overwrite(path: Path, content: bytes) -> None:
    """Write over what is there, in place."""
    with path.open("r+b" if path.exists() else "wb") as file:
        file.write(content)


def assert_only_its_own(path: Path) -> None:
    """Every block is readable, and this file's or zeroes."""
    content = path.read_bytes()
    for at in range(0, len(content), BLOCK):
        block = content[at : at + BLOCK]
        mine = block.startswith(f"{path.name}|".encode()) or not any(block)
        assert mine, f"{path.name} at {at} shows {block[:40]!r}"


class Drill:
    """A workload whose fsync'd part is known."""

    def __init__(self, mount: Mount, seed: int = 1) -> None:
        self.point = mount.point
        self.dice = random.Random(seed)
        self.synced: dict[str, bytes] = {}

    def write_synced(self, count: int = 40) -> None:
        for i in range(count):
            name = f"synced-{i}"
            content = blocks(name, 1, self.dice.randrange(1, 40))
            write_synced(self.point / name, content)
            self.synced[name] = content

    def go_on_without_fsync(self) -> None:
        """Overwrite, unlink, and write over what was freed and trimmed, with no fsync after."""
        names = sorted(self.synced)
        for name in names[::4]:
            (self.point / name).unlink()
            del self.synced[name]
        for name in names[1::4]:
            overwrite(self.point / name, blocks(name, 2, len(self.synced[name]) // BLOCK))
        for i in range(40):
            name = f"later-{i}"
            overwrite(self.point / name, blocks(name, 1, self.dice.randrange(1, 60)))

    def check(self) -> None:
        for path in self.point.iterdir():
            if path.is_file():
                assert_only_its_own(path)
        for name, content in self.synced.items():
            found = (self.point / name).read_bytes()
            assert len(found) == len(content), name
            for at in range(0, len(content), BLOCK):
                here, was = found[at : at + BLOCK], content[at : at + BLOCK]
                assert here == was or here.startswith(f"{name}|2|".encode()), f"{name} at {at}"


@pytest.fixture(params=["volatile", "file"])
def lossy(request: pytest.FixtureRequest, pair: Pair) -> Iterator[Pair]:
    """Give a pair with a metadata log, its META in DRAM or a file."""
    shared = Path(f"/dev/shm/streamfs-loss-{os.getpid()}")
    if request.param == "volatile":
        pair.meta = shared
    try:
        pair.mkfs("-f", "--meta-log")
        yield pair
    finally:
        pair.end()
        shared.unlink(missing_ok=True)


def lose(pair: Pair) -> None:
    """Wipe META. In DRAM it comes back by itself, elsewhere it is asked for."""
    pair.meta.unlink()
    if not pair.meta.is_relative_to("/dev/shm"):
        said = run(BIN / "mkfs.streamfs", "--restore", "--meta", pair.meta, pair.data)
        assert "rebuilt" in said.stdout


def assert_comes_back(pair: Pair, drill: Drill) -> set[str]:
    """META is wiped; everything synced is there again. Returns the names there are."""
    lose(pair)
    mount = pair.mount()
    drill.check()
    names = {path.name for path in mount.point.iterdir()}
    mount.unmount()
    pair.assert_sound()
    return names


def test_meta_lost_after_fsck_repaired_it(lossy: Pair) -> None:
    """The log does not hear of a repair: the next mount begins it anew."""
    mount = lossy.mount()
    write_synced(mount.point / "nameless", b"x" * BLOCK)
    mount.unmount()
    clear_name(lossy.meta, "nameless")
    assert "repaired" in lossy.fsck("-f", "-y").stdout
    lossy.mount().unmount()
    lose(lossy)
    mount = lossy.mount()
    (found,) = (mount.point / "lost+found").iterdir()
    assert found.read_bytes() == b"x" * BLOCK
    mount.unmount()


SNAPSHOT_MAGIC = b"SFSDSN01"


def destroy_snapshot(data: Path, at: int) -> None:
    """Overwrite the header at this offset, and what follows it, with noise."""
    with data.open("r+b") as file:
        file.seek(at)
        file.write(b"\x5a" * 4 * BLOCK)


def snapshots_of(data: Path) -> list[int]:
    """Offsets of the headers of snapshots on DATA."""
    content = data.read_bytes()
    return [at for at in range(0, len(content), BLOCK) if content.startswith(SNAPSHOT_MAGIC, at)]


def test_meta_and_a_snapshot_of_it_lost(pair: Pair) -> None:
    """Either snapshot area is enough for export, mkfs and fsck; they say which was used."""
    data = pair.folder / "data"
    with data.open("wb") as file:
        file.truncate(128 << 20)
    pair.data = str(data)
    pair.mkfs("-f", "--meta-log")
    mount = pair.mount()
    drill = Drill(mount)
    drill.write_synced()
    mount.kill()
    whole = data.read_bytes()
    areas = snapshots_of(data)
    assert len(areas) == 2
    for at, how in zip(areas, ("mkfs.streamfs", "fsck.streamfs"), strict=True):
        data.write_bytes(whole)
        destroy_snapshot(data, at)
        pair.meta.unlink(missing_ok=True)
        out = pair.folder / f"out-{at}"
        said = run(BIN / "streamctl", "export", "--from-log", data, "--output", out)
        assert "is used instead" in said.stderr
        for name, content in drill.synced.items():
            assert (out / name).read_bytes() == content
        done = run(BIN / how, "--restore", "--meta", pair.meta, data, check=False)
        assert done.returncode in (0, 1), done.stderr
        assert "is used instead" in done.stderr
        mount = pair.mount()
        drill.check()
        mount.unmount()
        pair.assert_sound()


def test_meta_lost_after_a_clean_unmount(lossy: Pair) -> None:
    mount = lossy.mount()
    drill = Drill(mount)
    drill.write_synced()
    drill.go_on_without_fsync()
    mount.unmount()
    assert assert_comes_back(lossy, drill) >= {f"later-{i}" for i in range(40)}


def test_meta_lost_after_a_kill(lossy: Pair) -> None:
    mount = lossy.mount()
    drill = Drill(mount)
    drill.write_synced()
    mount.kill()
    assert_comes_back(lossy, drill)


@pytest.mark.parametrize("seed", range(4))
def test_meta_lost_amid_overwrites_unlinks_trims_and_reuse(lossy: Pair, seed: int) -> None:
    mount = lossy.mount()
    drill = Drill(mount, seed)
    for _ in range(3):
        drill.write_synced()
        drill.go_on_without_fsync()
    # Freed blocks are trimmed and reused by a file that nobody fsyncs.
    overwrite(mount / "big", blocks("big", 1, 8000 + drill.dice.randrange(8000)))
    (mount / "big").unlink()
    overwrite(mount / "filler", blocks("filler", 1, 4000))
    mount.kill()
    assert_comes_back(lossy, drill)


# ---- Dumps


def metadata(action: str, pair: Pair, file: Path, *options: str) -> Done:
    words: list[str | Path] = [BIN / "streamctl", "metadata", action, *options]
    words += ["--meta", pair.meta, pair.data, file]
    return run(*words, check=False)


def filled(pair: Pair) -> Drill:
    mount = pair.mount()
    drill = Drill(mount)
    drill.write_synced()
    os.setxattr(mount / "synced-1", "user.note", b"kept")
    mount.unmount()
    return drill


def test_meta_moves_to_another_device_by_a_dump(pair: Pair) -> None:
    drill = filled(pair)
    file = pair.folder / "dump"
    done = metadata("dump", pair, file)
    assert done.returncode == 0, done.stderr
    assert file.stat().st_size < pair.meta.stat().st_size
    pair.meta.unlink()
    pair.meta = pair.folder / "META2"
    done = metadata("restore", pair, file)
    assert done.returncode == 0, done.stderr
    pair.assert_sound()
    mount = pair.mount()
    drill.check()
    assert os.getxattr(mount / "synced-1", "user.note") == b"kept"
    assert mount.status()["checksum_errors"] == 0
    mount.unmount()


def test_a_restored_dump_keeps_the_checksums(pair: Pair) -> None:
    filled(pair)
    file = pair.folder / "dump"
    before = run(BIN / "streamctl", "metadata", "dump", "--meta", pair.meta, pair.data, file)
    assert "written to" in before.stdout
    again = pair.folder / "again"
    assert metadata("restore", pair, file, "-f").returncode == 0
    assert metadata("dump", pair, again).returncode == 0
    # The superblock tells how often it was stored; all else is the same.
    assert file.read_bytes()[BLOCK:] == again.read_bytes()[BLOCK:]


def test_a_dump_of_a_crashed_filesystem_is_whole(pair: Pair) -> None:
    mount = pair.mount()
    drill = Drill(mount)
    drill.write_synced()
    mount.kill()
    file = pair.folder / "dump"
    assert metadata("dump", pair, file).returncode == 0
    pair.meta.unlink()
    assert metadata("restore", pair, file).returncode == 0
    mount = pair.mount()
    drill.check()
    mount.unmount()
    pair.assert_sound()


def test_an_outdated_dump_is_refused(pair: Pair) -> None:
    filled(pair)
    file = pair.folder / "dump"
    assert metadata("dump", pair, file).returncode == 0
    pair.mount().unmount()
    before = pair.meta.read_bytes()
    done = metadata("restore", pair, file, "-f")
    assert done.returncode == FOREIGN, done.stderr
    assert "before" in done.stderr
    assert "mounted" in done.stderr
    assert pair.meta.read_bytes() == before


def test_a_mounted_filesystem_is_not_dumped(pair: Pair) -> None:
    mount = pair.mount()
    file = pair.folder / "dump"
    done = metadata("dump", pair, file)
    assert done.returncode == BUSY, done.stderr
    assert not file.exists()
    mount.unmount()


def test_bad_dumps_are_refused_and_meta_stays(pair: Pair) -> None:
    filled(pair)
    file = pair.folder / "dump"
    assert metadata("dump", pair, file).returncode == 0
    assert metadata("dump", pair, file).returncode == NOT_EMPTY  # never overwritten
    assert metadata("restore", pair, file).returncode == NOT_EMPTY  # META holds a filesystem
    whole, before = file.read_bytes(), pair.meta.read_bytes()
    for damaged, code in [
        (b"", FOREIGN),
        (os.urandom(len(whole)), FOREIGN),
        (whole[:100] + b"?" + whole[101:], CORRUPT),
        (whole[: len(whole) // 2], CORRUPT),
        (whole[:-BLOCK] + os.urandom(BLOCK), CORRUPT),
    ]:
        file.write_bytes(damaged)
        done = metadata("restore", pair, file, "-f")
        assert done.returncode == code, done.stderr
        assert pair.meta.read_bytes() == before
    missing = metadata("restore", pair, pair.folder / "none")
    assert missing.returncode == NO_FILE, missing.stderr


def test_a_dump_of_another_filesystem_is_refused(
    pair: Pair, make_pair: Callable[..., Pair]
) -> None:
    other = make_pair("other")
    other.mkfs()
    file = pair.folder / "dump"
    assert metadata("dump", other, file).returncode == 0
    before = pair.meta.read_bytes()
    done = metadata("restore", pair, file, "-f")
    assert done.returncode == FOREIGN, done.stderr
    assert pair.meta.read_bytes() == before


def test_mkfs_restore_takes_no_other_wish(pair: Pair) -> None:
    done = run(
        *(BIN / "mkfs.streamfs", "--restore", "--label", "x", "--meta", pair.meta, pair.data),
        check=False,
    )
    assert done.returncode == USAGE, done.stderr
