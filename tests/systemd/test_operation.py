"""streamfs under a real systemd: from boot to power-off, through restart, crash and hang."""

import errno
import json
import os
import random
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from tests.systemd.world import BUILD, MEDIA, World, execute, until

POINT = "/srv/my data-1"
NAME = r"srv-my\x20data\x2d1"
UNIT = f"streamfs@{NAME}.service"
DAEMON = f"classifierd@{NAME}.service"
BY_FSTAB = "/srv/by-fstab"
FSTAB_NAME = r"srv-by\x2dfstab"
FSTAB = (
    f"emu:{MEDIA}/fstab/ssd {BY_FSTAB} streamfs "
    f"meta={MEDIA}/fstab/META,noatime,user,nofail,idle_work=off,"
    "x-systemd.device-timeout=5,x-systemd.mount-timeout=60 0 2\n"
)
FILE_BYTES = 40 << 20
BLOCK = 4096
EXIT_IO = 70


def make_pair(folder: Path) -> None:
    """A small SSD and the filesystem on it."""
    folder.mkdir()
    execute(BUILD / "bin/ssd-sim", "create", folder / "ssd", "--size", "64M", "--streams", "4",
            "--op", "0.1")  # fmt: skip
    execute(BUILD / "bin/mkfs.streamfs", "--meta", folder / "META", f"emu:{folder / 'ssd'}")


def ssd(world: World, name: str) -> dict[str, Any]:
    """The counters of an emulated SSD."""
    said = execute(BUILD / "bin/ssd-sim", "info", world.folder / "media" / name / "ssd", "--json")
    told: dict[str, Any] = json.loads(said.stdout)
    counted: dict[str, Any] = told.get("device", told)
    return counted


def status(world: World, point: str) -> dict[str, Any]:
    """The status of a mount, by streamctl."""
    told: dict[str, Any] = json.loads(world.run("streamctl", "status", "--json", point).stdout)
    return told


class Content:
    """A file that is rewritten here and there, and what it should hold."""

    def __init__(self, world: World, point: str) -> None:
        self.world = world
        self.path = f"{point}/file"
        self.bytes = bytearray()
        self.draw = random.Random(point)

    def _inside(self) -> Path:
        return Path(f"/proc/{self.world.init_pid}/root{self.path}")

    def write(self, rewrites: int = 100) -> None:
        """Change some of it, and have it on the device."""
        made = not self.bytes
        if made:
            self.bytes = bytearray(self.draw.randbytes(1 << 20) * (FILE_BYTES >> 20))
        with self._inside().open("w+b" if made else "r+b", buffering=0) as file:
            if made:
                file.write(self.bytes)
            for number in range(rewrites):
                at = self.draw.randrange(FILE_BYTES // BLOCK) * BLOCK
                self.bytes[at : at + BLOCK] = self.draw.randbytes(8) * (BLOCK // 8)
                os.pwrite(file.fileno(), self.bytes[at : at + BLOCK], at)
                if number % 1000 == 999:  # or the kernel keeps what is written twice
                    os.fdatasync(file.fileno())
            os.fsync(file.fileno())

    def check(self) -> None:
        """It is there, byte for byte."""
        assert self._inside().read_bytes() == self.bytes


@pytest.fixture(scope="module")
def world(off: World) -> World:
    """On, with one mount of fstab's and one of a unit's, which has a daemon."""
    for name in ("fstab", "unit"):
        make_pair(off.folder / "media" / name)
    for point in (POINT, BY_FSTAB):
        (off.upper / point.lstrip("/")).mkdir(parents=True)
    off.write("/etc/fstab", FSTAB)
    unit = f"DATA=emu:{MEDIA}/unit/ssd\nMETA={MEDIA}/unit/META\nOPTIONS=idle_work=off,noatime\n"
    off.write(f"/etc/streamfs{POINT}.conf", unit)
    off.write(f"/etc/systemd/system/{UNIT}.d/quick.conf", "[Service]\nWatchdogSec=3\n")
    off.boot()
    off.run("systemctl", "enable", "--now", UNIT, DAEMON, f"streamfs-poweroff@{FSTAB_NAME}")
    return off


@pytest.fixture(scope="module")
def contents(world: World) -> list[Content]:
    """The content written to both mounts."""
    both = [Content(world, POINT), Content(world, BY_FSTAB)]
    for content in both:
        content.write()
    return both


def test_fstab_and_unit_are_mounted(world: World, contents: list[Content]) -> None:
    held = {
        point: set(world.run("findmnt", "-n", "-o", "OPTIONS", point).stdout.strip().split(","))
        for point in (BY_FSTAB, POINT)
    }
    assert {"noatime", "nosuid", "nodev"} <= held[BY_FSTAB]  # `user` implies two of them
    assert "noatime" in held[POINT]
    assert not {"nosuid", "nodev"} & held[POINT]
    assert world.run("systemctl", "is-system-running").stdout.strip() == "running"
    until(lambda: "written by applications" in world.show(UNIT, "StatusText"), 10, "a status line")
    for content in contents:
        content.check()


def ask(world: World, user: str, op: str) -> dict[str, Any]:
    """The control socket's answer to a user."""
    script = (
        "import socket,sys,json\n"
        "s=socket.socket(socket.AF_UNIX);s.connect(sys.argv[1])\n"
        "s.sendall(json.dumps({'op':sys.argv[2]}).encode()+b'\\n');print(s.recv(9999).decode())\n"
    )
    where = world.run("getfattr", "--only-values", "-n", "user.streamfs.control", POINT).stdout
    words = ("setpriv", "--reuid", user, "--clear-groups", "/usr/bin/python3", "-c", script)
    said = world.run(*words, where.rstrip("\0"), op).stdout
    answer: dict[str, Any] = json.loads(said.split("\n")[0])
    return answer


def attached(world: World) -> bool:
    """Whether the daemon has the memory it is given; asking would take its place away."""
    pid = world.pid_of(DAEMON)
    return pid > 0 and "memfd:" in world.run("cat", f"/proc/{pid}/maps", check=False).stdout


def test_the_daemon_is_attached_and_nobody(world: World) -> None:
    until(lambda: attached(world), 60, "the daemon")
    pid = world.pid_of(DAEMON)
    said = world.run("cat", f"/proc/{pid}/status").stdout
    rows = dict(line.split(":\t", 1) for line in said.splitlines() if ":\t" in line)
    assert rows["Uid"].split()[0] == world.run("id", "-u", "classifierd").stdout.strip() != "0"
    assert int(rows["CapEff"], 16) == 0
    assert rows["NoNewPrivs"] == rows["Seccomp"][:1].replace("2", "1") == "1"


@pytest.mark.parametrize(
    ("user", "op", "refused"),
    [
        ("nobody", "attach", errno.EACCES),
        ("classifierd", "attach", errno.EBUSY),  # the daemon has the place
        ("classifierd", "trim", errno.EACCES),
        ("classifierd", "prepare_poweroff", errno.EACCES),
        ("nobody", "maintain", errno.EACCES),
        ("nobody", "status", None),
    ],
)
def test_who_may_ask_what(world: World, user: str, op: str, refused: int | None) -> None:
    assert ask(world, user, op).get("errno") == refused


def test_a_restart_keeps_everything(world: World, contents: list[Content]) -> None:
    before, daemon = world.pid_of(UNIT), world.pid_of(DAEMON)
    world.run("systemctl", "restart", UNIT)
    assert world.pid_of(UNIT) != before
    contents[0].check()
    until(lambda: world.active(DAEMON) and world.pid_of(DAEMON) != daemon, 10, "its daemon")
    # Not at a shutdown: there was no time lost with garbage collection.
    assert ssd(world, "unit")["idle_gc_bytes"] == 0


def test_a_killed_mount_comes_back_by_itself(world: World, contents: list[Content]) -> None:
    before = world.signal(UNIT, signal.SIGKILL)
    until(lambda: world.active(UNIT) and world.pid_of(UNIT) not in (0, before), 20, "the mount")
    contents[0].check()
    contents[0].write()
    rows = world.run("findmnt", "-n", "-o", "TARGET", "-t", "fuse.streamfs").stdout
    assert rows.count("data") == 1, "the dead mount was taken away"


def test_a_stopped_mount_is_ended_by_the_watchdog(world: World, contents: list[Content]) -> None:
    restarts = int(world.show(UNIT, "NRestarts"))
    before = world.signal(UNIT, signal.SIGSTOP)
    until(lambda: int(world.show(UNIT, "NRestarts")) > restarts, 20, "the watchdog")
    until(lambda: world.active(UNIT) and world.pid_of(UNIT) not in (0, before), 20, "the mount")
    assert "Watchdog timeout" in world.journal(UNIT)
    contents[0].check()


def test_the_daemon_goes_and_comes_with_its_mount(world: World, contents: list[Content]) -> None:
    world.run("systemctl", "stop", UNIT)
    assert not world.active(UNIT)
    assert world.show(DAEMON, "ActiveState") == "inactive"
    assert world.run("ls", "-A", POINT).stdout == ""
    world.run("systemctl", "start", UNIT)
    until(lambda: world.active(DAEMON), 10, "its daemon")
    contents[0].check()


def test_the_daemon_reads_its_configuration_again_at_reload(world: World) -> None:
    world.run("sh", "-c", 'printf %s "$1" >/etc/streamfs/d.toml', "sh", "[daemon]\npoll_ms = 40\n")
    dropin = "[Service]\nEnvironment='CLASSIFIERD_OPTIONS=--config /etc/streamfs/d.toml'\n"
    folder = f"/run/systemd/system/{DAEMON}.d"
    script = 'mkdir -p "$1" && printf %s "$2" >"$1/options.conf"'
    world.run("sh", "-c", script, "sh", folder, dropin)
    world.run("systemctl", "daemon-reload")
    world.run("systemctl", "restart", DAEMON)
    until(lambda: attached(world), 60, "the daemon")
    before = world.pid_of(DAEMON)
    world.run("systemctl", "reload", DAEMON)
    until(lambda: "the configuration was read again" in world.journal(DAEMON), 20, "a reload")
    world.run("sh", "-c", 'printf %s "$1" >/etc/streamfs/d.toml', "sh", "[daemon]\npoll = 40\n")
    world.run("systemctl", "reload", DAEMON)
    until(lambda: "/etc/streamfs/d.toml:2: [daemon] poll" in world.journal(DAEMON), 20, "a line")
    assert world.pid_of(DAEMON) == before
    journal = ("journalctl", "-D", world.upper / "var/log/journal", "-u", DAEMON, "-o", "cat")
    warned = execute(*journal, "-p", "warning").stdout
    assert "going on as before" in warned, "under its level"
    assert "was read again" not in warned
    world.run("rm", "-r", folder)
    world.run("systemctl", "daemon-reload")


@pytest.mark.parametrize("unit", [UNIT, DAEMON])
def test_system_calls_are_filtered_in_every_thread(world: World, unit: str) -> None:
    until(lambda: world.pid_of(unit) > 0, 20, "its process")
    tasks = world.run("sh", "-c", f"cat /proc/{world.pid_of(unit)}/task/*/status").stdout
    assert set(re.findall(r"^Seccomp:\s+(\d)$", tasks, re.M)) == {"2"}, "by a filter"
    assert set(re.findall(r"^NoNewPrivs:\s+(\d)$", tasks, re.M)) == {"1"}


def test_without_logind_nobody_waits_for_suspend_and_says_why(world: World) -> None:
    watch = world.run("streamctl", "watch-suspend", POINT, check=False, seconds=30)
    assert watch.returncode == EXIT_IO
    assert watch.stderr.startswith("streamctl: ")
    assert watch.stderr.count("\n") == 1
    # Nobody shuts down either.
    asked = world.run("streamctl", "prepare-poweroff", "--if-stopping", POINT)
    assert asked.stdout == ""


def test_started_twice_it_is_one_mount(world: World) -> None:
    before = world.pid_of(UNIT)
    world.run("systemctl", "start", UNIT)
    assert world.pid_of(UNIT) == before
    again = world.run("streamfs", f"emu:{MEDIA}/unit/ssd", POINT, "-o", f"meta={MEDIA}/unit/META",
                      check=False)  # fmt: skip
    assert again.returncode != 0
    assert POINT in again.stderr
    assert world.active(UNIT)


def test_what_cannot_work_fails_once_and_says_why(world: World) -> None:
    world.run("mkdir", "-p", "/srv/wrong")
    conf = f"DATA=emu:{MEDIA}/unit/ssd\nMETA={MEDIA}/fstab/META\n"
    for text, says in (
        (conf.replace("META=", "OPTIONS=nonsense\nMETA="), "nonsense"),
        (f"DATA=emu:{MEDIA}/nowhere\nMETA={MEDIA}/fstab/META\n", "nowhere"),
    ):
        world.run("sh", "-c", 'printf %s "$1" >/etc/streamfs/srv/wrong.conf', "sh", text)
        world.run("systemctl", "reset-failed", check=False)
        failed = world.run("systemctl", "start", "streamfs@srv-wrong", check=False)
        assert failed.returncode != 0
        assert says in world.journal("streamfs@srv-wrong")
    world.run("systemctl", "stop", "streamfs@srv-wrong")
    missing = world.run("systemctl", "start", "streamfs@srv-unknown", check=False)
    assert missing.returncode != 0
    assert "Assert" in missing.stderr
    world.run("systemctl", "reset-failed")


def test_the_jobs_of_the_timers_work(world: World) -> None:
    for job in ("trim", "maintain", "scrub"):
        world.run("systemctl", "enable", "--now", f"streamfs-{job}@{NAME}.timer")
        world.run("systemctl", "start", f"streamfs-{job}@{NAME}.service")
        said = world.journal(f"streamfs-{job}@{NAME}.service")
        expected = {"trim": "of free space trimmed", "maintain": "the device copied",
                    "scrub": "0 damaged"}[job]  # fmt: skip
        assert expected in said, said
        state = world.show(f"streamfs-{job}@{NAME}.service", "Result")
        assert state == "success"
    assert world.run("systemctl", "list-timers", "--all").stdout.count(f"@{NAME}.timer") == 3
    timers = [f"streamfs-{job}@{NAME}.timer" for job in ("trim", "maintain", "scrub")]
    world.run("systemctl", "disable", "--now", *timers)


def test_fstabs_mount_goes_and_comes_by_mount_and_umount(
    world: World, contents: list[Content]
) -> None:
    world.run("umount", BY_FSTAB)
    world.run("fsck", "-t", "streamfs", "-a", f"emu:{MEDIA}/fstab/ssd")
    world.run("mount", BY_FSTAB)
    contents[1].check()
    world.run("mount", "-o", "remount,ro", BY_FSTAB)
    assert world.run("touch", f"{BY_FSTAB}/x", check=False).returncode != 0
    world.run("mount", "-o", "remount,rw", BY_FSTAB)
    for words, code in (
        (("mount.streamfs", "emu:/nowhere", BY_FSTAB, "-o", "meta=/nowhere"), 32),
        (("mount.streamfs", "emu:/nowhere", BY_FSTAB, "-o", "nonsense"), 1),
        (("mount.fuse.streamfs", "emu:/x", "/srv", "-f", "-sn", "-t", "fuse.streamfs", "-o",
          "meta=/m,noauto,x-systemd.automount,users,_netdev,nofail,comment=a,nousers"), 0),
    ):  # fmt: skip
        assert world.run(*words, check=False).returncode == code, words


def test_at_power_off_both_ssds_collect_garbage_and_keep_everything(
    world: World, contents: list[Content]
) -> None:
    for content in contents:
        content.write(12_000)
    world.run("sync")
    before = {name: ssd(world, name) for name in ("unit", "fstab")}
    for name in before:
        assert before[name]["urgency"] in ("high", "critical"), before[name]
    world.power_off()
    for name, unit in (("unit", UNIT), ("fstab", f"streamfs-poweroff@{FSTAB_NAME}.service")):
        after = ssd(world, name)
        assert after["idle_gc_bytes"] > before[name]["idle_gc_bytes"]
        assert after["free_blocks"] > before[name]["free_blocks"]
        assert "the device copied" in world.journal(unit)
        pair = world.folder / "media" / name
        execute(BUILD / "bin/fsck.streamfs", "-n", "-f", "--meta", pair / "META", f"emu:{pair}/ssd")
    assert f"{POINT} unmounted" in world.journal(UNIT)
    began = time.monotonic()
    world.boot()
    until(lambda: world.active(UNIT), 20, "the unit's mount at boot")
    for content in contents:
        content.check()
    assert time.monotonic() - began < 30


def test_devices_missing_at_boot_stop_nothing_and_are_named(
    world: World, contents: list[Content]
) -> None:
    """DATA is missing, or META. A device missing in /dev is systemd's own to tell."""
    make_pair(world.folder / "media/alone")  # a pair of its own, which nobody else holds
    data_gone, meta_gone = (f"{MEDIA}/gone-{name}" for name in ("DATA", "META"))
    lines = (
        (f"emu:{data_gone}", "/srv/no-data", f"{MEDIA}/alone/META", data_gone),
        (f"emu:{MEDIA}/alone/ssd", "/srv/no-meta", meta_gone, meta_gone),
    )
    for data, point, meta, _ in lines:
        line = f"{data} {point} streamfs meta={meta},nofail 0 2"
        world.run("sh", "-c", 'mkdir -p "$2" && echo "$1" >>/etc/fstab', "sh", line, point)
    world.power_off()
    world.boot()
    assert world.active("local-fs.target")
    assert world.active("multi-user.target")
    for _, point, _, named in lines:
        unit = world.run("systemd-escape", "-p", "--suffix=mount", point).stdout.strip()
        until(lambda says=named: says in world.journal(), 20, named)  # type: ignore[misc]
        assert not world.active(unit)
    for unit in (UNIT, f"{FSTAB_NAME}.mount"):
        until(lambda unit=unit: world.active(unit), 20, unit)  # type: ignore[misc]
    for content in contents:
        content.check()
