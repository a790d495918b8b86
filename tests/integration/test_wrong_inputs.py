"""Wrong inputs of every program: the exit code, a part of the message, and nothing left behind."""

import os
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.pairs import BIN, ROOT, Pair

VENV = ROOT / "build/venv/bin"
OF_PYTHON = ("classifierd", "streamfs-lab")
FOREVER_SECONDS = 20

# Places that command lines name: MNT is a mounted filesystem of META and DATA; OTHER and OTHERMETA
# are one that is not mounted, IMAGE its emulated SSD; TEXT and EMPTY are files; DIR is an empty
# directory; NONE does not exist; NEW is a name for a file that must not be made.
WRONG: list[tuple[str, int, str]] = [
    ("mkfs.streamfs", 64, "--meta is required"),
    ("mkfs.streamfs --meta {NEW}", 64, "DATA is required"),
    ("mkfs.streamfs {NONE}", 64, "--meta is required"),
    ("mkfs.streamfs --meta {NEW} {NONE}", 66, "{NONE}: No such file or directory"),
    (
        "mkfs.streamfs --meta {NONE}/meta {IMAGE}",
        66,
        "opening META {NONE}/meta: No such file or directory",
    ),
    (
        "mkfs.streamfs --meta {DIR} {IMAGE}",
        66,
        "opening META {DIR}: Is a directory; check the path",
    ),
    ("mkfs.streamfs --meta {EMPTY} {EMPTY}", 64, "META and DATA are the same; give two devices"),
    ("mkfs.streamfs --meta {TEXT} {TEXT}", 64, "META and DATA are the same; give two devices"),
    ("mkfs.streamfs --meta {META} {DATA}", 75, "is in use by process"),
    (
        "mkfs.streamfs --meta {META} --meta-size 5X {DATA}",
        64,
        '"5X" is no size; write 4096, 64M, 1.5G or 2TiB',
    ),
    (
        "mkfs.streamfs --meta {META} --meta-size -1 {DATA}",
        64,
        '"-1" is no size; write 4096, 64M, 1.5G or 2TiB',
    ),
    (
        "mkfs.streamfs --meta {OTHERMETA} {OTHER}",
        73,
        "{OTHERMETA} holds a streamfs filesystem; -f overwrites it",
    ),
    (
        "mkfs.streamfs -L a-label-that-is-longer-than-31-bytes --meta {OTHERMETA} -f {OTHER}",
        64,
        "the label is longer than 31 bytes",
    ),
    (
        "mkfs.streamfs --meta {OTHERMETA} emu:{NONE}",
        66,
        "cannot open {NONE}: No such file or directory",
    ),
    ("mkfs.streamfs --meta {OTHERMETA} emu:{TEXT}", 65, "{TEXT} is not an emulated SSD"),
    (
        "mkfs.streamfs --meta {OTHERMETA} nvme:fdp:{NONE}",
        66,
        "cannot open {NONE}: No such file or directory",
    ),
    (
        "mkfs.streamfs --meta {OTHERMETA} -f {OTHER} more",
        64,
        "The following argument was not expected: more",
    ),
    (
        "mkfs.streamfs -n --meta {NEW} --meta-size 1K {OTHER}",
        65,
        "META {NEW} is smaller than 4 KiB",
    ),
    ("fsck.streamfs", 16, "DATA is required"),
    ("fsck.streamfs -n", 16, "DATA is required"),
    (
        "fsck.streamfs --meta {NONE} {OTHER}",
        8,
        "opening META {NONE} (give the META that was mounted last,",
    ),
    (
        "fsck.streamfs --meta {OTHERMETA} emu:{NONE}",
        8,
        "cannot open {NONE}: No such file or directory",
    ),
    (
        "fsck.streamfs -n --meta {TEXT} {OTHER}",
        8,
        "{TEXT}: META holds no streamfs filesystem; give the META",
    ),
    (
        "fsck.streamfs -n --meta {OTHERMETA} {TEXT}",
        8,
        "{TEXT}: DATA holds no streamfs filesystem; make one with",
    ),
    ("fsck.streamfs -n -y --meta {OTHERMETA} {OTHER}", 16, "-n excludes -y"),
    (
        "fsck.streamfs --bogus --meta {OTHERMETA} {OTHER}",
        16,
        "The following argument was not expected: --bogus",
    ),
    (
        "fsck.streamfs -n --meta {META} {OTHER}",
        8,
        "META and {IMAGE} are halves of different filesystems; mount",
    ),
    ("fsck.streamfs -n --meta {EMPTY} {EMPTY}", 8, "{EMPTY} is smaller than one block"),
    ("streamfs", 64, "DATA is required"),
    ("streamfs {OTHER}", 64, "MOUNTPOINT is required"),
    (
        "streamfs -o meta={OTHERMETA},bogus=1 {OTHER} {DIR}",
        64,
        'unknown option "bogus"; streamfs --help lists them',
    ),
    ("streamfs --check-config {NONE}.toml", 66, "{NONE}.toml: No such file or directory"),
    ("streamfs --check-config {TEXT}", 64, "not KEY=VALUE, and no comment"),
    ("mount.streamfs", 1, "SOURCE is required"),
    ("mount.streamfs {OTHER} {DIR}", 1, "-o meta=PATH is missing"),
    (
        "mount.streamfs {OTHER} {DIR} -o meta={NONE}",
        32,
        "opening META {NONE} (give the META that was mounted last,",
    ),
    (
        "mount.streamfs {OTHER} {NONE} -o meta={OTHERMETA}",
        32,
        "mountpoint {NONE}: No such file or directory",
    ),
    (
        "mount.streamfs {TEXT} {DIR} -o meta={OTHERMETA}",
        32,
        "{TEXT}: DATA holds no streamfs filesystem; make one with",
    ),
    (
        "mount.streamfs {OTHER} {DIR} -o meta={OTHERMETA},nonsense",
        1,
        'unknown option "nonsense"; streamfs --help lists them',
    ),
    (
        "mount.streamfs {OTHER} {DIR} -o meta={OTHERMETA},meta_growth=perhaps",
        1,
        'meta_growth is auto or off, not "perhaps"',
    ),
    (
        "mount.streamfs {OTHER} {DIR} -o meta={OTHERMETA},meta_size_max=5X",
        1,
        '"5X" is no size; write 4096, 64M, 1.5G or 2TiB',
    ),
    (
        "mount.streamfs {OTHER} {DIR} -o meta={OTHERMETA},intent_log_max=1M",
        1,
        "intent_log_max is at most 504K, not 1M",
    ),
    (
        "mount.streamfs {OTHER} {DIR} -o meta={OTHERMETA},intent_log_max=1K",
        1,
        "intent_log_max is 0 (the log takes no data) or at least 4K, not 1K",
    ),
    ("streamctl tune --meta {OTHERMETA} {OTHER}", 64, "--enable or --disable is required"),
    (
        "streamctl tune --enable checksums --meta {OTHERMETA} {OTHER}",
        64,
        '"checksums" is no feature that can be enabled; intent-log is',
    ),
    (
        "streamctl tune --enable intent-log=much --meta {OTHERMETA} {OTHER}",
        64,
        '"much" is no size; write 4096, 64M, 1.5G or 2TiB',
    ),
    (
        "streamctl tune --enable intent-log --meta {OTHERMETA} {OTHER}",
        65,
        "META is not persistent, so an intent log would not serve",
    ),
    (
        "streamctl tune --enable intent-log --trust-memory --meta {OTHERMETA} {OTHER}",
        74,
        "beyond its formatted size of",
    ),
    ("streamctl tune --disable intent-log --meta {META} {DATA}", 75, "is in use by process"),
    ("streamctl", 64, "A subcommand is required"),
    ("streamctl statu", 64, 'no command "statu": did you mean "status"?'),
    ("streamctl frobnicate", 64, 'no command "frobnicate"'),
    ("streamctl status", 64, "MOUNTPOINT is required"),
    ("streamctl status {NONE}", 66, "{NONE}: No such file or directory"),
    ("streamctl status {DIR}", 65, "{DIR} is not on a mounted streamfs; give its mountpoint"),
    ("streamctl status {TEXT}", 65, "{TEXT} is not on a mounted streamfs; give its mountpoint"),
    ("streamctl status {MNT} more", 64, "The following argument was not expected: more"),
    ("streamctl status {MNT} a --b c", 64, "arguments were not expected: a --b c"),
    ("streamctl status {MNT} --bogus", 64, "The following argument was not expected: --bogus"),
    ("streamctl streams {MNT} --sort sise", 64, "--sort: sise is none of vStream, pStream, copies"),
    (
        "streamctl streams {MNT} -o vstream,sise",
        64,
        "--output: sise is none of vStream, pStream, copies",
    ),
    ("streamctl usage {DIR}", 65, "{DIR} is not on a mounted streamfs; give its mountpoint"),
    ("streamctl usage {MNT} --sort", 64, "--sort needs a value"),
    ("streamctl top {MNT} -n 0", 64, "--count: 0 is not 1 or more"),
    ("streamctl top {MNT} -d nan", 64, '--delay: "nan" is no number of seconds from 0.1 to 3600'),
    ("streamctl top {MNT} -d 0", 64, '--delay: "0" is no number of seconds from 0.1 to 3600'),
    ("streamctl iostat {MNT} 0", 64, 'SECONDS: "0" is no number of seconds from 0.1 to 86400'),
    ("streamctl iostat {MNT} 1 0", 64, "COUNT: 0 is not 1 or more"),
    ("streamctl iostat {MNT} -w -r", 64, "--latencies excludes --sizes"),
    ("streamctl iostat {MNT} -w --streams", 64, "--streams excludes --latencies"),
    ("streamctl iostat {MNT} -r 1 0", 64, "COUNT: 0 is not 1 or more"),
    ("streamctl iostat {MNT} x", 64, 'SECONDS: "x" is no number of seconds from 0.1 to 86400'),
    ("streamctl device {NONE}", 66, "{NONE}: No such file or directory"),
    ("streamctl device --probe", 65, "--probe needs a device to write to"),
    (
        "streamctl device {MNT} --probe",
        65,
        "--probe is for a device that is not mounted, and {MNT} is",
    ),
    ("streamctl sync {DIR}", 65, "{DIR} is not on a mounted streamfs; give its mountpoint"),
    ("streamctl grow {DIR}", 65, "{DIR} is not on a mounted streamfs; give its mountpoint"),
    ("streamctl grow {MNT} --meta-size 1M", 70, "META cannot shrink from 2.0 MiB to 1.0 MiB"),
    ("streamctl grow {MNT} --meta-size 5X", 64, '"5X" is no size; write 4096'),
    ("streamctl grow {MNT} --meta-size -4M", 64, '"-4M" is no size; write 4096'),
    ("streamctl advise {NONE}", 66, "streamctl: {NONE}: No such file or directory"),
    ("streamctl advise", 64, "streamctl advise: the following arguments are required"),
    ("streamctl report {DIR} -o {NEW}", 66, "streamctl: {DIR}: no streamfs is mounted there"),
    ("streamctl metrics {DIR}", 66, "streamctl: {DIR}: no streamfs is mounted there"),
    ("streamctl trace", 64, "A subcommand is required"),
    ("streamctl trace stop {MNT}", 70, "no trace is being recorded"),
    (
        "streamctl trace start {NONE}/trace {MNT}",
        66,
        "cannot create {NONE}/trace: No such file or directory",
    ),
    ("streamctl trace start {DIR} {MNT}", 66, "streamctl: cannot create {DIR}: Is a directory"),
    ("streamctl trace start {TEXT} {MNT}", 73, "{TEXT} exists already; name a file that does"),
    ("streamctl trace stpo {MNT}", 64, 'no command "stpo": did you mean "stop"?'),
    ("streamctl scrub stop {MNT}", 70, "no scrub is running"),
    ("streamctl scrub cancel {MNT}", 70, "no scrub is running"),
    ("streamctl scrub start {DIR}", 65, "{DIR} is not on a mounted streamfs; give its mountpoint"),
    ("streamctl scrub faster {MNT}", 64, 'no command "faster"'),
    ("streamctl hint {NONE}", 66, "{NONE}: No such file or directory"),
    ("streamctl hint {TEXT}", 65, "{TEXT} is not on a streamfs"),
    ("streamctl hint {MNT}/none", 66, "{MNT}/none: No such file or directory"),
    (
        "streamctl hint {MNT}/file --number 70000",
        64,
        "--number: Value 70000 not in range 1 to 65535",
    ),
    ("streamctl hint {MNT}/file --number 0", 64, "--number: Value 0 not in range 1 to 65535"),
    (
        "streamctl hint {MNT}/file --name ''",
        64,
        "--name: the name is empty; --clear takes a label away",
    ),
    (
        "streamctl hint {MNT}/file --name a/b",
        64,
        "--name: 'a/b' cannot name a vStream: 1 to 31 bytes, no '/'",
    ),
    ("streamctl hint {MNT}/file --name x --clear", 64, "--name excludes --clear"),
    ("streamctl hint {MNT}/file -a", 64, "--all requires --list"),
    ("streamctl shutdown {MNT}", 64, "--mode is required"),
    (
        "streamctl shutdown {MNT} --mode softly",
        64,
        "softly is none of default, logflush, nologflush",
    ),
    ("streamctl trim {DIR}", 65, "{DIR} is not on a mounted streamfs; give its mountpoint"),
    ("streamctl maintain {MNT} --seconds -1", 64, "--seconds: -1 is not 0 or more"),
    ("streamctl maintain {MNT} --seconds x", 64, '--seconds: "x" is no number'),
    ("streamctl prepare-poweroff {MNT} --deadline -1", 64, "--deadline: -1 is not 0 or more"),
    ("streamctl show-super {NONE}", 66, "{NONE}: No such file or directory"),
    ("streamctl show-super {TEXT}", 65, "{TEXT}: DATA holds no streamfs filesystem; make one with"),
    ("streamctl show-super {DATA}", 75, "is in use by process"),
    ("streamctl show-super {OTHER} --meta {TEXT}", 65, "META holds no streamfs filesystem"),
    ("streamctl probe", 64, "DEVICE is required"),
    ("streamctl probe {NONE}", 66, "{NONE}: No such file or directory"),
    ("streamctl probe {TEXT}", 2, "{TEXT} is no streamfs"),
    ("streamctl probe {EMPTY} {TEXT}", 2, "none of them is a streamfs"),
    ("streamctl probe --udev {EMPTY}", 2, "{EMPTY} is no streamfs"),
    ("streamctl metadata dump {OTHER} {NEW}", 64, "--meta is required"),
    (
        "streamctl metadata dump --meta {OTHERMETA} {TEXT} {NEW}",
        65,
        "{TEXT}: DATA holds no streamfs filesystem; make one with",
    ),
    (
        "streamctl metadata restore --meta {OTHERMETA} {OTHER} {TEXT}",
        65,
        "the dump holds no streamfs filesystem",
    ),
    (
        "streamctl metadata restore --meta {OTHERMETA} {OTHER} {NONE}",
        66,
        "{NONE}: No such file or directory",
    ),
    ("streamctl export", 64, "DATA is required"),
    ("streamctl export {NONE} {NEW}", 64, "--output is required"),
    ("streamctl advise {TEXT}", 66, "{TEXT}: line 1: ts_us 'root:x:0:0:root:/root:/bin/bash'"),
    ("ssd-sim", 64, "A subcommand is required"),
    ("ssd-sim lst", 64, 'no command "lst": did you mean "list"?'),
    ("ssd-sim create", 64, "path is required"),
    ("ssd-sim create {NEW}", 64, "impossible geometry: neither --size nor --preset"),
    (
        "ssd-sim create {NEW} --size 5X",
        64,
        "--size: x is no unit of size; write 4096, 64M, 1.5G or 2TiB",
    ),
    ("ssd-sim create {NEW} --size 64M --streams 0", 64, "impossible geometry: 0 streams: 1 to 128"),
    ("ssd-sim create {IMAGE} --size 64M", 73, "{IMAGE} exists (--force replaces it): File exists"),
    (
        "ssd-sim create {NONE}/ssd --size 64M",
        66,
        "cannot create {NONE}/ssd: No such file or directory",
    ),
    ("ssd-sim create {NEW} --size 1K", 64, "impossible geometry: a device of less than one page"),
    ("ssd-sim info {NONE}", 66, "cannot open {NONE}: No such file or directory"),
    ("ssd-sim info {TEXT}", 65, "{TEXT} is not an emulated SSD"),
    ("ssd-sim info {DIR}", 65, "{DIR} is not a regular file"),
    ("ssd-sim reset-stats {TEXT}", 65, "{TEXT} is not an emulated SSD"),
    ("ssd-sim serve {TEXT} {DIR}", 65, "{TEXT} is not an emulated SSD"),
    ("ssd-sim serve {NONE} {DIR}", 66, "cannot open {NONE}: No such file or directory"),
    ("ssd-sim replay {NONE}", 66, "cannot open {NONE}: No such file or directory"),
    ("ssd-sim replay {TEXT}", 65, "{TEXT}: line 1: ts_us 'root:x:0:0:root:/root:/bin/bash'"),
    ("ssd-sim replay {DIR}", 65, "{DIR}: line 0: unreadable, or compressed data damaged or"),
    ("ssd-sim bench nosuch", 64, "no workload 'nosuch'; there are "),
    ("ssd-sim bench uniform --victim nope", 64, "no victim policy 'nope'; there are "),
    ("ssd-sim bench uniform --placement nope", 64, "no placement 'nope'; there are "),
    ("ssd-sim bench uniform --streams 0", 64, "--streams: Value 0 not in range 1 to 64"),
    (
        "ssd-sim bench uniform --pages-per-block 0",
        64,
        "--pages-per-block: Value 0 not in range 1 to 1048576",
    ),
    ("ssd-sim compare", 64, "nothing to compare on: name traces or --workload"),
    ("ssd-sim compare {TEXT}", 65, "{TEXT}: line 1: ts_us 'root:x:0:0:root:/root:/bin/bash'"),
    ("ssd-sim import {TEXT}", 64, "format: {TEXT} is none of fio, blkparse, msr, alibaba,"),
    ("ssd-sim model --spare 5", 64, "The following argument was not expected: --spare"),
    ("ssd-sim model nope", 64, "no formula 'nope'; there are "),
    ("ssd-sim reproduce nope", 64, "no figure 'nope'; there are "),
    ("ssd-sim list a b c", 64, "The following arguments were not expected: a b c"),
    ("ssd-sim list nope", 64, "The following argument was not expected: nope"),
    ("stream-run", 64, "no command given"),
    ("stream-run --bogus true", 64, "unrecognized option '--bogus'"),
    ("stream-run {NONE}", 127, "{NONE}: No such file or directory"),
    (
        "stream-run --profile nope true",
        64,
        "no profile is called 'nope'; there are: default chromium",
    ),
    ("classifierd", 64, "the following arguments are required: command"),
    ("classifierd frobnicate", 64, "argument command: invalid choice: 'frobnicate' (choose from"),
    ("classifierd replay {NONE}", 66, "deprecated; use streamfs-lab replay"),
    ("streamfs-lab replay {NONE}", 66, "{NONE}: No such file or directory"),
    ("streamfs-lab replay {TEXT}", 66, "{TEXT}: line 1: ts_us 'root:x:0:0:root:/root:/bin/bash'"),
    ("streamfs-lab replay uniform --streams 0", 64, "argument --streams: between 1 and 128"),
    ("classifierd advise {NONE}", 66, "{NONE}: No such file or directory"),
    ("fsck.streamfs -C -3 -n --meta {OTHERMETA} {OTHER}", 16, "-C: -3 is not 0 or more"),
    ("streamfs --meta {OTHERMETA} {OTHER} {DIR}", 64, "not expected"),
    (
        "streamfs {OTHER} {NONE} -o meta={OTHERMETA}",
        66,
        "mountpoint {NONE}: No such file or directory",
    ),
    ("streamfs {OTHER} {TEXT} -o meta={OTHERMETA}", 66, "Not a directory"),
    ("streamfs {OTHER} {DIR}", 64, "-o meta=PATH is missing"),
    ("streamfs {OTHER} {DIR} -o meta={NONE}", 66, "opening META {NONE}"),
    ("streamfs {OTHER} {DIR} -o meta={TEXT}", 65, "META holds no streamfs filesystem"),
    ("streamfs {TEXT} {DIR} -o meta={OTHERMETA}", 65, "DATA holds no streamfs filesystem"),
    ("ssd-sim import fio {TEXT} -o {NEW}", 65, "{TEXT}"),
    ("ssd-sim serve {IMAGE} {NONE}", 69, "cannot mount on {NONE}"),
    ("ssd-sim reproduce choi-fio --seeds 0", 64, "not in range 1 to 1000"),
    ("ssd-sim create {NEW} --size", 64, "--size needs a value"),
]


class World:
    """The places that command lines name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pairs: list[Pair] = []
        mounted, other = (self._pair(name) for name in ("mounted", "other"))
        mount = mounted.mount()
        (mount / "file").write_text("x")
        (folder / "dir").mkdir()
        (folder / "text").write_text("root:x:0:0:root:/root:/bin/bash\n" * 300)
        (folder / "empty").touch()
        self.places = {
            "MNT": mount.point, "META": mounted.meta, "DATA": mounted.data,
            "OTHERMETA": other.meta, "OTHER": other.data, "IMAGE": other.image,
            "TEXT": folder / "text", "EMPTY": folder / "empty", "DIR": folder / "dir",
            "NONE": folder / "none", "NEW": folder / "new",
        }  # fmt: skip

    def _pair(self, name: str) -> Pair:
        (self.folder / name).mkdir()
        pair = Pair(self.folder / name, size="64M")
        self.pairs.append(pair)
        pair.mkfs()
        return pair

    def words(self, line: str) -> list[str]:
        """Split a command line; the program is taken from the build."""
        program, *words = shlex.split(line.format(**self.places))
        return [str((VENV if program in OF_PYTHON else BIN) / program), *words]

    def things(self) -> dict[str, object]:
        """Every file but those that the mount itself writes, and every mount."""
        changing = {"mounted/ssd", "mounted/META", "mounted/log"}
        found: dict[str, object] = {}
        for path in self.folder.rglob("*"):
            name = str(path.relative_to(self.folder))
            found[name] = path.is_dir()
            if name not in changing and path.is_file():
                # Opening an emulated SSD writes to its image.
                when = 0 if path.name == "ssd" else path.stat().st_mtime_ns
                found[name] = (path.stat().st_size, when)
        mounts = Path("/proc/self/mounts").read_text().splitlines()
        found["mounts"] = [line.split()[1] for line in mounts if str(self.folder) in line]
        return found

    def end(self) -> None:
        for pair in self.pairs:
            pair.end()


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    if not Path("/dev/fuse").exists() or os.geteuid() != 0:
        pytest.skip("these tests mount as root")
    with tempfile.TemporaryDirectory(prefix="wrong-inputs-") as folder:
        world = World(Path(folder))
        try:
            yield world
        finally:
            world.end()


def processes_of(session: int) -> list[str]:
    """Commands of the processes in a session, without those that have ended."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, fields = stat.read_text().rsplit(")", 1)
        except OSError:
            continue
        state, _, _, its_session = fields.split()[:4]
        if int(its_session) == session and state != "Z":
            found.append(name)
    return found


@pytest.mark.parametrize(("line", "code", "message"), WRONG, ids=[row[0] for row in WRONG])
def test_a_wrong_input_is_refused_with_a_sentence(
    world: World, line: str, code: int, message: str
) -> None:
    before = world.things()
    with subprocess.Popen(
        world.words(line), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True, cwd=world.folder,
    ) as process:  # fmt: skip
        try:
            _, said = process.communicate(timeout=FOREVER_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            raise
    assert (process.returncode, message.format(**world.places) in said) == (code, True), said
    for ugly in ("Traceback", "[Errno", "terminate called", "Run with --help", "0.000000"):
        assert ugly not in said
    assert world.things() == before
    deadline = time.monotonic() + 2
    while processes_of(process.pid):
        assert time.monotonic() < deadline, processes_of(process.pid)
        time.sleep(0.01)


def test_every_program_is_in_the_table() -> None:
    programs = {row[0].split()[0] for row in WRONG}
    assert programs == {
        "mkfs.streamfs", "fsck.streamfs", "streamfs", "mount.streamfs", "streamctl", "ssd-sim",
        "stream-run", *OF_PYTHON,
    }  # fmt: skip
    assert len(WRONG) >= 100
