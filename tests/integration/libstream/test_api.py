"""The C API, its C++ header and its Python module on a real mount and on a block device."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.libstream.harness import LIB, run
from tests.integration.pairs import ROOT, Mount, Pair

EXAMPLES = ROOT / "docs/examples"
PYTHON = {"PYTHONPATH": str(ROOT / "libstream/python"), "LIBSTREAM": str(LIB / "libstream.so")}


def python(script: str, cwd: Path) -> list[str]:
    """Run a script that knows libstream; its lines."""
    done = run("python3", "-c", f"import libstream, os\n{script}", env=PYTHON, cwd=cwd)
    assert done.status == 0, done.err
    return done.out.splitlines()


def label_of(path: Path) -> str:
    return os.getxattr(path, "user.streamfs.vstream").decode()


def compiled(compiler: str, source: Path, out: Path) -> Path:
    words = [f"-I{ROOT}/libstream/include", f"-L{LIB}", "-lstream", f"-Wl,-rpath,{LIB}"]
    done = run(compiler, "-Wall", "-Wextra", "-Werror", "-o", out, source, *words)
    assert done.status == 0, done.err
    return out


def test_the_examples_label_on_a_mount_and_write_elsewhere(mounted: Mount, tmp_path: Path) -> None:
    in_c = compiled("cc", EXAMPLES / "libstream_label.c", tmp_path / "c")
    in_cxx = compiled("c++", EXAMPLES / "libstream_label.cpp", tmp_path / "cxx")
    assert run(in_c, mounted / "log").out == "vStream orders\n"
    assert label_of(mounted / "log") == "orders"
    assert run(in_cxx, mounted.point).out == (
        "scratch: life-64MiB\ncache: life-4096s\narchive: rwh-extreme\n"
    )
    assert run(in_cxx, tmp_path).out == "scratch: elsewhere\ncache: elsewhere\narchive: elsewhere\n"
    example = EXAMPLES / "libstream_label.py"
    assert run("python3", example, mounted.point, env=PYTHON).out == (
        "reports honoured\nlabelled 6\nstreams 8\n"
    )
    assert label_of(mounted / "archive") == "tree"
    assert run("python3", example, tmp_path, env=PYTHON).out == (
        "elsewhere 1\nlabelled 0\nstreams unknown\n"
    )


def test_lifetimes_are_measured_and_asked_for_by_name(mounted: Mount) -> None:
    script = """
block = os.urandom(1 << 20)
stream = libstream.VStream.named("hot")
with open("hot", "wb") as file:
    assert stream.tag(file)
    for _ in range(12):
        file.seek(0)
        file.write(block)
        file.flush()
        os.fsync(file.fileno())
for name in "hot", "never-used":
    try:
        info = libstream.VStream.named(name).measure(".")
        print(info.name, info.lifetime_bytes > 0, info.pstream < 8)
    except FileNotFoundError:
        print("no such vStream")
print(libstream.device("."))
"""
    assert python(script, mounted.point) == [
        "hot True True",
        "no such vStream",
        "Device(pstreams=8, takes_labels=True, mechanism='emulated streams')",
    ]


def test_a_mount_that_ignores_hints_says_so(pair: Pair) -> None:
    mount = pair.mount("placement=learned")
    script = """
open("a", "w").close()
print(libstream.device(".").takes_labels, libstream.hint("a", libstream.Life.SHORT).errno)
"""
    assert python(script, mount.point) == ["False 95"]


def test_a_mount_whose_daemon_is_gone_is_an_error_and_nothing_else(mounted: Mount) -> None:
    """The descriptor stays open while the daemon dies."""
    fd = os.open(mounted / "a", os.O_CREAT | os.O_RDWR)
    os.set_inheritable(fd, True)
    try:
        mounted.process.kill()
        mounted.process.wait(30)
        script = f"""
stream = libstream.VStream.named("x")
print(stream.tag({fd}).errno, libstream.hint({fd}, libstream.Life.LONG).errno)
try:
    libstream.query({fd})
except OSError as error:
    print(error.errno)
"""
        done = subprocess.run(
            ["python3", "-c", f"import libstream\n{script}"],
            env=os.environ | PYTHON,
            pass_fds=[fd],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert done.stdout.split() == ["107", "107", "107"], "ENOTCONN, never a hang"
    finally:
        with contextlib.suppress(OSError):  # its flush reaches nobody
            os.close(fd)


@pytest.fixture
def loop_device(tmp_path: Path) -> Iterator[str]:
    """A block device of one's own."""
    if os.geteuid() != 0:
        pytest.skip("loop devices are root's")
    image = tmp_path / "image"
    image.write_bytes(bytes(1 << 20))
    done = run("losetup", "--find", "--show", image)
    assert done.status == 0, done.err
    device = done.out.strip()
    yield device
    run("losetup", "-d", device)


def test_a_block_device_gets_the_hint_from_the_kernel(loop_device: str, tmp_path: Path) -> None:
    script = f"""
import fcntl, struct
fd = os.open({loop_device!r}, os.O_RDWR)
print(libstream.hint(fd, libstream.Life.LONG).passed_on)
print(struct.unpack("Q", fcntl.fcntl(fd, 1035, bytes(8)))[0])
print(libstream.VStream.named("x").tag(fd).not_streamfs)
plain = os.open("plain", os.O_CREAT | os.O_RDWR)
print(libstream.hint(plain, libstream.Life.LONG).not_streamfs)
print(struct.unpack("Q", fcntl.fcntl(plain, 1035, bytes(8)))[0])
"""
    assert python(script, tmp_path) == ["True", "4", "True", "True", "0"]


def test_what_cannot_be_a_vstream_is_refused(tmp_path: Path) -> None:
    script = """
V = libstream.VStream
for make, value in ((V.named, "a/b"), (V.named, "7"), (V.named, "x" * 32), (V.named, "a\\0b"),
                    (V.numbered, 0), (V.numbered, 65536), (V.for_bytes, -1), (V.for_seconds, 0)):
    try:
        make(value)
        print("made", value)
    except ValueError:
        pass
print(V.for_bytes(5 << 30).name, V.numbered(7).tag("none").errno)
r, w = os.pipe()
print([V.named("x").tag(f).not_streamfs for f in (r, "/dev/null")], V.named("x").tag("/").errno)
"""
    assert python(script, tmp_path) == ["life-4GiB 2", "[True, True] 21"]
