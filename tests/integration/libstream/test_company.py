"""In bad company: other preloaded libraries, crowds of threads, privileges, files that are none.

The program's results are those it would have without the preload library.
"""

import contextlib
import errno
import json
import os
import shutil
from pathlib import Path

import pytest
from tests.integration import pairs
from tests.integration.libstream.harness import (
    HELPERS,
    PRELOAD,
    STREAM_RUN,
    FakeMount,
    Result,
    compile_c,
    python,
    run,
    with_and_without,
)

NOBODY = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")


@pytest.mark.parametrize("library", ["libjemalloc.so.2", "libeatmydata.so"])
@pytest.mark.parametrize("order", ["before", "behind"])
def test_other_preloaded_libraries_get_along(
    helpers: Path, mount: FakeMount, tmp_path: Path, library: str, order: str
) -> None:
    """Jemalloc allocates in its constructor and opens files; eatmydata wraps open and fsync."""
    env = mount.env | {"FAKE_STREAMFS_MOUNT": str(tmp_path)}
    env["LD_PRELOAD"] += f":{library}"
    if order == "behind":
        env["LD_PRELOAD"] = f"{env['LD_PRELOAD']}:{PRELOAD}"
        env["LD_PRELOAD"] = ":".join(reversed(env["LD_PRELOAD"].split(":")))
    env["PROCESSES_FOLDER"] = str(mount.path)
    plain, preloaded = with_and_without(tmp_path, env, helpers / "processes", "{}")
    assert (plain.status, plain.err) == (0, ""), "the library is there"
    assert preloaded == plain
    assert mount.labels()["thread-63-49-journal"] == "sqlite-journal"


def test_fakeroot_keeps_its_lies(tmp_path: Path) -> None:
    script = "touch a-wal; chown 12:34 a-wal; stat -c '%u %g' a-wal; id -u; echo x > b-journal"
    plain, preloaded = with_and_without(tmp_path, {}, "fakeroot", "sh", "-c", script)
    assert plain == Result(0, "12 34\n0\n", "")
    assert preloaded == plain


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a program setuid")
def test_a_setuid_program_is_not_entered_and_runs_as_ever(helpers: Path) -> None:
    """The loader drops what it is told to preload; nothing is said and nothing changes."""
    folder = Path("/tmp") / f"streamfs-setuid-{os.getpid()}"
    folder.mkdir()
    try:
        program = folder / "entry_points"
        shutil.copy(helpers / "entry_points", program)
        os.chown(program, 0, 0)
        program.chmod(0o4755)
        own = folder / "files"
        own.mkdir()
        own.chmod(0o777)
        log = folder / "log"
        log.touch()
        log.chmod(0o666)
        env = {"LD_PRELOAD": str(PRELOAD), "STREAMFS_EXPLAIN": str(log)}
        done = run(*NOBODY, program, own, env=env)
        assert done.status == 0
        owners = {path.name: path.stat().st_uid for path in own.iterdir()}
        assert owners["open-journal"] == 0, "it ran as root"
        shown = log.read_text()
        assert "open-journal" not in shown, "and the library stayed out"
    finally:
        shutil.rmtree(folder)


def test_files_that_are_none_are_opened_as_ever(mount: FakeMount) -> None:
    """Names of rules on a pipe, a socket, a directory, a dangling link and a device."""
    script = python("""
        import os, socket
        os.mkfifo("pipe-wal")
        both = os.open("pipe-wal", os.O_RDWR)
        print(os.write(both, b"x"), os.read(both, 1))
        socket.socket(socket.AF_UNIX).bind("socket-wal")
        os.mkdir("folder-wal")
        os.symlink("nowhere/x", "link-wal")
        os.symlink("/dev/null", "null-wal")
        for name in ("socket-wal", "folder-wal", "link-wal", "null-wal"):
            try:
                os.close(os.open(name, os.O_RDWR))
                print(name, "opened")
            except OSError as error:
                print(name, error.errno)
    """)
    done = mount.run(*script, options=("--explain",))
    assert done.status == 0
    assert done.out.splitlines() == [
        "1 b'x'",
        "socket-wal 6",
        "folder-wal 21",
        "link-wal 2",
        "null-wal opened",
    ]
    assert not list(mount.asked())
    assert done.err.count("not honoured: not on streamfs") == 2, "the pipe and the device"


def test_a_link_out_of_a_folder_of_the_mount_does_not_silence_the_folder(
    mounted: pairs.Mount, tmp_path: Path
) -> None:
    """The library remembers that a folder is off streamfs, but never for a folder on it."""
    (tmp_path / "x-wal").touch()
    (tmp_path / "y-wal").touch()
    (mounted / "link-wal").symlink_to(tmp_path / "x-wal")
    (mounted / "other-wal").symlink_to(tmp_path / "y-wal")
    script = python(f"""
        import os
        for name in ("link-wal", "other-wal", "a-wal"):
            os.close(os.open({str(mounted.point)!r} + "/" + name, os.O_RDWR | os.O_CREAT))
    """)
    done = run(STREAM_RUN, "--profile", str(own_profile(tmp_path)), "--", *script)
    assert done == Result(0, "", "")
    assert os.getxattr(mounted / "a-wal", "user.streamfs.vstream") == b"own-wal"


def own_profile(folder: Path) -> Path:
    """Say what the mount's own rules do not."""
    path = folder / "own.toml"
    path.write_text('[[rule]]\nname = "*-wal"\nvstream = "own-wal"\n')
    return path


def test_ten_thousand_threads_open_files_while_hints_are_set(
    pair: pairs.Pair, tmp_path: Path
) -> None:
    program = compile_c(tmp_path / "many", HELPERS / "many_threads.c", "-pthread")
    mount = pair.mount()
    done = run(STREAM_RUN, "--", program, mount.point, "10000")
    assert done == Result(0, "10000 threads, 0 failed\n", "")
    labels = [
        os.getxattr(mount / f"{i}-journal", "user.streamfs.vstream") for i in range(0, 10000, 77)
    ]
    assert labels == [b"sqlite-journal" if i * 77 % 2 else b"rwh-short" for i in range(len(labels))]
    mount.unmount()
    pair.assert_sound()


def fill(fd: int) -> None:
    """Take all the room there is, most of it without writing."""
    room = os.fstatvfs(fd)
    os.posix_fallocate(fd, 0, (room.f_bavail * room.f_frsize * 9 // 10) & ~4095)
    os.lseek(fd, 0, os.SEEK_END)
    for size in (1 << 20, 4096):
        with contextlib.suppress(OSError):
            while os.write(fd, bytes(size)):
                pass


def test_on_a_full_disk_a_program_fares_as_without(pair: pairs.Pair) -> None:
    script = python("""
        import os
        for name in ("a-wal", "b-wal"):
            fd = os.open(name, os.O_RDWR | os.O_CREAT)
            try:
                print(os.write(fd, bytes(1 << 20)), os.fsync(fd))
            except OSError as error:
                print(error.errno)
            os.close(fd)
    """)
    mount = pair.mount("direct_io")
    with (mount / "ballast").open("wb") as file:
        fill(file.fileno())
    results = []
    for runner in ((), (STREAM_RUN, "--")):
        results.append(run(*runner, *script, cwd=mount.point))
        for name in ("a-wal", "b-wal"):
            (mount / name).unlink()
    assert results[0] == results[1] == Result(0, "28\n28\n", "")


def error_of(point: Path) -> int:
    """The error of a request to a mount; 0: none."""
    try:
        os.statvfs(point)
    except OSError as error:
        return error.errno or -1
    return 0


def test_a_mount_whose_daemon_is_gone_fails_the_same_way(mounted: pairs.Mount) -> None:
    (mounted / "a-wal").touch()
    mounted.process.kill()
    mounted.process.wait(30)
    # Over io_uring a request gets ECONNABORTED until the kernel notices that the daemon is dead.
    pairs.until(lambda: error_of(mounted.point) == errno.ENOTCONN, 10, "the end of the mount")
    script = python(f"""
        for mode in ("r+", "w"):
            try:
                open({str(mounted.point)!r} + "/a-wal", mode)
            except OSError as error:
                print(error.errno)
    """)
    plain, preloaded = run(*script), run(STREAM_RUN, "--", *script)
    assert plain == preloaded == Result(0, "107\n107\n", "")


def test_a_later_filesystem_that_refuses_the_question_is_as_none(mount: FakeMount) -> None:
    """EINVAL is what a filesystem of another version would say."""
    mount.env["FAKE_STREAMFS_ERRNO"] = "22"
    done = mount.run("sh", "-c", "echo x > a-wal; cat a-wal", options=("--explain",))
    assert (done.status, done.out) == (0, "x\n")
    assert done.err.splitlines()[1].endswith("*-wal: Invalid argument")


def test_streams_of_a_mount_show_who_said_what(mounted: pairs.Mount) -> None:
    """--vstream under the mount's own rules: a person's choice, and told as a hint."""
    run(STREAM_RUN, "--vstream", "mine", "--", "sh", "-c", "echo > a-wal", cwd=mounted.point)
    told = pairs.run(pairs.BIN / "streamctl", "streams", mounted.point, "--json").stdout
    sources = {row["name"]: row["source"] for row in json.loads(told)["streams"]}
    assert sources["mine"] == "hint"
