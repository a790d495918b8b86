"""streamctl's views of a mount and of devices: as tables, raw, as JSON, live; bad input."""

import fcntl
import json
import mmap
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.integration.pairs import BIN, ROOT, Mount, Pair, run, until

NO_MATCH, USAGE, FOREIGN, NO_DEVICE, IO, BUSY = 2, 64, 65, 66, 70, 75
STREAMCTL = BIN / "streamctl"
MIB = 1 << 20


def ctl(*words: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    return run(STREAMCTL, *words, check=check, timeout=30)


def said(*words: str | Path) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(ctl(*words, "--json").stdout)
    return answer


def write_synced(mount: Mount, name: str, size: int) -> None:
    (mount / name).write_bytes(os.urandom(size))
    run(STREAMCTL, "sync", mount.point)


def fields(value: object, prefix: str = "") -> set[str]:
    """Return the path of every field, as in `a.b[].c`."""
    if isinstance(value, dict):
        return {f"{prefix}{key}" for key in value}.union(
            *(fields(each, f"{prefix}{key}.") for key, each in value.items())
        )
    if isinstance(value, list):
        return set().union(*(fields(each, f"{prefix[:-1]}[].") for each in value))
    return set()


def test_every_json_object_has_the_schema_and_its_fields(pair: Pair) -> None:
    """A field that goes raises the schema (docs/FORMAT.md); a new one is added to the list."""
    mount = pair.mount()
    (mount / "a").write_text("x")
    trace, dump = pair.folder / "trace", pair.folder / "dump"
    at, answers = mount.point, {}
    mounted: dict[str, tuple[str | Path, ...]] = {
        "status": ("status", at),
        "streams": ("streams", at),
        "device MOUNT": ("device", at),
        "usage": ("usage", at),
        "sync": ("sync", at),
        "trim": ("trim", at),
        "scrub status": ("scrub", "status", at),
        "maintain": ("maintain", "--seconds", "0.01", at),
        "prepare-poweroff": ("prepare-poweroff", "--deadline", "0.01", at),
        "grow": ("grow", "--dry-run", at),
        "trace start": ("trace", "start", trace, at),
        "trace stop": ("trace", "stop", at),
        "hint": ("hint", mount / "a"),
        "iostat": ("iostat", at, "0.1", "1"),
        "iostat --latencies": ("iostat", at, "--latencies"),
        "iostat --sizes": ("iostat", at, "--sizes"),
        "top": ("top", at, "-d", "0.1", "-n", "1"),
    }
    for name, words in mounted.items():
        answers[f"streamctl {name}"] = said(*words)
    mount.unmount()
    blank = pair.folder / "blank"
    run(BIN / "ssd-sim", "create", blank, "--size", "64M", "--streams", "4")
    unmounted: dict[str, tuple[str | Path, ...]] = {
        "show-super": ("show-super", pair.data),
        "device DATA": ("device", pair.data),
        "tune": ("tune", "--disable", "intent-log", "--meta", pair.meta, pair.data),
        "probe": ("probe", pair.meta),
        "metadata dump": ("metadata", "dump", "--meta", pair.meta, pair.data, dump),
        "setup": ("setup", "--data", f"emu:{blank}", "--meta", dump, pair.folder / "new"),
    }
    for name, words in unmounted.items():
        answers[f"streamctl {name}"] = said(*words)
    for command in (["list"], ["info", str(pair.image)], ["model", "greedy", "--alpha", "1.2"]):
        told = run(BIN / "ssd-sim", *command, "--json", check=False)
        answers[f"ssd-sim {command[0]}"] = json.loads(told.stdout)
    assert {name: answer["schema"] for name, answer in answers.items()} == dict.fromkeys(answers, 1)
    found = {name: sorted(fields(answer)) for name, answer in answers.items()}
    listed = json.loads((ROOT / "tests/integration/json_fields.json").read_text())
    assert found == listed


@pytest.mark.quick
def test_usage_adds_up_and_sees_what_is_written(pair: Pair) -> None:
    mount = pair.mount()
    before = said("usage", mount.point)
    write_synced(mount, "file", 10 * MIB)
    after = said("usage", mount.point)
    for part in ("data", "meta"):
        sizes = dict(after[part])
        assert sizes.pop("bytes") == sum(sizes.values()), part
    assert after["data"]["used_bytes"] - before["data"]["used_bytes"] == 10 * MIB
    assert after["files"]["used"] - before["files"]["used"] == 1
    assert sum(each["live_bytes"] for each in after["streams"]) >= 10 * MIB
    human = ctl("usage", mount.point).stdout
    assert re.search(r"^ +files +10\.0 MiB +\d+\.\d %", human, re.M), human
    raw = ctl("usage", "-p", mount.point).stdout
    assert re.search(rf"^ +files +{10 * MIB} ", raw, re.M), raw
    assert "\x1b" not in human + raw


def test_iostat_counts_what_happens_in_its_interval(pair: Pair) -> None:
    mount = pair.mount()
    write_synced(mount, "before", 4 * MIB)
    words = [str(each) for each in (STREAMCTL, "iostat", mount.point, "0.5", "--json")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            before = json.loads(process.stdout.readline())
            write_synced(mount, "file", 8 * MIB)
            lines, deadline = [before], time.monotonic() + 60
            while sum(line["app_bytes"] for line in lines) < 8 * MIB:
                assert time.monotonic() < deadline, lines
                lines.append(json.loads(process.stdout.readline()))
            lines.append(json.loads(process.stdout.readline()))  # the last write is synced
        finally:
            process.terminate()
    assert sum(line["app_bytes"] for line in lines) == 8 * MIB
    assert sum(line["written_bytes"] for line in lines) >= 8 * MIB
    assert sum(line["flushes"] for line in lines) >= 1
    for line in lines:
        assert line["seconds"] >= 0.5
        assert line["waf"] is None or line["waf"] >= 1
        assert sum(each["written_bytes"] for each in line["streams"]) == line["written_bytes"]


def test_iostat_prints_one_line_without_an_interval(mounted: Mount) -> None:
    lines = ctl("iostat", mounted.point, "0.1", "3").stdout.splitlines()
    assert len(lines) == 5
    assert {len(line) for line in lines[1:]} == {len(lines[1])}, "columns are in line"
    assert len(ctl("iostat", mounted.point).stdout.splitlines()) == 3
    table = ctl("iostat", mounted.point, "0.1", "1", "--streams").stdout.splitlines()
    assert table[3].split() == ["pStream", "written", "collected", "WAF"]
    assert len(table) == 4 + 8


@pytest.mark.parametrize("command", ["streams", "usage", "top"])
def test_the_twenty_largest_vstreams_are_listed(pair: Pair, command: str) -> None:
    mount = pair.mount()
    for number in range(30):
        file = mount / f"f{number}"
        file.write_bytes(b"")
        os.setxattr(file, "user.streamfs.vstream", b"label-%d" % number)
        file.write_bytes(b"x" * 4096 * (number + 1))
    run("sync", "-f", mount.point)
    once = ["-d", "0.1", "-n", "1"] if command == "top" else []

    def listed(*options: str) -> list[str]:
        return ctl(command, mount.point, *once, *options).stdout.splitlines()

    assert len([line for line in listed("--sort", "live") if "label-" in line]) == 20
    (left,) = (line for line in listed() if line.endswith("more (--all)"))
    assert int(left.split()[1]) >= 10
    assert len([line for line in listed("--all") if "label-" in line]) == 30
    (names,) = (line for line in listed("-o", "WHAT,vstream") if line.startswith("what"))
    assert names.split() == ["what", "vStream"]
    rows = [line.strip() for line in listed("-H", "-o", "what", "--sort", "live")]
    assert rows.index("label-29") < rows.index("label-3") < rows.index("label-0")
    assert ctl(command, mount.point, "--sort", "sise", check=False).returncode == USAGE


def test_iostat_ends_when_the_mount_does(pair: Pair) -> None:
    mount = pair.mount()
    words = [str(each) for each in (STREAMCTL, "iostat", mount.point, "0.1")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        mount.unmount()
        said_last = process.communicate(timeout=10)[1]
    assert process.returncode == 70
    assert b"hung up" in said_last


def test_top_without_a_terminal_is_plain(mounted: Mount) -> None:
    text = ctl("top", mounted.point, "-d", "0.1", "-n", "2").stdout
    assert text.count("WAF") == 4
    assert text.count("pStream ") >= 2
    assert "\x1b" not in text


class Screen:
    """A program on a terminal of its own."""

    def __init__(self, *words: str | Path, term: str = "xterm") -> None:
        self.leader, follower = pty.openpty()
        self.resize(24, 80)
        self.process = subprocess.Popen(
            [str(word) for word in words],
            stdin=follower, stdout=follower, stderr=follower, start_new_session=True,
            env={**os.environ, "TERM": term},
        )  # fmt: skip
        os.close(follower)
        self.shown = ""

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.leader, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self) -> str:
        """The output until now."""
        while select.select([self.leader], [], [], 0)[0]:
            try:
                self.shown += os.read(self.leader, 65536).decode(errors="replace")
            except OSError:
                break
        return self.shown

    def shows(self, text: str) -> bool:
        return text in self.read()

    def type(self, keys: bytes) -> None:
        os.write(self.leader, keys)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.leader)


def test_top_is_live_on_a_terminal_follows_its_size_and_quits(pair: Pair) -> None:
    mount = pair.mount()
    screen = Screen(STREAMCTL, "top", mount.point, "-d", "0.2")
    try:
        until(lambda: screen.shows("NAND per application byte"), 10, "a picture")
        assert "\x1b[?1049h" in screen.shown, "the terminal's other screen"
        screen.shown = ""
        screen.resize(10, 30)
        os.kill(screen.process.pid, signal.SIGWINCH)
        until(lambda: screen.shows("streamfs"), 10, "a picture of another size")
        assert "NAND per application byte" not in screen.read()
        screen.type(b"q")
        until(lambda: screen.process.poll() is not None, 10, "the end")
        assert screen.process.returncode == 0
        assert "\x1b[?1049l" in screen.read()
    finally:
        screen.end()


def test_colours_are_for_terminals_that_want_them(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    mount = pair.mount()
    for term, no_color, coloured in (
        ("xterm", "", True),
        ("xterm", "1", False),
        ("dumb", "", False),
    ):
        monkeypatch.setenv("NO_COLOR", no_color)
        screen = Screen(STREAMCTL, "streams", mount.point, term=term)
        try:
            assert screen.process.wait(10) == 0
            assert ("\x1b[1m" in screen.read()) == coloured, (term, no_color)
        finally:
            screen.end()


def test_show_super_reads_an_unmounted_pair_and_writes_nothing(
    make_pair: Callable[..., Pair],
) -> None:
    pair = make_pair(size="64M")
    pair.mkfs("-L", "my label")
    mount = pair.mount()
    refused = ctl("show-super", pair.data, check=False)
    assert refused.returncode == BUSY
    mount.unmount()
    devices = [pair.meta] if pair.given else [pair.meta, pair.image]
    before = [device.read_bytes() for device in devices]
    answer = said("show-super", pair.data, "--meta", pair.meta)
    uuid = answer["label"]["uuid"]
    assert answer["meta"]["uuid"] == uuid
    assert answer["meta"]["clean"] is True
    assert answer["label"]["label"] == "my label"
    assert answer["attachments"] == answer["meta"]["attachments"] == 2
    assert "metadata log" in answer["meta"]["features"]
    assert answer["log"]["bytes"] > 0
    text = ctl("show-super", pair.data, "--meta", pair.meta).stdout
    assert uuid in text
    assert "my label" in text
    assert [device.read_bytes() for device in devices] == before


def test_show_super_refuses_what_is_none(pair: Pair, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.write_bytes(bytes(MIB))
    for words, code in (
        ([empty], FOREIGN),
        ([pair.meta], FOREIGN),
        ([tmp_path / "gone"], NO_DEVICE),
        ([pair.data, "--meta", empty], FOREIGN),
        ([], USAGE),
    ):
        done = ctl("show-super", *words, check=False)
        assert done.returncode == code, done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_probe_knows_both_devices_also_while_they_are_mounted(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    data = tmp_path / "data"
    data.touch()
    os.truncate(data, 256 * MIB)
    pair.data = str(data)
    pair.mkfs("-L", "a b")
    mount = pair.mount()
    try:
        found = said("probe", data, pair.meta)["devices"]
        assert [each["type"] for each in found] == ["streamfs", "streamfs_meta"]
        assert {each["uuid"] for each in found} == {mount.status()["uuid"]}
        assert ctl("probe", data).stdout == (
            f'{data}: LABEL="a b" UUID="{found[0]["uuid"]}" TYPE="streamfs"\n'
        )
        lines = dict(
            line.split("=", 1) for line in ctl("probe", "--udev", data).stdout.splitlines()
        )
        assert lines["ID_FS_TYPE"] == "streamfs"
        assert lines["ID_FS_USAGE"] == "filesystem"
        assert lines["ID_FS_LABEL_ENC"] == r"a\x20b"
    finally:
        pair.end()
    with pair.meta.open("r+b") as meta:  # the other superblock counts
        meta.write(bytes(100))
    assert said("probe", pair.meta)["devices"][0]["uuid"] == found[0]["uuid"]
    with data.open("r+b") as label:
        label.write(bytes(8192))
    refused = ctl("probe", data, check=False)
    assert (refused.returncode, refused.stdout) == (NO_MATCH, "")
    assert ctl("probe", tmp_path / "gone", check=False).returncode == NO_DEVICE


def test_udev_takes_the_rule(pair: Pair) -> None:
    rule = ROOT / "systemd/65-streamfs.rules"
    lines = [line for line in rule.read_text().splitlines() if line and not line.startswith("#")]
    token = r'[A-Z]+(\{\w+\})?(==|!=|\+=|=)"[^"]*"'
    for line in lines:
        assert re.fullmatch(rf"{token}(, {token})*", line), line
    assert set(re.findall(r'GOTO="(\w+)"', "".join(lines))) == {"streamfs_end"}
    assert lines[-1] == 'LABEL="streamfs_end"'
    (command,) = re.findall(r'IMPORT\{program\}="([^"]*)"', "".join(lines))
    words = command.replace("$devnode", str(pair.meta))
    path = {**os.environ, "PATH": f"{BIN}:/usr/bin:/bin"}
    done = run("sh", "-c", words, env=path)
    assert "ID_FS_TYPE=streamfs_meta\n" in done.stdout
    if shutil.which("udevadm") and run("udevadm", "verify", "--help", check=False).returncode == 0:
        run("udevadm", "verify", rule)


@contextmanager
def reads(path: Path) -> Iterator[None]:
    """A program at work all the time, to which a scrub gives way."""
    over = threading.Event()
    fd = os.open(path, os.O_RDONLY | os.O_DIRECT)

    def read() -> None:
        with mmap.mmap(-1, 4096) as page:
            while not over.is_set():
                os.preadv(fd, [page], 0)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        os.close(fd)


def test_a_scrub_is_started_asked_and_cancelled(mounted: Mount) -> None:
    for number in range(64):
        (mounted / f"{number}").write_bytes(os.urandom(MIB))
    run(STREAMCTL, "sync", mounted.point)
    assert said("scrub", "status", mounted.point)["state"] == "never"
    with reads(mounted / "0"):
        ctl("scrub", "start", mounted.point)
        ctl("scrub", "cancel", mounted.point)
        assert said("scrub", "status", mounted.point)["state"] == "stopped"
    nothing = ctl("scrub", "stop", mounted.point, check=False)
    assert (nothing.returncode, nothing.stderr) == (IO, "streamctl: no scrub is running\n")
    whole = said("scrub", "start", "--wait", mounted.point)
    assert whole["state"] == "done"
    assert whole["bytes"] >= 64 * MIB


def test_a_mistyped_command_is_told_the_likely_one() -> None:
    done = ctl("statu", check=False)
    assert (done.returncode, done.stderr) == (
        USAGE,
        'streamctl: no command "statu": did you mean "status"?\n',
    )
    done = run(BIN / "ssd-sim", "repaly", check=False)
    assert (done.returncode, done.stderr) == (
        USAGE,
        'ssd-sim: no command "repaly": did you mean "replay"?\n',
    )


def test_a_fresh_mount_shows_no_ratio_that_means_nothing(mounted: Mount) -> None:
    (mounted / "small").write_bytes(b"x" * 10_000)
    run(BIN / "streamctl", "sync", mounted.point)
    told = ctl("status", mounted.point).stdout
    assert "NAND per application byte \N{EN DASH}," in told
    assert "effective spare \N{EN DASH}" in told


@pytest.mark.parametrize(
    "words",
    [
        ["iostat", "MNT", "0"],
        ["iostat", "MNT", "soon"],
        ["iostat", "MNT", "1", "0"],
        ["iostat", "MNT", "1", "-3"],
        ["top", "MNT", "-d", "nan"],
        ["top", "MNT", "-n", "0"],
        ["usage"],
        ["export", "x"],
        ["nonsense"],
    ],
)
def test_bad_words_are_named_in_one_line(mounted: Mount, words: list[str]) -> None:
    done = ctl(*[str(mounted.point) if word == "MNT" else word for word in words], check=False)
    assert done.returncode == USAGE, done.stdout
    assert len(done.stderr.splitlines()) == 1, done.stderr


@pytest.mark.usefixtures("needs_fuse")
@pytest.mark.parametrize("command", ["usage", "iostat", "top", "streams", "status", "trim"])
def test_elsewhere_each_says_that_it_is_no_streamfs(tmp_path: Path, command: str) -> None:
    for path, code in ((tmp_path, FOREIGN), (tmp_path / "gone", NO_DEVICE)):
        done = ctl(command, path, check=False)
        assert done.returncode == code
        assert len(done.stderr.splitlines()) == 1
