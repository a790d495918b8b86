"""Python's own test suite, as Debian packages it, gives the same results under the preload library.

Both runs are on a streamfs mount, one beside the other; under stream-run each file opened for
writing is labelled, so that the library does all it can do. Results are compared test by test.
"""

import json
import signal
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from tests.integration.libstream.harness import STREAM_RUN
from tests.integration.pairs import BIN, Mount, Pair
from tests.integration.pairs import run as checked

PYTHON = "/usr/bin/python3"
# Modules that open, make, label, map, copy and remove files.
MODULES = ("test_fileio", "test_file", "test_tempfile", "test_shutil", "test_fcntl", "test_mmap")
MORE_MODULES = (
    *("test_os", "test_posix", "test_gzip", "test_dbm", "test_dbm_dumb", "test_fileinput"),
    *("test_glob", "test_filecmp", "test_linecache", "test_wave", "test_popen"),
    "test_univnewlines",
)
# Ends or depends on what is beside it: signals to groups of processes, idle processors, terminals.
UNSTEADY = ("test_concurrent_futures", "test_asyncio", "test_multiprocessing_*", "test_gdb")

pytestmark = pytest.mark.skipif(
    not list(Path("/usr/lib").glob("python3.*/test/libregrtest")),
    reason="Debian's libpython3.N-testsuite is not installed",
)


def start(mount: Mount, name: str, before: tuple[str, ...], *words: str) -> subprocess.Popen[str]:
    """Begin a run whose files are all in a folder of the mount."""
    folder = mount / name
    folder.mkdir()
    result = mount.point.parent / f"{name}.xml"
    out = (mount.point.parent / f"{name}.out").open("w")
    command = (*before, PYTHON, "-m", "test", "--junit-xml", result, "--tempdir", folder, *words)
    env = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "TMPDIR": str(folder), "HOME": str(folder)}
    with out:
        return subprocess.Popen(
            [str(word) for word in command],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            text=True,
        )


def outcomes(result: Path) -> dict[str, str]:
    """The result of each test: completed, skipped with its reason, failed with its message."""
    found = {}
    for case in ET.parse(result).getroot().iter("testcase"):
        told = [child for child in case if not child.tag.startswith("system-")]
        text = "".join(f" {child.tag}: {child.get('message') or ''}" for child in told)
        found[case.get("name", "")] = f"{case.get('result')}{text}"
    return found


def end(process: subprocess.Popen[str]) -> None:
    """Interrupted, it ends the workers that it started."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGINT)
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def both(mount: Mount, seconds: int, *words: str) -> tuple[dict[str, str], dict[str, str]]:
    """Run without and with, at once."""
    label = (str(STREAM_RUN), "--vstream", "upstream", "--")
    runs = {
        "plain": start(mount, "plain", (), *words),
        "hints": start(mount, "hints", label, *words),
    }
    try:
        for each in runs.values():
            each.wait(seconds)
    finally:
        for each in runs.values():
            end(each)
    plain, hinted = (outcomes(mount.point.parent / f"{name}.xml") for name in runs)
    codes = {name: each.returncode for name, each in runs.items()}
    assert codes["plain"] == codes["hints"], codes
    return plain, hinted


def written_as(mount: Mount, name: str) -> int:
    """Bytes that were written under a label."""
    told = json.loads(checked(BIN / "streamctl", "streams", mount.point, "--json").stdout)
    return sum(row["written_bytes"] for row in told["streams"] if row["name"] == name)


@pytest.mark.parametrize(
    ("modules", "tests"),
    [
        pytest.param(MODULES, 300, id="few"),
        pytest.param(MORE_MODULES, 500, id="more", marks=pytest.mark.long),
    ],
)
def test_pythons_tests_of_files_give_the_same_results_one_by_one(
    pair: Pair, modules: tuple[str, ...], tests: int
) -> None:
    mount = pair.mount()
    plain, hinted = both(mount, 240, *modules)
    assert hinted == plain
    assert sum(outcome == "completed" for outcome in plain.values()) > tests
    checked(BIN / "streamctl", "sync", mount.point)
    assert written_as(mount, "upstream") > 1 << 20, "the library was there"


@pytest.mark.long
def test_pythons_whole_test_suite_gives_the_same_results(pair: Pair) -> None:
    mount = pair.mount()
    words = ("-j2", "--timeout", "600", "-x", *UNSTEADY)
    plain, hinted = both(mount, 7200, *words)
    assert len(plain) > 20_000
    assert hinted == plain
