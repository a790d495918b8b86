"""Errors of every command are sentences."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from classifierd.command_line import EXIT_NO_DEVICE
from streamfs_lab import cli

SMALL = ["replay", "uniform", "--pages", "5000", "--live", "4096", "--policies", "sepgc"]


def error_of(words: list[str], path: Path) -> str:
    """Run a command on a path, which is said as PATH, and give what it says as it fails."""
    command = [sys.executable, "-m", "streamfs_lab", *(w.replace("PATH", str(path)) for w in words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode in (64, 66), done.stderr
    assert done.stderr.splitlines()[-1].startswith("streamfs-lab"), done.stderr
    assert done.stdout == ""
    assert "Errno" not in done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["replay", "PATH"],
        ["plot", "PATH", "-o", "x.png"],
        [*SMALL, "--out", "PATH/tags"],
        [*SMALL, "--out", "PATH/tags.csv"],
    ],
)
def test_a_missing_file_is_told_in_a_sentence(words: list[str], tmp_path: Path) -> None:
    said = error_of(words, tmp_path / "gone")
    assert str(tmp_path / "gone") in said
    assert "No such file or directory" in said


@pytest.mark.parametrize("content", [None, b"no JSON", b"{}", bytes(range(255, 0, -1))])
@pytest.mark.parametrize("command", [["replay", "T"], ["plot", "T", "-o", "PATH.png"]])
def test_a_bad_file_of_vstreams_is_refused(
    command: list[str], content: bytes | None, tmp_path: Path
) -> None:
    trace, file = tmp_path / "trace.csv", tmp_path / "vstreams.json"
    trace.write_text("ts_us,op,offset_bytes,length_bytes\n1,W,0,4096\n")
    if content is not None:
        file.write_bytes(content)
    words = [word.replace("T", str(trace)) for word in command]
    assert f"{file}: " in error_of([*words, "--vstreams", "PATH"], file)


@pytest.mark.parametrize(
    "command", [SMALL, ["replay", "zipf"], ["plot", "hot-cold", "-o", "PATH.png"]]
)
def test_a_file_of_vstreams_is_refused_beside_a_generated_workload(
    command: list[str], tmp_path: Path
) -> None:
    said = error_of([*command, "--vstreams", "PATH"], tmp_path / "gone")
    assert f"--vstreams {tmp_path / 'gone'}: " in said
    assert "is generated and brings its own vStreams" in said


def test_a_device_too_small_for_its_open_blocks_is_told_in_a_sentence(tmp_path: Path) -> None:
    small = ["replay", "zipf", "--pages", "60000", "--live", "8192", "--policies", "nosep"]
    said = error_of([*small, "--gc", "own"], tmp_path)
    assert "8192 live pages on 47 blocks of 256 pages, of which up to 16 are open" in said
    assert cli.main([*small, "--gc", "own", "--block-pages", "64"]) == 0


@pytest.mark.parametrize("spare", ["nan", "inf", "0", "-1", "x"])
def test_a_spare_that_cannot_be_is_refused(spare: str, tmp_path: Path) -> None:
    assert "--spare" in error_of([*SMALL, f"--spare={spare}"], tmp_path)


def test_a_directory_cannot_take_the_tags_and_nothing_is_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cli, "compare", lambda *_: pytest.fail("it replayed"))
    assert cli.main([*SMALL, "--out", str(tmp_path)]) == EXIT_NO_DEVICE
    assert f"{tmp_path}: Is a directory" in caplog.text


def test_a_replay_that_fails_leaves_the_tags_that_were_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(cli, "compare", fails)
    (tmp_path / "tags").write_bytes(b"old")
    assert cli.main([*SMALL, "--out", str(tmp_path / "tags")]) == EXIT_NO_DEVICE
    assert (tmp_path / "tags").read_bytes() == b"old"
