"""fsck.streamfs as e2fsck's users expect it: what it says, changes, and exits with."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from tests.integration.pairs import BIN, Pair, until
from tests.integration.test_tools import (
    FSCK_FAILED,
    FSCK_LEFT,
    FSCK_REPAIRED,
    FSCK_USAGE,
    SUPERBLOCKS,
    overwrite,
    refused,
    tool,
)

FSCK_CANCELLED = 32


def test_fsck_says_that_it_reads_no_data(pair: Pair) -> None:
    assert "metadata sound" in pair.fsck("-f").stdout
    assert "no file data" in " ".join(tool("fsck.streamfs", "--help").stdout.split())


def files_in(pair: Pair, count: int, *, end: str = "unmount") -> None:
    """Make some files; unmount or kill."""
    mounted = pair.mount()
    for i in range(count):
        (mounted / f"f{i}").write_text("x" * i)
    getattr(mounted, end)()


def clear_name(meta: Path, name: str) -> None:
    """Take a name away from META as no program would: its directory slot becomes free."""
    content = meta.read_bytes()
    at = content.rindex(name.encode() + b"\0") - 16
    assert at % 64 == 0
    with meta.open("r+b") as file:
        file.seek(at)
        file.write(bytes(8))


def test_fsck_answers_one_way_only(pair: Pair) -> None:
    for words in (("-n", "-y"), ("-n", "-p"), ("-n", "-a"), ("-y", "-p"), ("-y", "-a")):
        refused(FSCK_USAGE, "excludes", pair.fsck(*words))
    refused(FSCK_USAGE, "-C", pair.fsck("-C", "-3"))


def test_fsck_names_again_what_lost_its_name(pair: Pair) -> None:
    files_in(pair, 5)
    clear_name(pair.meta, "f3")
    looked = pair.meta.read_bytes()
    said = pair.fsck("-n")
    assert said.returncode == FSCK_LEFT
    assert re.search(r"inode \d+ has no name\n", said.stdout)
    assert pair.meta.read_bytes() == looked, "-n changes nothing"
    assert pair.fsck("-f").returncode == FSCK_LEFT, "without -y nothing is repaired"
    assert "clean" in pair.fsck("-p").stdout, "it was unmounted"
    done = pair.fsck("-p", "-f")
    assert done.returncode == FSCK_REPAIRED
    assert re.search(r"has no name \(repaired\)", done.stdout)
    assert pair.fsck("-y").returncode == 0, "a second time there is nothing to do"
    mounted = pair.mount()
    (found,) = (mounted / "lost+found").iterdir()
    assert re.fullmatch(r"#\d+", found.name)
    assert found.read_text() == "xxx"
    mounted.unmount()
    pair.assert_sound()


def test_fsck_adds_up_its_exit_bits(pair: Pair) -> None:
    files_in(pair, 5)
    clear_name(pair.meta, "f3")
    content = pair.meta.read_bytes()
    at = content.rindex(b"f2\0") - 16
    inode = int.from_bytes(content[at : at + 7], "little")
    overwrite(pair.meta, inode * 256 + 8, 8)
    done = pair.fsck("-y")
    assert done.returncode == FSCK_REPAIRED | FSCK_LEFT, done.stdout
    assert "cannot be repaired" in done.stdout


@pytest.mark.quick
def test_fsck_makes_clean_what_a_kill_left(pair: Pair) -> None:
    files_in(pair, 5, end="kill")
    done = pair.fsck("-p")
    assert done.returncode == 0
    assert "sound" in done.stdout
    assert "clean" in pair.fsck("-p").stdout
    pair.mount().unmount()


def test_fsck_shows_its_progress(pair: Pair) -> None:
    files_in(pair, 5)
    reader, writer = os.pipe()
    words: list[str | Path] = [BIN / "fsck.streamfs", "-n", "-C", str(writer)]
    words += ["--meta", pair.meta, pair.data]
    subprocess.run(words, check=True, pass_fds=[writer], stdout=subprocess.DEVNULL, timeout=60)
    os.close(writer)
    with os.fdopen(reader) as lines:
        said = [line.split() for line in lines]
    assert {line[0] for line in said} == {"1", "2"}
    assert all(int(line[1]) <= int(line[2]) and line[3] == pair.data for line in said)
    assert "|" not in pair.fsck("-n", "-C", "0").stdout, "a bar is for terminals"


def waits_in_a_pipe(pid: int) -> bool:
    """Whether a thread of the process is held up by a pipe that nobody reads."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return any("pipe" in (task / "wchan").read_text() for task in tasks)


@pytest.mark.parametrize("told", [signal.SIGINT, signal.SIGTERM])
def test_fsck_that_is_interrupted_repairs_nothing(pair: Pair, told: signal.Signals) -> None:
    files_in(pair, 5)
    clear_name(pair.meta, "f3")
    before = pair.meta.read_bytes()
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, bytes(4096))
    os.set_blocking(writer, True)
    words: list[str | Path] = [
        BIN / "fsck.streamfs",
        "-y",
        "-f",
        "-C",
        str(writer),
        "--meta",
        pair.meta,
        pair.data,
    ]
    with subprocess.Popen(words, pass_fds=[writer], stderr=subprocess.PIPE, text=True) as fsck:
        try:
            until(lambda: waits_in_a_pipe(fsck.pid), 20, "the first line of progress")
            fsck.send_signal(told)
            _, said = fsck.communicate(timeout=20)
        finally:
            fsck.kill()
            os.close(reader)
            os.close(writer)
    assert fsck.returncode == FSCK_CANCELLED, said
    assert "interrupted before anything was repaired" in said
    assert pair.meta.read_bytes() == before
    assert pair.fsck("-y").returncode == FSCK_REPAIRED


def test_fsck_draws_a_bar_on_a_terminal(pair: Pair) -> None:
    files_in(pair, 5)
    mine, terminal = os.openpty()
    words: list[str | Path] = [
        BIN / "fsck.streamfs",
        "-n",
        "-C",
        "0",
        "--meta",
        pair.meta,
        pair.data,
    ]
    subprocess.run(words, check=True, stdout=terminal, timeout=60)
    os.close(terminal)
    shown = os.read(mine, 1 << 16).decode()
    os.close(mine)
    assert re.search(r"\r\S+: \|=+ *\| +\d+ %", shown)
    assert f"|{'=' * 50}| 100 %" in shown


def test_fsck_skips_what_is_clean_and_finds_what_is_not(pair: Pair) -> None:
    mounted = pair.mount()
    for i in range(50):
        (mounted / f"f{i}").write_text("x" * i)
    mounted.unmount()
    assert "clean" in pair.fsck("-a").stdout
    assert "sound" in pair.fsck("-a", "-f").stdout
    intact = pair.folder / "intact"
    shutil.copy(pair.meta, intact)
    content = intact.read_bytes()
    used = [at for at in range(SUPERBLOCKS, len(content), 4096) if any(content[at : at + 4096])]
    codes = []
    for offset in used:
        shutil.copy(intact, pair.meta)
        overwrite(pair.meta, offset, 4096)
        codes.append(pair.fsck("-n", "-f").returncode)
    assert set(codes) <= {0, FSCK_LEFT, FSCK_FAILED}, "a crash is no answer"
    assert FSCK_LEFT in codes, "random bytes over everything in use went unnoticed"
    shutil.copy(intact, pair.meta)
    assert pair.fsck("-n", "-f").returncode == 0
