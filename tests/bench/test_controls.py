"""Filesystems that a workload runs on: how they are undone."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from bench.emulated import controls
from bench.emulated.controls import Way, mounted
from bench.emulated.folders import Folders
from bench.ssd import Ssd
from bench.system import start

Undo = Callable[[], object]


@pytest.mark.parametrize(("stuck_seconds", "ended"), [(0.1, True), (600.0, False)])
def test_what_cannot_be_unmounted_loses_its_device_and_nothing_else_does(
    stuck_seconds: float, ended: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    codes: list[int | None] = []
    with ExitStack() as stack:
        server = start(stack, ["sleep", "600"], tmp_path / "log", 0)

        def unmount() -> None:
            codes.append(server.wait(30) if ended else server.poll())

        monkeypatch.setattr(controls, "STUCK_SECONDS", stuck_seconds)
        monkeypatch.setattr(controls, "loop_device", lambda *_: ("/dev/none", server))
        monkeypatch.setattr(controls, "output_of", lambda _: "")
        monkeypatch.setattr(controls, "_set_nothing_aside", lambda *_: None)
        monkeypatch.setattr(controls, "mount_made", lambda undo, *_: undo.callback(unmount))
        folders = Folders(tmp_path, tmp_path, tmp_path)
        mounted(stack, Way("ext4"), Ssd.__new__(Ssd), folders, None)
        assert server.poll() is None, "only unmounting counts"
    assert (codes != [None]) == ended
