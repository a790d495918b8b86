"""The packages on bare Debian 12 and 13: built for each, installed by apt, used, purged.

The packages of this machine's own Debian are those of the release build; the others are built from
source in a copy of their Debian. Takes a network and half an hour. The systems end with the test.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.packages import debian
from tests.packages.walk import first_hour, script
from tests.systemd.packages import USE
from tests.systemd.world import BUILD, execute

pytestmark = pytest.mark.long

SUITES = ("bookworm", "trixie")
BUILD_SECONDS = 3600
APT_SECONDS = 1800
COMPONENTS = "CPACK_COMPONENTS_ALL=core;doc;libstream;python;source;classifierd;lab"
COUNT = 7
OF_PYTHON = ("classifierd", "streamfs-lab")
# The modules are the packages'; the rest of the tree is there for the tests alone.
TESTS = """
cd /src/streamfs
export PYTHONPATH=/usr/lib/streamfs/classifierd:/src/streamfs STREAMFS_BIN=/usr/bin
exec /usr/bin/python3 -m pytest -q -m "not long" classifierd/tests lab/python/tests
"""


@pytest.fixture(scope="module", params=SUITES)
def suite(request: pytest.FixtureRequest) -> str:
    """The Debian."""
    return str(request.param)


@pytest.fixture(scope="module")
def folder(suite: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Some gigabytes, which do not outlive the test."""
    path = tmp_path_factory.mktemp(suite)
    try:
        if reason := debian.why_not(suite, path):
            pytest.fail(f"no bare {suite} can be made: {reason}")
        yield path
    finally:
        execute("rm", "-rf", "--one-file-system", path, seconds=600)


@pytest.fixture(scope="module")
def base(suite: str, folder: Path) -> Path:
    """The bare system."""
    return debian.make(suite, folder)


def built_inside(base: Path, folder: Path) -> Path:
    """The folder of packages that a copy of the bare system makes from the sources."""
    system = debian.Copy(base, folder / "built")
    system.put_sources()
    system.run("/src/streamfs/scripts/setup", seconds=BUILD_SECONDS)
    configuration = "/src/streamfs/build/release/CPackConfig.cmake"
    system.run(
        "cpack", "--config", configuration, "-D", COMPONENTS, "-B", "/src/debs",
        seconds=BUILD_SECONDS,
    )  # fmt: skip
    return system.upper / "src/debs"


@pytest.fixture(scope="module")
def debs(suite: str, base: Path, folder: Path) -> list[Path]:
    """The packages, made for the suite."""
    if suite == debian.codename():
        made = folder / "debs"
        configuration = BUILD / "CPackConfig.cmake"
        execute("cpack", "--config", configuration, "-D", COMPONENTS, "-B", made, seconds=600)
    else:
        made = built_inside(base, folder)
    found = sorted(made.glob("*.deb"))
    assert len(found) == COUNT, found
    return found


def names_of(debs: list[Path]) -> list[str]:
    """The names of packages."""
    return [path.name.partition("_")[0] for path in debs]


def system_with(base: Path, folder: Path, debs: list[Path], *more: str) -> debian.Copy:
    """A system in which apt has installed packages, and found all that they need."""
    system = debian.Copy(base, folder)
    for package in debs:
        system.put(package, f"media/debs/{package.name}")
    (system.upper / "srv").mkdir(exist_ok=True)
    files = [f"/media/debs/{package.name}" for package in debs]
    system.run("sh", "-c", script("install"), "install", *files, *more, seconds=APT_SECONDS)
    (system.upper / "media/debs/since").touch()
    return system


@pytest.fixture(scope="module")
def installed(
    suite: str, base: Path, folder: Path, debs: list[Path], sizes: dict[str, dict[str, int]]
) -> debian.Copy:
    """A system with all packages; sqlite3 is what README.md's commands use beside them."""
    before = debian.Copy(base, folder / "before").installed_sizes()
    system = system_with(base, folder / "installed", debs, "sqlite3")
    after = system.installed_sizes()
    names = names_of(debs)
    brought = {name: size for name, size in after.items() if name not in {*before, *names}}
    sizes[suite] = {name: after[name] for name in names}
    sizes[suite]["from Debian"] = sum(brought.values())
    sizes[suite]["  packages of it (number)"] = len(brought)
    return system


def test_packages_install_work_and_purge(base: Path, debs: list[Path], folder: Path) -> None:
    some = [path for path in debs if not path.name.startswith(OF_PYTHON)]
    said = system_with(base, folder / "some", some).run("sh", "-c", USE).stdout.splitlines()
    assert said.pop(0).endswith("of free space trimmed")
    assert said.pop(0) == "kept"
    assert said == [], "left behind"


def test_the_first_hour_needs_nothing_but_the_packages_and_leaves_nothing(
    installed: debian.Copy, debs: list[Path], folder: Path
) -> None:
    system = installed.on_top(folder / "hour")
    said = system.run("bash", "-c", first_hour(), seconds=600).stdout
    assert re.findall("^left: .*", said, re.M) == []
    purged = system.run("sh", "-c", script("purge"), "purge", *names_of(debs), seconds=600).stdout
    assert re.findall("^left: .*", purged, re.M) == []


def test_the_daemon_passes_its_tests_with_debians_libraries(
    installed: debian.Copy, folder: Path
) -> None:
    system = installed.on_top(folder / "tests")
    system.put_sources()
    system.run("sh", "-c", script("install"), "install", "python3-pytest", seconds=APT_SECONDS)
    assert " passed" in system.run("sh", "-c", TESTS, seconds=1800).stdout.splitlines()[-1]
