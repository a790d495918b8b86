"""fsck -y on METAs with one damaged page or word: it is never unable to check.

After exit code 0 or 1 the filesystem mounts, and a second fsck finds nothing.
"""

import os
import random
import subprocess
from collections.abc import Callable

import pytest
from tests.integration.pairs import BIN, Pair, run

MIB = 1 << 20
PAGE = 4096
FILES = 60
SOUND, REPAIRED, NOT_CHECKED = 0, 1, 8
LONG = pytest.param(600, marks=pytest.mark.long)


def filled(pair: Pair, *mkfs: str, end: str) -> Pair:
    """Make a small filesystem with directories and attributes; unmount or kill."""
    pair.image = pair.folder / "data"
    pair.data = str(pair.image)
    for path, size in ((pair.image, 64 * MIB), (pair.meta, 8 * MIB)):
        with path.open("wb") as file:
            file.truncate(size)
    pair.mkfs("-f", "--mean-file-size", "16K", *mkfs)
    mount = pair.mount()
    for number in range(FILES):
        folder = mount / f"d{number % 5}"
        folder.mkdir(exist_ok=True)
        (folder / f"f{number}").write_bytes(bytes([number]) * (5000 + number * 100))
        os.setxattr(folder / f"f{number}", "user.a", b"v" * 300)
    run(BIN / "streamctl", "sync", mount.point)
    for number in range(10):
        (mount / f"d{number % 5}" / f"f{number}").unlink()
    getattr(mount, end)()
    return pair


def damage(meta: bytes, dice: random.Random) -> tuple[str, int, bytes]:
    """Draw a place in use and what it holds from now on."""
    words = range(0, len(meta), 8)
    at = next(at for at in iter(lambda: dice.choice(words), None) if any(meta[at : at + 8]))
    page = at - at % PAGE
    return dice.choice(
        [
            ("a flipped bit", at, bytes([meta[at] ^ (1 << dice.randrange(8))])),
            ("a zeroed word", at, bytes(8)),
            ("a random word", at, dice.randbytes(8)),
            ("a zeroed page", page, bytes(PAGE)),
            ("a random page", page, dice.randbytes(PAGE)),
        ]
    )


def fsck(pair: Pair, *options: str) -> subprocess.CompletedProcess[str]:
    """Check; names that are damaged need not be text."""
    words = [str(BIN / "fsck.streamfs"), *options, "--meta", str(pair.meta), pair.data]
    return run(*words, check=False, errors="replace")


@pytest.mark.parametrize("count", [25, LONG])
@pytest.mark.parametrize("mkfs", [(), ("--no-meta-log",)], ids=["log", "no log"])
def test_fsck_repairs_or_says_what_is_damaged(
    make_pair: Callable[..., Pair], mkfs: tuple[str, ...], count: int
) -> None:
    pair = filled(make_pair(), *mkfs, end="kill")
    meta, data = pair.meta.read_bytes(), pair.image.read_bytes()
    dice = random.Random(7)
    for number in range(count):
        what, at, written = damage(meta, dice)
        case = f"damage {number}: {what} at {at:#x}"
        with pair.meta.open("r+b") as file:
            file.seek(at)
            file.write(written)
        done = fsck(pair, "-y", "-f")
        assert not done.returncode & NOT_CHECKED, f"{case}: {done.stdout}{done.stderr}"
        if done.returncode in (SOUND, REPAIRED):
            again = fsck(pair, "-n", "-f")
            assert again.returncode == SOUND, f"{case}: {again.stdout}{again.stderr}"
            pair.mount().unmount()
        else:
            assert done.stdout or done.stderr, case
        pair.meta.write_bytes(meta)
        pair.image.write_bytes(data)


def test_a_damaged_root_directory_leaves_problems_and_does_not_end_the_check(
    make_pair: Callable[..., Pair],
) -> None:
    pair = filled(make_pair(), "--no-meta-log", end="unmount")
    meta = pair.meta.read_bytes()
    for page in (at for at in range(0, len(meta), PAGE) if any(meta[at : at + PAGE])):
        pair.meta.write_bytes(meta[:page] + bytes(PAGE) + meta[page + PAGE :])
        done = fsck(pair, "-y", "-f")
        assert not done.returncode & NOT_CHECKED, f"page {page:#x}: {done.stdout}{done.stderr}"
        if "cannot be named in /lost+found: broken chain" in done.stdout:
            return
    pytest.fail("no page was the root directory's")
