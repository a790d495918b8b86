"""The intent log on a mount: fsyncs without flushes, a kill, and memory declared or trusted."""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.pairs import BIN, Mount, Pair, run

BLOCK = 4096
USAGE = 64
TOO_SMALL = 74
PROBLEMS_LEFT = 4  # of fsck
DAMAGED = 76  # not unmounted in an orderly way


@pytest.fixture
def memory() -> Iterator[Path]:
    """A META in memory, which mkfs may take for persistent."""
    folder = Path(tempfile.mkdtemp(dir="/dev/shm", prefix="streamfs-test-"))
    yield folder / "META"
    shutil.rmtree(folder)


def append_synced(path: Path, first: int, count: int) -> None:
    """Append blocks that tell their number, each with an fsync."""
    with path.open("ab", buffering=0) as file:
        for number in range(first, first + count):
            file.write(number.to_bytes(4, "little") * (BLOCK // 4))
            os.fsync(file.fileno())


def assert_appended(path: Path, count: int) -> None:
    """The file has exactly these blocks."""
    content = path.read_bytes()
    assert len(content) == count * BLOCK
    for number in range(count):
        block = content[number * BLOCK : (number + 1) * BLOCK]
        assert block == number.to_bytes(4, "little") * (BLOCK // 4), number


def intent(mount: Mount) -> dict[str, Any]:
    """Return the part of the status that tells of the intent log."""
    answer: dict[str, Any] = mount.status()["intent_log"]
    return answer


def test_a_new_meta_file_has_room_for_the_log(make_pair: Callable[..., Pair], memory: Path) -> None:
    """The log of the default size comes on top of a new META; a given size has to have room."""
    pair = make_pair(meta=memory)
    option = "--meta-class=persistent"
    assert "intent log of 8.0 MiB" in pair.mkfs(option)
    with_log = memory.stat().st_size
    memory.unlink()
    assert "intent log" not in pair.mkfs("-f", option, "--intent-log", "none")
    assert with_log >= memory.stat().st_size + (8 << 20)
    memory.unlink()
    assert "no intent log" in pair.mkfs(option, "-f", "--meta-size", "8M")
    memory.unlink()
    pair.mkfs("-f", option)
    assert "intent log of 8.0 MiB" in pair.mkfs("-f", option), "in a file that is there"


@pytest.mark.parametrize("option", ["--meta-class=persistent", "--trust-memory"])
def test_fsyncs_flush_nothing_and_survive_kills(
    make_pair: Callable[..., Pair], memory: Path, option: str
) -> None:
    """Small fsyncs cost the device no flush; the next mounts have them, home or not."""
    pair = make_pair(meta=memory)
    said = pair.mkfs("--meta-size", "64M", option)
    assert "intent log of 8.0 MiB" in said
    shown = run(BIN / "streamctl", "show-super", pair.data).stdout
    assert "8.0 MiB, 16 segments" in shown
    named = {"--meta-class=persistent": "declared persistent", "--trust-memory": "trusted memory"}
    assert f"intent log, {named[option]}" in shown
    mount = pair.mount()
    trust = {"--meta-class=persistent": "declared", "--trust-memory": "trusted"}
    assert mount.status()["meta_trust"] == trust[option]
    append_synced(mount / "f", 0, 1)
    before = mount.status()["device"]["flushes"]
    append_synced(mount / "f", 1, 200)
    # A round of the timer may come in between; each fsync would need one or two.
    assert mount.status()["device"]["flushes"] - before < 20
    assert intent(mount)["fsyncs"] >= 200
    mount.kill()
    mount = pair.mount()
    assert_appended(mount / "f", 201)
    append_synced(mount / "f", 201, 20)
    mount.kill()
    mount = pair.mount("ro")
    assert_appended(mount / "f", 221)
    mount.unmount()
    pair.mount().unmount()
    pair.assert_sound()
    mount = pair.mount()
    assert intent(mount)["recovered_blocks"] == 0
    assert_appended(mount / "f", 221)


@pytest.mark.parametrize("lost", ["META", "mirror"])
def test_either_copy_of_meta_has_the_log_after_a_kill(
    make_pair: Callable[..., Pair], memory: Path, lost: str
) -> None:
    """Both copies are declared persistent; what only the log has survives the loss of one."""
    pair = make_pair(meta=memory)
    mirror = memory.with_name("mirror")
    pair.mkfs("--meta-size", "64M", "--meta-class=persistent", "--mirror", str(mirror))
    mount = pair.mount(f"mirror={mirror}")
    append_synced(mount / "f", 0, 1)
    run(BIN / "streamctl", "sync", mount.point)
    flushes = mount.status()["device"]["flushes"]
    append_synced(mount / "f", 1, 20)
    assert mount.status()["device"]["flushes"] == flushes
    mount.kill()
    memory.with_name(lost).unlink()
    mount = pair.mount("ro", f"mirror={mirror}")
    assert intent(mount)["recovered_blocks"] == 20
    assert_appended(mount / "f", 21)
    mount.unmount()
    mount = pair.mount(f"mirror={mirror}")
    append_synced(mount / "f", 21, 3)
    mount.kill()
    mount = pair.mount(f"mirror={mirror}")
    assert_appended(mount / "f", 24)
    mount.unmount()


def test_rewritten_data_is_absorbed(make_pair: Callable[..., Pair], memory: Path) -> None:
    """A block that is synced again before its round never reaches the device."""
    pair = make_pair(meta=memory)
    pair.mkfs("--meta-size", "64M", "--meta-class", "persistent")
    mount = pair.mount()
    append_synced(mount / "f", 0, 1)
    with (mount / "f").open("r+b", buffering=0) as file:
        for number in range(300):
            os.pwrite(file.fileno(), number.to_bytes(4, "little") * (BLOCK // 4), 0)
            os.fdatasync(file.fileno())
    said = intent(mount)
    assert said["absorbed_bytes"] > 200 * BLOCK
    assert said["delta_entries"] > 100
    mount.unmount()
    pair.assert_sound()


def test_large_fsyncs_and_other_metas_take_flushes(make_pair: Callable[..., Pair]) -> None:
    """A file on a disk has no intent log unless it is trusted, and may not be declared."""
    pair = make_pair()
    pair.mkfs()
    mount = pair.mount()
    append_synced(mount / "f", 0, 3)
    assert intent(mount) | {"serves": False, "fsyncs": 0, "bytes": 0} == intent(mount)
    mount.unmount()
    for options, code in [
        (("--meta-class", "persistent"), None),
        (("--intent-log", "8M"), None),
        (("--intent-log", "soon", "--trust-memory"), USAGE),
        (("--meta-class", "persistent", "--trust-memory"), USAGE),
        (("--trust-memory", "--no-meta-log"), USAGE),
        (("--trust-memory", "--intent-log", "none"), None),
    ]:
        words: list[str | Path] = ["-f", *options, "--meta", pair.meta, pair.data]
        done = run(BIN / "mkfs.streamfs", *words, check=False)
        assert done.returncode != 0, options
        assert code is None or done.returncode == code, (options, done.stderr)
    mount = pair.mount()
    assert_appended(mount / "f", 3)
    mount.unmount()
    too_small = ["-f", "--trust-memory", "--meta", str(pair.meta), pair.data]
    assert "too small" in run(BIN / "mkfs.streamfs", *too_small, check=False).stderr
    pair.meta.unlink()
    pair.mkfs("-f", "--trust-memory", "--meta-size", "64M")
    mount = pair.mount()
    with (mount / "large").open("wb", buffering=0) as file:
        file.write(bytes(BLOCK))
        os.fsync(file.fileno())
        file.write(bytes(1 << 20))
        os.fsync(file.fileno())
    assert intent(mount)["fsyncs"] == 1
    assert sum(intent(mount)["refused"].values()) == 1
    mount.unmount()


def test_a_mount_bounds_the_fsyncs_of_the_log(make_pair: Callable[..., Pair], memory: Path) -> None:
    """intent_log_max is clamped to a quarter of the log; status has the bound."""
    pair = make_pair(meta=memory)
    pair.mkfs("--meta-size", "64M", "--meta-class", "persistent", "--intent-log", "1M")
    for option, most in [
        (None, 256 << 10),
        ("intent_log_max=0", 0),
        ("intent_log_max=8K", 8 << 10),
        ("intent_log_max=504K", 256 << 10),
    ]:
        mount = pair.mount(option) if option else pair.mount()
        assert intent(mount)["fsync_bytes_max"] == most
        with (mount / "f").open("wb", buffering=0) as file:
            file.write(b"x" * 3 * BLOCK)
            os.fsync(file.fileno())
        took = int(most >= 3 * BLOCK)
        assert intent(mount)["fsyncs"] == took, option
        assert intent(mount)["refused"]["large"] == 1 - took, option
        mount.unmount()


def test_a_filesystem_is_given_an_intent_log_and_loses_it(
    make_pair: Callable[..., Pair], memory: Path
) -> None:
    """Tune says how much room is missing, and the log then serves; disabled, it serves no more."""
    pair = make_pair(meta=memory)
    pair.mkfs("--meta-size", "8M")
    mount = pair.mount()
    append_synced(mount / "f", 0, 3)
    mount.unmount()
    words: list[str | Path] = [BIN / "streamctl", "tune", "--json", "--meta", pair.meta, pair.data]
    enable: list[str | Path] = ["--enable", "intent-log", "--meta-class", "persistent"]
    refused = run(*words, *enable, check=False)
    assert refused.returncode == TOO_SMALL
    assert "8.0 MiB larger, to 16777216 bytes" in refused.stderr
    os.truncate(pair.meta, 16 << 20)
    done = json.loads(run(*words, *enable).stdout)
    assert (done["intent_log_bytes"], done["version"]) == (8 << 20, 3)
    mount = pair.mount()
    append_synced(mount / "f", 3, 20)
    assert intent(mount)["fsyncs"] == 20
    mount.kill()
    assert run(*words, "--disable", "intent-log", check=False).returncode == DAMAGED
    mount = pair.mount()
    assert_appended(mount / "f", 23)
    mount.unmount()
    run(*words, "--disable", "intent-log")
    mount = pair.mount()
    assert intent(mount)["bytes"] == 0
    assert_appended(mount / "f", 23)
    mount.unmount()
    pair.assert_sound()


def test_fsck_says_what_the_log_holds_and_empties_a_damaged_one(
    make_pair: Callable[..., Pair], memory: Path
) -> None:
    """The data is written to DATA; a log without an expired word keeps a mount away until then."""
    pair = make_pair(meta=memory)
    made = json.loads(
        pair.mkfs("--json", "--meta-size", "64M", "--meta-class", "persistent").strip()
    )
    mount = pair.mount()
    append_synced(mount / "f", 0, 1)
    run(BIN / "streamctl", "sync", mount.point)
    append_synced(mount / "f", 1, 5)
    mount.kill()
    looked = pair.fsck("-n", "-f")
    assert looked.returncode == 0, looked.stdout
    assert "intent log: 5 entries with 20.0 KiB of 1 files" in looked.stdout
    log = made["layout"]["superblock_bytes"] + made["layout"]["journal_bytes"]
    with pair.meta.open("r+b") as meta:  # both slots of the expired word
        for line in (0, 64):
            meta.seek(log + line)
            meta.write(b"\x55" * 16)
    words: list[str | Path] = [BIN / "streamfs", pair.data, pair.point, "-o", f"meta={pair.meta}"]
    refused = run(*words, check=False)
    assert refused.returncode == DAMAGED
    assert "expired word of the intent log is damaged" in refused.stderr
    assert pair.fsck("-n", "-f").returncode == PROBLEMS_LEFT
    done = json.loads(pair.fsck("-y", "--json").stdout)
    assert done["state"] == "repaired"
    assert done["intent_log"]["written_bytes"] >= 5 * BLOCK
    assert done["intent_log"]["lost_bytes"] == 0
    mount = pair.mount()
    assert_appended(mount / "f", 6)
    mount.unmount()
    pair.assert_sound()


def test_a_dump_waits_until_all_data_is_home(make_pair: Callable[..., Pair], memory: Path) -> None:
    """A dump has no data of files, so it is refused while the log has some."""
    pair = make_pair(meta=memory)
    pair.mkfs("--meta-size", "64M", "--meta-class", "persistent")
    mount = pair.mount()
    append_synced(mount / "f", 0, 5)
    mount.kill()
    words: list[str | Path] = [BIN / "streamctl", "metadata", "dump"]
    words += ["--meta", pair.meta, pair.data]
    refused = run(*words, pair.folder / "dump", check=False)
    assert refused.returncode != 0
    assert "intent log" in refused.stderr
    assert not (pair.folder / "dump").exists()
    mount = pair.mount()
    append_synced(mount / "f", 5, 1)
    mount.unmount()
    run(*words, pair.folder / "dump")


def test_mkfs_says_what_it_made(make_pair: Callable[..., Pair], memory: Path) -> None:
    """--intent-log takes a size or none, and the JSON tells both declarations."""
    pair = make_pair(meta=memory)
    for options, size, declared, trusted in [
        (("--meta-class", "persistent"), 8 << 20, True, False),
        (("--meta-class", "persistent", "--intent-log", "none"), 0, True, False),
        (("--trust-memory", "--intent-log", "16M"), 16 << 20, False, True),
        ((), 0, False, False),
    ]:
        made = json.loads(pair.mkfs("-f", "--json", "--meta-size", "64M", *options))
        assert made["intent_log_bytes"] == size
        assert made["meta_declared_persistent"] == declared
        assert made["trust_memory"] == trusted
