"""A machine for all tests, booted by the first; each test makes its own filesystems in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.vm.guest import Setup
from tests.vm.machine import GUEST, SETUPS, Machine
from tests.vm.payload import BIN, make_payload


@pytest.fixture(scope="session")
def payload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The disk with streamfs on it."""
    for needed in (BIN / "streamfs", GUEST / "vmlinuz", GUEST / "root.img"):
        if not needed.exists():
            pytest.fail(f"{needed} is not there: scripts/test vm makes it")
    return make_payload(tmp_path_factory.mktemp("payload"))


@pytest.fixture(scope="session")
def machine(payload: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A machine that is on, with its NVDIMMs prepared."""
    one = Machine(tmp_path_factory.mktemp("machine"), payload)
    try:
        one.boot()
        for name in SETUPS:
            Setup(one, name).prepare()
            Setup(one, name).power_on()
        yield one
    finally:
        one.cut()


@pytest.fixture(params=SETUPS)
def setup(machine: Machine, request: pytest.FixtureRequest) -> Iterator[Setup]:
    """Each of the two set-ups, with a new filesystem that is not mounted."""
    one = Setup(machine, request.param)
    one.mkfs()
    yield one
    one.end()
