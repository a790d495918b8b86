"""classifierd metrics where no streamfs is mounted: a sentence, unless it is told to wait."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from classifierd.cli import main
from classifierd.command_line import EXIT_NO_DEVICE
from fake_filesystem import FakeFilesystem


@pytest.mark.parametrize("more", [(), ("--once",), ("--textfile", "x.prom")])
@pytest.mark.parametrize("name", [".", "nothing"])
def test_a_path_without_a_streamfs_ends_it(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    more: tuple[str, ...],
) -> None:
    def begin(*_: object) -> None:
        msg = "it began, and would go on until stopped"
        raise OSError(msg)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("classifierd.operations.Endpoint", begin)
    monkeypatch.setattr("classifierd.operations.keep_textfile", begin)
    assert main(["metrics", str(tmp_path / name), *more]) == EXIT_NO_DEVICE
    assert f"{tmp_path / name}: no streamfs is mounted there" in caplog.text
    assert "listening" not in caplog.text
    assert list(tmp_path.iterdir()) == []


def test_each_of_several_mounts_must_be_there(
    filesystem: FakeFilesystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def getxattr(path: Path, _: str) -> bytes:
        if path == tmp_path:
            raise FileNotFoundError(2, "No such file or directory")
        return bytes(filesystem.path)

    filesystem.more = {"status": {}, "metrics": {}}
    monkeypatch.setattr("classifierd.control.os.getxattr", getxattr)
    assert main(["metrics", "/srv", "--once"]) == 0
    assert main(["metrics", "/srv", str(tmp_path), "--once"]) == EXIT_NO_DEVICE


def test_with_wait_a_path_without_a_streamfs_is_reported_as_down(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    down = f'streamfs_up{{mountpoint="{tmp_path}"}} 0.0'
    assert main(["metrics", str(tmp_path), "--once", "--wait"]) == 0
    assert down in capsys.readouterr().out
    program = [sys.executable, "-m", "classifierd", "metrics", "--wait", "--listen", "0"]
    with subprocess.Popen([*program, str(tmp_path)], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        url = process.stderr.readline().split()[-1]
        with urllib.request.urlopen(url) as answer:
            assert down in answer.read().decode()
        process.terminate()
        assert process.wait(10) == 0
