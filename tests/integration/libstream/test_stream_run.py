"""stream-run ends as its command ends, refuses nonsense and explains what it did."""

import signal
import struct
import subprocess
import time
from pathlib import Path

import pytest
from tests.integration.libstream.harness import (
    F_SET_RW_HINT,
    RWH_SHORT,
    STREAM_RUN,
    FakeMount,
    hints,
    run,
)

START = time.time()


def test_stream_run_ends_as_its_command_ends(tmp_path: Path) -> None:
    for options in ((), ("--explain",)):
        assert run(STREAM_RUN, *options, "--", "sh", "-c", "exit 17").status == 17
        assert run(STREAM_RUN, *options, "true").status == 0
        assert run(STREAM_RUN, *options, "sh", "-c", "kill -9 $$").status == -signal.SIGKILL
        assert run(STREAM_RUN, *options, "no-such-command").status == 127
        assert run(STREAM_RUN, *options, tmp_path).status == 126


def test_stream_run_names_the_profiles_there_are() -> None:
    done = run(STREAM_RUN, "--profile", "oracle", "--", "true")
    assert done.status == 64
    for known in ("oracle", "default", "sqlite", "rocksdb", "postgresql"):
        assert known in done.err


@pytest.mark.parametrize(
    "options",
    [
        ["--vstream", "a/b", "true"],
        ["--vstream", "7", "true"],
        ["--vstream", "", "true"],
        ["--unknown", "true"],
        ["--profile"],
        [],
    ],
)
def test_stream_run_refuses_what_makes_no_sense(options: list[str]) -> None:
    done = run(STREAM_RUN, *options)
    assert (done.status, done.out) == (64, "")
    assert done.err


def test_stream_run_wants_a_folder_for_temporary_files(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in ("/no/such/folder", str(tmp_path / "file")):
        done = run(STREAM_RUN, "--tmp", path, "true")
        assert done.status == 66
        assert path in done.err
    done = run(STREAM_RUN, "--tmp", tmp_path, "sh", "-c", "echo $TMPDIR $SQLITE_TMPDIR")
    assert done.out == f"{tmp_path} {tmp_path}\n"
    assert "not on a streamfs mount" in done.err


def test_stream_run_keeps_what_is_preloaded_already(helpers: Path) -> None:
    show = ("sh", "-c", "echo $LD_PRELOAD")
    assert run(STREAM_RUN, *show).out.endswith("/libstream_preload.so\n")
    fake = {"LD_PRELOAD": str(helpers / "fake.so")}
    once = run(STREAM_RUN, *show, env=fake).out
    assert once.startswith(f"{helpers}/fake.so:")
    assert run(STREAM_RUN, STREAM_RUN, *show, env=fake).out == once


def test_explain_says_file_rule_label_and_what_the_mount_said(
    mount: FakeMount, tmp_path: Path
) -> None:
    script = f"echo > a-wal; echo > a-wal; echo > {tmp_path}/b-journal; echo > plain; echo out"
    done = mount.run("sh", "-c", script, options=("--explain",))
    assert (done.status, done.out) == (0, "out\n")
    assert done.err.splitlines() == [
        "stream-run: 3 hints",
        f"  {mount.path}/a-wal: sqlite-wal, by sqlite's *-wal: honoured (2 times)",
        f"  {tmp_path}/b-journal: sqlite-journal, by sqlite's *-journal: "
        "not honoured: not on streamfs",
    ]
    mount.env["FAKE_STREAMFS_ERRNO"] = "28"
    done = mount.run("sh", "-c", "echo > a-wal", options=("--explain",))
    assert done.err.splitlines()[1].endswith(": No space left on device")


def test_explain_shows_own_hints_and_what_they_kept(mount: FakeMount) -> None:
    own = hints("a\n-journal", (F_SET_RW_HINT, struct.pack("Q", RWH_SHORT)))
    done = mount.run(*own, options=("--explain",))
    assert f"  {mount.path}/a\\012-journal: short, by F_SET_RW_HINT: honoured" in done.err
    done = mount.run("sh", "-c", "echo > 'a\n-journal'", options=("--explain",))
    assert done.err.splitlines()[1].endswith("by sqlite's *-journal: kept: has a label of its own")


def test_explain_reports_what_a_killed_command_did(mount: FakeMount) -> None:
    done = mount.run("sh", "-c", "echo > a-wal; kill -9 $$", options=("--explain",))
    assert done.status == -signal.SIGKILL
    assert "a-wal: sqlite-wal" in done.err
    assert not [path for path in Path("/tmp").glob("stream-run-*") if path.stat().st_mtime > START]


def test_a_signal_meant_for_the_command_reaches_it(tmp_path: Path) -> None:
    script = f"trap 'exit 9' TERM; touch {tmp_path}/ready; while :; do sleep 0.05; done"
    with subprocess.Popen(
        [STREAM_RUN, "--explain", "sh", "-c", script], stderr=subprocess.PIPE
    ) as running:
        deadline = time.monotonic() + 30
        while not (tmp_path / "ready").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        running.terminate()
        running.communicate(timeout=30)
    assert running.returncode == 9
