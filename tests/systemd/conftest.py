"""A world with two filesystems: one in /etc/fstab, one of streamfs@.service."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.systemd.world import World, why_not


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a world is kept."""
    return tmp_path_factory.mktemp("world")


@pytest.fixture(scope="module")
def off(folder: Path) -> Iterator[World]:
    """A world with streamfs installed, not switched on."""
    if reason := why_not(folder):
        pytest.skip(reason)
    world = World(folder)
    yield world
    world.end()
