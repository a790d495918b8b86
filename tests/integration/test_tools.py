"""Bad input and good manners of the programs: one line saying what to do, and an exit code each."""

import csv
import json
import mmap
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.pairs import BIN, DRAIN_SECONDS, Mount, Pair, run, until

USAGE, FOREIGN, NO_DEVICE, NO_FUSE, IO = 64, 65, 66, 69, 70
NOT_EMPTY, TOO_SMALL, BUSY, CORRUPT, NO_PERMISSION = 73, 74, 75, 76, 77
FSCK_REPAIRED, FSCK_LEFT, FSCK_FAILED, FSCK_USAGE = 1, 4, 8, 16

SUPERBLOCKS = 68 * 1024  # bytes of META that hold both, and the watermark

Done = subprocess.CompletedProcess[str]


def refused(code: int, pattern: str, done: Done) -> None:
    """Assert that it failed with this code and exactly one line that says this."""
    assert done.returncode == code, f"{done.returncode}: {done.stdout}{done.stderr}"
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert re.search(pattern, lines[0]), lines[0]


def tool(name: str, *words: str | Path) -> Done:
    return run(BIN / name, *words, check=False)


def mount(pair: Pair, options: str = "", point: Path | None = None) -> Done:
    listed = f"meta={pair.meta}" + (f",{options}" if options else "")
    return tool("streamfs", pair.data, point or pair.point, "-f", "-o", listed)


def mkfs(pair: Pair, *options: str) -> Done:
    return tool("mkfs.streamfs", *options, "--meta", pair.meta, pair.data)


def overwrite(path: Path, offset: int, length: int) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(os.urandom(length))


def servers_of(point: Path) -> list[int]:
    """Return the streamfs processes that were started for this very mountpoint."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"streamfs") and bytes(point) in words:
            found.append(int(entry.name))
    return found


# ---- The command line


@pytest.mark.parametrize("name", ["streamfs", "mkfs.streamfs", "streamctl"])
@pytest.mark.usefixtures("needs_fuse")
def test_without_arguments_each_says_what_is_missing(name: str) -> None:
    refused(USAGE, "required|subcommand", tool(name))
    assert tool(name, "--help").returncode == 0
    assert tool(name, "--version").stdout.startswith("streamfs ")


def test_an_unknown_option_is_named(pair: Pair) -> None:
    refused(USAGE, 'unknown option "shiny"', mount(pair, "shiny=1"))
    refused(USAGE, "--shiny", tool("mkfs.streamfs", "--shiny", "--meta", pair.meta, pair.data))
    done = tool("fsck.streamfs", "--shiny", "--meta", pair.meta, pair.data)
    refused(FSCK_USAGE, "--shiny", done)


@pytest.mark.usefixtures("needs_fuse")
@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("streamfs", "75 in use"),
        ("mkfs.streamfs", "73 not empty"),
        ("streamctl", "65 not this"),
        ("fsck.streamfs", "4 problems left"),
        ("mount.streamfs", "32 the mount failed"),
    ],
)
def test_help_lists_the_exit_codes(name: str, codes: str) -> None:
    said = " ".join(tool(name, "--help").stdout.split())
    assert "Exit codes" in said
    assert codes in said


def test_bad_values_are_named(pair: Pair) -> None:
    refused(USAGE, "off.*learned.*hints.*auto", mount(pair, "placement=magic"))
    refused(USAGE, "milliseconds", mount(pair, "epoch_idle_ms=soon"))
    refused(USAGE, "lots", mkfs(pair, "-f", "--meta-size", "lots"))
    refused(USAGE, "UUID", mkfs(pair, "-f", "-U", "1234"))
    refused(USAGE, "31 bytes", mkfs(pair, "-f", "-L", "x" * 32))


def test_meta_must_be_given_and_not_be_data(pair: Pair) -> None:
    refused(USAGE, "meta=PATH", tool("streamfs", pair.data, pair.point))
    done = tool("mkfs.streamfs", "--meta", pair.image, pair.data)
    refused(USAGE, "the same", done)


# ---- Devices


def test_paths_that_are_not_there(pair: Pair) -> None:
    gone = pair.folder / "gone"
    done = tool("streamfs", gone, pair.point, "-f", "-o", f"meta={pair.meta}")
    refused(NO_DEVICE, f"{gone}.*No such file", done)
    refused(NO_DEVICE, "mountpoint.*No such file", mount(pair, point=gone))
    refused(NO_DEVICE, "mountpoint.*Not a directory", mount(pair, point=pair.image))
    pair.meta = gone
    refused(NO_DEVICE, f"{gone}.*No such file", mount(pair))


def test_a_mountpoint_that_a_mount_would_hide_is_refused(pair: Pair) -> None:
    kept = pair.point / "kept"
    kept.write_text("x")
    refused(NOT_EMPTY, "not empty.*nonempty", mount(pair))
    assert kept.read_text() == "x"
    kept.unlink()
    run("mount", "-t", "tmpfs", "none", pair.point)
    try:
        refused(NOT_EMPTY, "mountpoint already.*nonempty", mount(pair))
        pair.mount("nonempty").unmount()
    finally:
        run("umount", "-l", pair.point, check=False)


def test_a_typo_in_meta_names_the_way_back_and_makes_nothing(
    make_pair: Callable[..., Pair],
) -> None:
    one = make_pair()
    one.mkfs("--meta-log")
    one.mount().unmount()
    right, one.meta = one.meta, one.folder / "typo"
    refused(NO_DEVICE, "fsck.streamfs --restore --meta .*typo", mount(one))
    assert not one.meta.exists()
    old = one.folder / "old"
    shutil.copy(right, old)
    one.meta = right
    one.mount().unmount()
    one.meta = old
    refused(FOREIGN, "older copy of this filesystem's META.*--restore", mount(one))
    assert one.fsck("--restore").returncode == 0
    one.mount().unmount()


def test_swapped_devices(pair: Pair) -> None:
    data = pair.folder / "data"
    data.write_bytes(b"")
    os.truncate(data, 256 << 20)
    pair.data = str(data)
    pair.mkfs("-f")
    done = tool("streamfs", pair.meta, pair.point, "-f", "-o", f"meta={data}")
    refused(FOREIGN, "META", done)
    swapped = tool("fsck.streamfs", "--meta", data, pair.meta)
    refused(FSCK_FAILED, "META", swapped)


def test_foreign_devices(make_pair: Callable[..., Pair]) -> None:
    one = make_pair()
    one.meta.write_bytes(os.urandom(1 << 20))
    refused(FOREIGN, "mkfs.streamfs", mount(one))


def test_halves_of_different_filesystems(make_pair: Callable[..., Pair]) -> None:
    one, other = make_pair("one"), make_pair("other")
    one.mkfs()
    other.mkfs()
    one.meta = other.meta
    refused(FOREIGN, "halves of different", mount(one))


def test_devices_that_are_too_small(make_pair: Callable[..., Pair]) -> None:
    one = make_pair()
    refused(TOO_SMALL, "META is too small", mkfs(one, "--meta-size", "128K"))
    assert not one.meta.exists(), "a META made for nothing stays"
    tiny = one.folder / "tiny"
    tiny.write_bytes(bytes(64 << 10))
    one.data = str(tiny)
    refused(TOO_SMALL, "DATA is too small", mkfs(one))


def test_what_is_not_empty_is_not_overwritten_without_force(pair: Pair) -> None:
    refused(NOT_EMPTY, "-f overwrites", mkfs(pair))
    image = pair.folder / "ext4"
    image.write_bytes(b"")
    os.truncate(image, 64 << 20)
    run("mkfs.ext4", "-q", image)
    pair.meta, pair.data = pair.folder / "META2", str(image)
    refused(NOT_EMPTY, "ext4", mkfs(pair))
    assert mkfs(pair, "-f").returncode == 0


def test_an_emulated_ssd_without_emu_is_not_overwritten(pair: Pair) -> None:
    image = str(pair.data).removeprefix("emu:")
    before = Path(image).read_bytes()[: 1 << 20]
    other = pair.folder / "other"
    refused(NOT_EMPTY, "emulated SSD.*emu:", tool("mkfs.streamfs", "--meta", other, image))
    data = pair.folder / "data"
    data.write_bytes(bytes(64 << 20))
    refused(NOT_EMPTY, "emulated SSD", tool("mkfs.streamfs", "--meta", image, data))
    assert Path(image).read_bytes()[: 1 << 20] == before
    assert not other.exists()


@pytest.mark.parametrize("which", ["META", "DATA"])
def test_a_file_with_content_is_not_overwritten(tmp_path: Path, which: str) -> None:
    meta, data = tmp_path / "meta", tmp_path / "data"
    meta.write_bytes(bytes(32 << 20))
    data.write_bytes(bytes(256 << 20))
    path = meta if which == "META" else data
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"somebody's")
    refused(NOT_EMPTY, f"{path} holds data; -f", tool("mkfs.streamfs", "--meta", meta, data))
    assert tool("mkfs.streamfs", "-f", "--meta", meta, data).returncode == 0


def test_a_trace_never_replaces_a_file(pair: Pair) -> None:
    mount = pair.mount()
    mine = pair.folder / "mine"
    mine.write_text("mine")
    done = tool("streamctl", "trace", "start", mine, mount.point)
    assert done.returncode != 0
    assert mine.read_text() == "mine"
    for words in (("start", pair.folder / "new"), ("stop",)):
        assert tool("streamctl", "trace", *words, mount.point).returncode == 0


def test_a_dry_run_writes_nothing(make_pair: Callable[..., Pair]) -> None:
    one = make_pair()
    said = mkfs(one, "-n").stdout
    assert "Would make" in said
    assert re.search(r"room for \d+ files", said)
    assert not one.meta.exists()
    assert mkfs(one, "-q").stdout == ""
    assert mkfs(one, "-f", "-L", "my label").stdout.splitlines()[0].endswith("my label")


def test_one_damaged_superblock_is_served_by_the_other_two_are_told(pair: Pair) -> None:
    overwrite(pair.meta, 8, 100)
    pair.mount().unmount()
    overwrite(pair.meta, 64 * 1024 + 8, 100)
    pair.mount().unmount()
    overwrite(pair.meta, 8, 100)
    overwrite(pair.meta, 64 * 1024 + 8, 100)
    refused(CORRUPT, "damaged.*fsck", mount(pair))
    refused(FSCK_LEFT, "damaged", pair.fsck())


def test_a_mounted_filesystem_is_busy_for_everyone_else(pair: Pair) -> None:
    holder = rf"in use by process {pair.mount().process.pid} \(streamfs\)"
    began = time.monotonic()
    other = pair.folder / "other"
    other.mkdir()
    programs = {
        "streamfs": ["-f", "-o", f"meta={pair.meta}", pair.data, str(other)],
        "mkfs.streamfs": ["-f", "--meta", str(pair.meta), pair.data],
        "fsck.streamfs": ["--meta", str(pair.meta), pair.data],
    }
    running = {
        name: subprocess.Popen([BIN / name, *words], stderr=subprocess.PIPE, text=True)
        for name, words in programs.items()
    }
    for name, process in running.items():
        said = process.communicate(timeout=30)[1]
        done = subprocess.CompletedProcess([name], process.returncode, "", said)
        refused(FSCK_FAILED if name.startswith("fsck") else BUSY, holder, done)
    assert 8 < time.monotonic() - began < 20, "the wait for a draining daemon is 10 s"


def test_a_daemon_that_is_still_draining_is_waited_for(pair: Pair) -> None:
    first = pair.mount()
    first.process.send_signal(signal.SIGSTOP)
    run("umount", "-l", first.point)
    second = subprocess.Popen(
        [BIN / "fsck.streamfs", "--meta", pair.meta, pair.data], stdout=subprocess.DEVNULL
    )
    time.sleep(0.3)
    assert second.poll() is None
    first.process.send_signal(signal.SIGCONT)
    assert second.wait(DRAIN_SECONDS) == 0


# ---- FUSE and permissions


def test_without_fuse_it_says_so(pair: Pair) -> None:
    hidden = 'mount -t tmpfs none /dev && exec "$@"'
    words: list[str | Path] = [
        BIN / "streamfs",
        pair.data,
        pair.point,
        "-f",
        "-o",
        f"meta={pair.meta}",
    ]
    done = run("unshare", "-m", "sh", "-c", hidden, "sh", *words, check=False)
    refused(NO_FUSE, "/dev/fuse.*modprobe", done)


def test_without_permission_it_says_so(pair: Pair) -> None:
    pair.meta.chmod(0o600)
    pair.image.chmod(0o600)
    drop = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
    words = ["emu:ssd", "mnt", "-f", "-o", "meta=META"]
    done = run(*drop, BIN / "streamfs", *words, check=False, cwd=pair.folder)
    refused(NO_PERMISSION, "Permission denied", done)


# ---- Starting and stopping


def test_a_daemon_answers_when_the_command_returns_and_unmounts_on_a_signal(pair: Pair) -> None:
    done = tool("streamfs", pair.data, pair.point, "-o", f"meta={pair.meta},transport=dev")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    try:
        assert pair.point.is_mount()
        (pair.point / "a").write_text("dirty until the end")
        (server,) = servers_of(pair.point)
        os.kill(server, signal.SIGTERM)
        until(lambda: not servers_of(pair.point), DRAIN_SECONDS, "the daemon's end")
        assert not pair.point.is_mount()
    finally:
        run("umount", "-l", pair.point, check=False)
    assert (pair.mount() / "a").read_text() == "dirty until the end"


def test_a_failure_of_the_daemon_is_the_commands_own(pair: Pair) -> None:
    pair.meta = pair.folder / "gone"
    done = tool("streamfs", pair.data, pair.point, "-o", f"meta={pair.meta}")
    refused(NO_DEVICE, "gone", done)


@pytest.mark.parametrize("name", ["mount.streamfs", "mount.fuse.streamfs"])
def test_the_mount_helper_takes_what_fstab_holds(pair: Pair, name: str) -> None:
    options = f"rw,nofail,_netdev,x-systemd.automount,noatime,user,meta={pair.meta}"
    try:
        done = tool(name, pair.data, pair.point, "-sv", "-o", options)
        assert done.returncode == 0, done.stderr
        rows = Path("/proc/self/mounts").read_text().splitlines()
        (row,) = [row for row in rows if row.split()[1] == str(pair.point)]
        assert row.split()[2] == "fuse.streamfs"
        run("umount", pair.point)
        until(lambda: not servers_of(pair.point), DRAIN_SECONDS, "the daemon's end")
    finally:
        run("umount", "-l", pair.point, check=False)
    refused(1, "shiny", tool(name, pair.data, pair.point, "-o", "shiny"))
    assert tool(name, pair.data, pair.point, "-f", "-o", options).returncode == 0
    assert not pair.point.is_mount()


@pytest.mark.parametrize("name", ["streamfs", "mount.fuse.streamfs"])
def test_a_mount_becomes_read_only_and_writable_again(mounted: Mount, name: str) -> None:
    for option in ("ro", "rw"):
        done = tool(name, "none", mounted.point, "-o", f"remount,{option}")
        assert done.returncode == 0, done.stderr
        writable = os.access(mounted.point, os.W_OK)
        assert writable == (option == "rw")
    (mounted / "a").write_text("x")


def test_read_only_means_that_nothing_changes(pair: Pair) -> None:
    first = pair.mount()
    (first / "a").write_text("x")
    first.unmount()
    before = pair.meta.read_bytes()
    second = pair.mount("ro")
    assert (second / "a").read_text() == "x"
    with pytest.raises(OSError, match="Read-only"):
        (second / "b").write_text("y")
    second.unmount()
    assert pair.meta.read_bytes() == before


# ---- streamctl


@pytest.mark.usefixtures("needs_fuse")
def test_streamctl_outside_a_streamfs(tmp_path: Path) -> None:
    refused(FOREIGN, "not on a mounted streamfs", tool("streamctl", "status", tmp_path))
    refused(FOREIGN, "not on a streamfs", tool("streamctl", "hint", tmp_path))
    refused(NO_DEVICE, "No such file", tool("streamctl", "status", tmp_path / "gone"))


def test_streamctl_shows_and_tells(pair: Pair) -> None:
    mounted = pair.mount()
    (mounted / "a").write_text("x")
    refused(USAGE, "65535", tool("streamctl", "hint", mounted / "a", "--number", "70000"))
    said = run(BIN / "streamctl", "hint", mounted / "a", "--name", "mine", "--json").stdout
    assert '"name":"mine"' in said.replace(" ", "")
    for command in ("status", "streams", "device"):
        assert run(BIN / "streamctl", command, mounted.point).stdout
    assert "mine" in run(BIN / "streamctl", "streams", mounted.point).stdout
    listed = json.loads(run(BIN / "streamctl", "streams", mounted.point, "--json").stdout)
    assert {"lifetime_low_bytes", "lifetime_high_bytes", "pstream_gc_share"} <= set(
        listed["streams"][0]
    )
    trace = pair.folder / "trace"
    run(BIN / "streamctl", "trace", "start", trace, mounted.point)
    (mounted / "b").write_bytes(b"x" * 100_000)
    run(BIN / "streamctl", "sync", mounted.point)
    run(BIN / "streamctl", "trace", "stop", mounted.point)
    assert trace.stat().st_size > 0


def test_a_trace_tells_a_requests_place_in_its_file(pair: Pair) -> None:
    """The class is 1 + 2 * log2(pages before the request + 1), rounded down."""
    mounted = pair.mount()
    trace = pair.folder / "trace.csv"
    run(BIN / "streamctl", "trace", "start", trace, mounted.point)
    page = mmap.mmap(-1, 4096)  # aligned, as O_DIRECT wants it
    file = os.open(mounted / "a", os.O_CREAT | os.O_WRONLY | os.O_DIRECT)
    try:
        for before in (0, 1, 1000):
            os.pwrite(file, page, before * 4096)
    finally:
        os.close(file)
    run(BIN / "streamctl", "trace", "stop", mounted.point)
    with trace.open() as lines:
        found = [row["file_place"] for row in csv.DictReader(lines) if row["op"] == "W"]
    assert found == ["1", "3", "20"]


def test_a_trace_that_cannot_be_written_costs_no_data(pair: Pair, tmp_path: Path) -> None:
    """The unmount fails for the trace, and everything else is done."""
    full = tmp_path / "full"
    full.mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", full)
    try:
        mounted = pair.mount()
        run(BIN / "streamctl", "trace", "start", full / "trace", mounted.point)
        page = mmap.mmap(-1, 4096)
        file = os.open(mounted / "many", os.O_CREAT | os.O_WRONLY | os.O_DIRECT)
        for at in range(4000):  # records of 40 bytes each
            os.pwrite(file, page, at * 4096)
        os.close(file)
        (mounted / "kept").write_bytes(b"x" * 100_000)
        run("umount", mounted.point)
        assert mounted.process.wait(DRAIN_SECONDS) == IO
        assert "the trace is incomplete" in mounted.log.read_text()
    finally:
        run("umount", "-l", full)
    label = json.loads(run(BIN / "streamctl", "show-super", pair.data, "--json").stdout)["label"]
    assert label["clean"]
    assert (pair.mount() / "kept").read_bytes() == b"x" * 100_000


def test_streamctl_refuses_what_would_do_nothing(pair: Pair) -> None:
    mounted = pair.mount()
    file = mounted / "a"
    file.write_text("x")
    refused(USAGE, "name is empty", tool("streamctl", "hint", file, "--name", ""))
    nothing = tool("streamctl", "trace", "stop", mounted.point)
    refused(IO, "^streamctl: no trace is being recorded$", nothing)
    for name, code in (("one", 0), ("two", IO)):
        done = tool("streamctl", "trace", "start", pair.folder / name, mounted.point)
        assert done.returncode == code
    assert done.stderr.count("already") == 1, done.stderr
    assert "in progress" not in done.stderr


def test_an_attribute_of_ours_that_means_nothing_is_refused(pair: Pair) -> None:
    mounted = pair.mount()
    file = mounted / "a"
    file.write_text("x")
    for name in ("user.streamfs.vstraem", "user.streamfs.control", "user.streamfs."):
        with pytest.raises(OSError, match="not supported"):
            os.setxattr(file, name, b"x")
    os.setxattr(file, "user.streamfsish", b"x")
    assert os.listxattr(file) == ["user.streamfsish"]


def test_a_label_with_a_newline_is_one_line_of_the_table(pair: Pair) -> None:
    mounted = pair.mount()
    before = len(tool("streamctl", "streams", mounted.point).stdout.splitlines())
    os.setxattr(mounted.point, "user.streamfs.vstream", b"two\nlines")
    table = tool("streamctl", "streams", mounted.point).stdout
    assert "two?lines" in table
    assert len(table.splitlines()) == before + 1
