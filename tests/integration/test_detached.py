"""A mount that is detached here and lives on in another mount namespace."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.integration.pairs import Pair, run


@contextmanager
def in_another_namespace(*words: str) -> Iterator[subprocess.Popen[str]]:
    """Run a program with a mount namespace of its own; its first line has been said."""
    unshare = ["unshare", "--mount", "--propagation", "private", "--"]
    with subprocess.Popen([*unshare, *words], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline()
            yield process
        finally:
            process.kill()


def namespace_of(process: subprocess.Popen[str]) -> str:
    return str(Path(f"/proc/{process.pid}/ns/mnt").readlink())


def test_sigterm_ends_a_mount_that_lives_on_in_another_namespace(pair: Pair) -> None:
    mount = pair.mount()
    with in_another_namespace("sh", "-c", "echo there; exec sleep 600") as other:
        run("umount", mount.point)
        elsewhere = Path(f"/proc/{other.pid}/root{mount.point}")
        (elsewhere / "file").write_text("dirty, and nobody has asked for more")
        assert mount.process.poll() is None
        mount.process.terminate()
        assert mount.process.wait(30) == 0, mount.log.read_text()
        said = mount.log.read_text()
        assert f"process {other.pid} (sleep) in mount namespace {namespace_of(other)}" in said
    again = pair.mount()
    assert (again / "file").read_text() == "dirty, and nobody has asked for more"
    again.unmount()
    pair.assert_sound()


def test_an_open_file_of_a_detached_mount_does_not_keep_the_daemon(pair: Pair) -> None:
    mount = pair.mount()
    with (mount / "file").open("wb") as file:
        run("umount", "-l", mount.point)
        file.write(b"dirty")
        file.flush()
        mount.process.terminate()
        assert mount.process.wait(30) == 0, mount.log.read_text()
        with pytest.raises(OSError):  # noqa: PT011
            os.fsync(file.fileno())
        with suppress(OSError):
            file.close()
    assert (pair.mount() / "file").read_bytes() == b"dirty"
