"""META in a file grows by itself; a host without room for it costs an ENOSPC, and nothing else."""

import errno
import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.integration.pairs import BIN, Mount, Pair, run, until

ENTRIES = 8  # of a directory, as META is planned
USAGE = 64


def fill(mount: Mount, most: int, first: int = 0) -> int:
    """Make small files in directories of eight until there are so many, or no room is left."""
    for number in range(first, most):
        folder = mount / f"d{number // ENTRIES}"
        try:
            folder.mkdir(exist_ok=True)
            (folder / f"f{number}").write_text(f"{number}")
        except OSError as failed:
            if failed.errno != errno.ENOSPC:
                raise
            return number
    return most


def assert_filled(mount: Mount, first: int, end: int) -> None:
    for number in range(first, end):
        assert (mount / f"d{number // ENTRIES}/f{number}").read_text() == f"{number}"


def test_the_files_that_mkfs_promises_fit(make_pair: Callable[..., Pair]) -> None:
    pair = make_pair(size="128M")
    planned = json.loads(pair.mkfs("-n", "--json"))
    made = json.loads(pair.mkfs("--json"))
    assert planned["meta_bytes_max"] == made["meta_bytes_max"]
    first = pair.meta.stat().st_size
    assert first < made["meta_bytes_max"] / 2
    mount = pair.mount()
    promised = made["inodes_possible"]
    # A directory is a file, too.
    files = promised * 9 // 10 * ENTRIES // (ENTRIES + 1)
    assert fill(mount, files) == files
    room = mount.status()["meta_room"]
    assert first < room["bytes"] == pair.meta.stat().st_size <= room["bytes_max"]
    assert room["bytes_max"] == made["meta_bytes_max"]
    assert "META grew" in mount.log.read_text()
    mount.unmount()
    pair.assert_sound()
    pair.meta.unlink()
    run(BIN / "fsck.streamfs", "--restore", "--meta", pair.meta, pair.data)
    again = pair.mount()
    assert_filled(again, 0, files)
    again.unmount()


@pytest.fixture
def small_host(tmp_path: Path) -> Iterator[Path]:
    """A filesystem for META that is soon full."""
    folder = tmp_path / "host"
    folder.mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=3m", "none", folder)
    try:
        yield folder
    finally:
        run("umount", "-l", folder)


def test_a_host_without_room_costs_an_enospc_only(
    small_host: Path, make_pair: Callable[..., Pair]
) -> None:
    pair = make_pair(size="256M", meta=small_host / "META")
    pair.mkfs("--meta-size", "2M")
    mount = pair.mount()
    files = fill(mount, 10_000)
    assert files < 10_000
    advice = mount.status()["meta_room"]["advice"]
    assert "could not grow" in advice
    said = run(BIN / "streamctl", "status", mount.point).stdout
    assert "FULL" in said
    assert advice in said
    assert_filled(mount, 0, files)
    until(lambda: "META is nearly full" in mount.log.read_text(), 5, "the message")
    run("mount", "-o", "remount,size=64m", small_host)
    until(lambda: not mount.status()["meta_room"]["advice"], 10, "the growth")
    assert fill(mount, files + 1000, files) == files + 1000
    mount.unmount()
    pair.assert_sound()


def test_a_mirror_whose_second_host_has_no_room_is_named(
    small_host: Path, make_pair: Callable[..., Pair]
) -> None:
    pair, second = make_pair(size="256M"), small_host / "META2"
    pair.mkfs("--meta-size", "2M", "--mirror", str(second))
    mount = pair.mount(f"mirror={second}")
    files = fill(mount, 10_000)
    assert files < 10_000
    said = f"extending {second}: No space left on device"
    assert said in mount.status()["meta_room"]["advice"]
    until(
        lambda: f"META is nearly full: it could not grow: {said}" in mount.log.read_text(), 5, said
    )
    grown = run(BIN / "streamctl", "grow", "--meta-size", "16M", mount.point, check=False)
    assert grown.returncode != 0
    assert said in grown.stderr
    assert mount.status()["mirror"] == "in step"
    assert_filled(mount, 0, files)
    mount.unmount()


def test_programs_that_write_while_a_command_grows_meta_get_no_error(
    make_pair: Callable[..., Pair],
) -> None:
    pair = make_pair(size="256M")
    pair.mkfs("--meta-size", "2M")
    mount = pair.mount()
    full = threading.Event()

    def grow() -> None:
        size = mount.status()["meta_room"]["bytes"]
        while not full.is_set():
            size += 1 << 20
            words = (BIN / "streamctl", "grow", "--meta-size", f"{size}", mount.point)
            run(*words, check=False)  # it may be smaller than what META has by then

    command = threading.Thread(target=grow)
    command.start()
    try:
        assert fill(mount, 4000) == 4000
        with (mount / "scattered").open("wb") as file:
            for block in range(4000):
                os.pwrite(file.fileno(), b"x", block * 8192)
            os.fsync(file.fileno())
        with (mount / "preallocated").open("wb") as file:
            for block in range(4000):
                os.posix_fallocate(file.fileno(), block * 8192, 4096)
    finally:
        full.set()
        command.join()
    assert mount.status()["meta_room"]["bytes"] > 2 << 20
    mount.unmount()
    pair.assert_sound()


def test_growth_can_be_forbidden_and_bounded(pair: Pair) -> None:
    def status_of(option: str) -> dict[str, object]:
        mount = pair.mount(option)
        room: dict[str, object] = mount.status()["meta_room"]
        mount.unmount()
        return room

    size = pair.meta.stat().st_size
    off = status_of("meta_growth=off")
    assert (off["grows"], off["bytes_max"]) == (False, size)
    bounded = status_of(f"meta_size_max={size + (1 << 20)}")
    assert (bounded["grows"], bounded["bytes_max"]) == (True, size + (1 << 20))
    smaller = status_of("meta_growth=auto,meta_size_max=1M")
    assert smaller["bytes_max"] == size
    for option, sentence in (
        ("meta_growth=sometimes", "meta_growth is auto or off"),
        ("meta_size_max=0", "meta_size_max is 0"),
        ("meta_size_max=many", "many"),
    ):
        words: list[str | Path] = [
            BIN / "streamfs",
            pair.data,
            pair.point,
            "-o",
            f"meta={pair.meta},{option}",
        ]
        done = run(*words, check=False)
        assert done.returncode == USAGE, option
        assert sentence in done.stderr
        assert not os.path.ismount(pair.point)
