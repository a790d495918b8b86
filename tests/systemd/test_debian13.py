"""The project on Debian 13: built from source there, its packages used in a system without it.

Takes a network and ten minutes. The system goes away with the test.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.systemd import debian
from tests.systemd.packages import USE, USE_DAEMON
from tests.systemd.world import ROOT, execute

pytestmark = pytest.mark.long

SUITE = "trixie"
BUILD_SECONDS = 3600
PACK = """
set -e
cd /src/streamfs/build/release
cpack --config CPackConfig.cmake -B /src/debs \
  -D 'CPACK_COMPONENTS_ALL=core;libstream;python;source;classifierd'
"""
INSTALL = """
set -e
apt-get -qq update
DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install "$@"
mkdir -p /srv
touch /media/debs/since
"""
DAEMON = "classifierd"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Some gigabytes, which do not outlive the test."""
    path = tmp_path_factory.mktemp("debian13")
    if reason := debian.why_not(SUITE, path):
        pytest.skip(reason)
    yield path
    execute("rm", "-rf", "--one-file-system", path)


@pytest.fixture(scope="module")
def base(folder: Path) -> Path:
    """A small Debian 13."""
    return debian.make(SUITE, folder)


@pytest.fixture(scope="module")
def built(base: Path, folder: Path) -> Path:
    """The packages, as Debian 13's own compiler and Python make them."""
    system = debian.Copy(base, folder / "built")
    source = system.upper / "src/streamfs"
    source.mkdir(parents=True)
    # What is deleted and not yet committed so is none of it, though git lists it.
    script = (
        'cd "$1" && git ls-files -z --cached --others --exclude-standard | '
        'rsync -a --from0 --files-from=- --ignore-missing-args . "$2"'
    )
    execute("sh", "-c", script, "sh", ROOT, source)
    system.run("/src/streamfs/scripts/setup", seconds=BUILD_SECONDS)
    system.run("sh", "-c", PACK, seconds=BUILD_SECONDS)
    return system.upper / "src/debs"


def system_with(base: Path, folder: Path, debs: list[Path]) -> debian.Copy:
    """A system in which apt has installed packages, and found all that they need."""
    system = debian.Copy(base, folder)
    for package in debs:
        system.put(package, f"media/debs/{package.name}")
    system.run("sh", "-c", INSTALL, "sh", *(f"/media/debs/{package.name}" for package in debs))
    return system


def test_packages_install_work_and_purge(base: Path, built: Path, folder: Path) -> None:
    debs = [path for path in built.glob("*.deb") if not path.name.startswith(DAEMON)]
    assert len(debs) == 4
    said = system_with(base, folder / "used", debs).run("sh", "-c", USE).stdout.splitlines()
    assert said.pop(0).endswith("of free space trimmed")
    assert said.pop(0) == "kept"
    assert said == [], "left behind"


def test_the_learning_daemon_is_a_package_that_brings_its_libraries(
    base: Path, built: Path, folder: Path
) -> None:
    system = system_with(base, folder / "daemon", sorted(built.glob("*.deb")))
    assert system.run("sh", "-c", USE_DAEMON).stdout == "done\n"
