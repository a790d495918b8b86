"""A filesystem of one's own for each test, always unmounted."""

import os
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from tests.integration.pairs import BIN, Mount, Pair, run
from tests.integration.transport import allowing_io_uring


@pytest.fixture(autouse=True, scope="session")
def trapped_waits() -> Iterator[None]:
    """End every filesystem whose ring threads wait (fuse-fs/frontend/wait_trap.h)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STREAMFS_TRAP_WAITS", "1")
        yield


@pytest.fixture
def needs_fuse() -> None:
    """The programs are built, and root may mount here."""
    if not (BIN / "streamfs").exists():
        pytest.fail(f"{BIN}/streamfs is not built")
    if not Path("/dev/fuse").exists():
        pytest.skip("this machine has no FUSE")
    if os.geteuid() != 0:
        pytest.skip("these tests mount as root")


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A small emulated SSD."""
    path = tmp_path / "ssd"
    run(BIN / "ssd-sim", "create", path, "--size", "512M", "--streams", "4", "--op", "0.1")
    return path


@pytest.fixture
def make_pair(tmp_path: Path, needs_fuse: None) -> Iterator[Callable[..., Pair]]:  # noqa: ARG001
    """Make pairs of devices; whatever is mounted of them at the end is unmounted."""
    made: list[Pair] = []

    def make(name: str = "fs", **more: Any) -> Pair:
        folder = tmp_path / name
        folder.mkdir()
        made.append(Pair(folder, **more))
        return made[-1]

    yield make
    for pair in made:
        pair.end()


@pytest.fixture
def pair(make_pair: Callable[..., Pair]) -> Pair:
    """A formatted pair, not mounted."""
    one = make_pair()
    one.mkfs()
    return one


@pytest.fixture
def mounted(pair: Pair) -> Mount:
    """A fresh filesystem, mounted."""
    return pair.mount()


@pytest.fixture
def io_uring_allowed(request: pytest.FixtureRequest) -> Iterator[None]:
    """The kernel lets FUSE servers ask for io_uring, until a test over it is over."""
    parameters: dict[str, object] = getattr(request.node, "callspec").params  # noqa: B009
    with allowing_io_uring() if parameters["transport"] == "io_uring" else nullcontext():
        yield


@pytest.fixture
def connections(tmp_path: Path) -> Iterator[Path]:
    """The kernel's folder of FUSE connections."""
    folder = tmp_path / "connections"
    folder.mkdir()
    run("mount", "-t", "fusectl", "none", folder)
    yield folder
    run("umount", folder)
