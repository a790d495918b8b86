"""The integration tests, on the machine's devices instead of emulated ones."""

import pytest
from tests.vm.guest import PAYLOAD, TRANSPORTS, Setup

FOLDER = "tests/integration"
# A few seconds' worth.
SMOKE = (
    "test_mount_posix.py::test_what_is_written_is_read_again_also_after_a_remount",
    "test_mount_posix.py::test_private_and_shared_mappings",
    "test_mount_posix.py::test_rename_and_its_flags",
    "test_mount_dirty.py::test_seek_finds_data_written_a_moment_ago",
    "test_mount_dirty.py::test_what_was_dirty_is_written_when_the_mount_goes_away",
)
# All that is about mounts and not about emulated SSDs or images of META in a file.
MOUNTS = ("posix", "rules", "acl", "dirty", "tree")
# Too much for a processor that is emulated.
LEFT_OUT = "100_000 or 20_000 or full_filesystem"
SMOKE_SECONDS = 150.0
ALL_SECONDS = 2400.0


def run_in_guest(setup: Setup, seconds: float, *words: str, option: str = "") -> str:
    """Run pytest on the set-up's devices, all mounts with an option; what it said."""
    given = [f"STREAMFS_TEST_DATA={setup.data}", f"STREAMFS_TEST_META={setup.meta}"]
    given += [f"STREAMFS_BIN={PAYLOAD}/bin", "PYTHONDONTWRITEBYTECODE=1"]
    given += [f"STREAMFS_TEST_OPTIONS={option}"]
    options = ["-q", "-p", "pytest_fuse", "-o", "cache_dir=/tmp/cache"]
    options += ["--basetemp=/var/tmp/pytest"]  # not in /tmp: META in memory would be volatile
    command = ["env", "-C", PAYLOAD, *given, "python3", "-m", "pytest", *options, *words]
    return setup.machine.run(*command, seconds=seconds).out


def test_a_few_integration_tests_pass(setup: Setup) -> None:
    said = run_in_guest(setup, SMOKE_SECONDS, *(f"{FOLDER}/{name}" for name in SMOKE))
    assert f"{len(SMOKE)} passed" in said, said


@pytest.mark.long
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_integration_tests_of_mounts_pass(setup: Setup, transport: str) -> None:
    files = [f"{FOLDER}/test_mount_{name}.py" for name in MOUNTS]
    words = [*files, "-k", f"not ({LEFT_OUT})"]
    said = run_in_guest(setup, ALL_SECONDS, *words, option=TRANSPORTS[transport])
    assert " passed" in said, said
    print(f"{setup.name}, {transport}: {said.splitlines()[-1]}")  # noqa: T201
