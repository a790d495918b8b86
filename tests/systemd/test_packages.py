"""The Debian packages: installed, used and purged in a copy of this machine's system.

The system may lack the libraries that classifierd needs, so tests/packages installs that package.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.packages.walk import first_hour
from tests.systemd.packages import USE
from tests.systemd.world import BUILD, ROOT, World, execute, why_not

LIBFUSE = ROOT / "build/deps"


COMPONENTS = ("core", "doc", "libstream", "python", "source", "classifierd", "lab")
# A package that carries a library of its own is larger than this at once.
DAEMON_KIB_MAX = 2048
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages of the release build."""
    folder = tmp_path_factory.mktemp("packages")
    every = f"CPACK_COMPONENTS_ALL={';'.join(COMPONENTS)}"
    execute("cpack", "--config", BUILD / "CPackConfig.cmake", "-D", every, "-B", folder)
    return folder


def field(package: Path, name: str) -> str:
    """A field of a package's control file."""
    return execute("dpkg-deb", "-f", package, name).stdout.strip()


def test_a_package_says_what_it_needs(packages: Path) -> None:
    core, library = (next(packages.glob(f"{name}_*.deb")) for name in ("streamfs", "libstream"))
    needs = field(core, "Depends")
    for name in ("libc6", "liburing", "libsystemd0", "libblkid1", "libnvme1"):
        assert name in needs
    assert "libc6" in field(library, "Depends")
    listed = execute("dpkg-deb", "-c", core).stdout
    for path in (
        "/usr/sbin/mount.fuse.streamfs -> mount.streamfs",
        "/usr/sbin/fsck.streamfs",
        "/usr/lib/systemd/system/streamfs@.service",
        "/usr/share/doc/streamfs/copyright",
        "/usr/share/doc/streamfs/README.libfuse.md",
    ):
        assert path in listed


def test_the_daemon_needs_debians_libraries_and_carries_none(packages: Path) -> None:
    daemon = next(packages.glob("classifierd_*.deb"))
    needs = field(daemon, "Depends")
    for name in ("python3-numpy", "python3-sklearn", "python3-prometheus-client", "libfmt"):
        assert name in needs
    assert "python3-matplotlib" in field(daemon, "Recommends")
    assert int(field(daemon, "Installed-Size")) < DAEMON_KIB_MAX
    listed = execute("dpkg-deb", "-c", daemon).stdout
    assert "/usr/lib/streamfs/classifierd/classifierd/cli.py" in listed
    assert "streamfs_lab" not in listed
    assert "direct_url.json" not in listed, "it names the folder that the package was built in"


def test_the_lab_is_a_package_of_its_own(packages: Path) -> None:
    lab = next(packages.glob("streamfs-lab_*.deb"))
    assert "classifierd (= " in field(lab, "Depends")
    assert int(field(lab, "Installed-Size")) < DAEMON_KIB_MAX
    listed = execute("dpkg-deb", "-c", lab).stdout
    for path in ("bin/streamfs-lab", "lib/streamfs/classifierd/streamfs_lab/cli.py"):
        assert f"/usr/{path}" in listed
    assert "/classifierd/classifierd/" not in listed


def test_every_link_in_the_packaged_documents_leads_to_a_file(
    packages: Path, tmp_path: Path
) -> None:
    execute("dpkg-deb", "-x", next(packages.glob("streamfs-doc_*.deb")), tmp_path)
    folder = tmp_path / "usr/share/doc/streamfs"
    pages = list(folder.rglob("*.md"))
    links = [(page, link) for page in pages for link in LINK.findall(page.read_text())]
    assert (folder / "README.md", "OPERATIONS.md") in links
    assert (folder / "DESIGN.md", "design/metadata.md") in links
    assert [each for each in links if not (each[0].parent / each[1]).exists()] == []
    assert "docs/" not in (folder / "FAQ.md").read_text()
    for name in ("examples/libstream_label.c", "grafana/streamfs.json", "pictures/report.png"):
        assert (folder / name).is_file(), name


def test_the_readme_has_commands_for_the_first_hour_with_packages() -> None:
    """tests/packages runs them; a README without them would be found there after an hour."""
    lines = first_hour().splitlines()
    for command in ("mkfs.streamfs --meta", "streamfs emu:", "classifierd run", "fsck.streamfs"):
        assert [line for line in lines if line.startswith(command)], command
    with pytest.raises(AssertionError, match="no commands"):
        first_hour("# streamfs\n")


def test_the_programs_can_be_linked_with_another_libfuse(packages: Path, tmp_path: Path) -> None:
    """The statically linked libfuse is LGPL; the shipped source takes whichever is given."""
    if not (LIBFUSE / "lib/libfuse3.a").exists():
        pytest.skip("libfuse is the distribution's here, and linked shared")
    execute("dpkg-deb", "-x", next(packages.glob("streamfs-source_*.deb")), tmp_path)
    source = tmp_path / "usr/src/streamfs"
    libfuse = source / "third_party/libfuse-source.tar.gz"
    execute("tar", "-C", tmp_path, "-xf", libfuse)
    # As it was built, our change in it.
    patch = (ROOT / "third_party/libfuse-3.18.3-uring-async-reply.patch").read_text()
    added = [line[1:] for line in patch.splitlines() if line.startswith("+\t")]
    changed = [line.split()[1] for line in patch.splitlines() if line.startswith("+++ ")]
    texts = [(tmp_path / "source" / name).read_text() for name in changed]
    assert all(any(line in text for text in texts) for line in added)
    mine = tmp_path / "mine"
    shutil.copytree(LIBFUSE, mine)
    pc = mine / "lib/pkgconfig/fuse3.pc"
    pc.write_text(pc.read_text().replace(str(LIBFUSE), str(mine)))
    out = tmp_path / "out"
    words: list[str | Path] = ["-S", source, "-B", out, "-G", "Ninja", "-DSTREAMFS_TESTS=OFF"]
    execute("cmake", *words, f"-DSTREAMFS_DEPS_PREFIX={mine}")
    linked = execute("ninja", "-C", out, "-t", "commands", "streamfs").stdout.splitlines()[-1]
    assert f" {mine}/lib/libfuse3.a" in linked
    assert str(LIBFUSE) not in linked


def bare_with(folder: Path, *debs: Path) -> World:
    """A copy of this machine's system without streamfs, and packages in /media/debs."""
    if reason := why_not(folder):
        pytest.skip(reason)
    bare = World(folder, installed=False)
    media = bare.upper / "media/debs"
    media.mkdir(parents=True)
    (media / "since").touch()
    for package in debs:
        (media / package.name).write_bytes(package.read_bytes())
    return bare


def test_packages_install_work_and_purge(
    packages: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    of_python = ("classifierd_", "streamfs-lab_")
    debs = [path for path in packages.glob("*.deb") if not path.name.startswith(of_python)]
    bare = bare_with(tmp_path_factory.mktemp("system"), *debs)
    said = bare.chrooted("sh", "-c", USE).stdout.splitlines()
    assert said.pop(0).endswith("of free space trimmed")
    assert said.pop(0) == "kept"
    assert said == [], "left behind"


def test_a_daemon_whose_modules_are_gone_can_be_removed(tmp_path: Path) -> None:
    script = (ROOT / "cmake/debian/classifierd/prerm").read_text()
    there = tmp_path / "there"
    (there / "classifierd/__pycache__").mkdir(parents=True)
    for folder in (there, tmp_path / "gone"):
        here = script.replace("/usr/lib/streamfs/classifierd", str(folder))
        assert str(folder) in here
        execute("sh", "-c", here, "prerm", "remove")
    assert (there / "classifierd").is_dir()
    assert not (there / "classifierd/__pycache__").exists()


def errors_of(*packages: Path) -> list[str]:
    """The lines that lintian calls errors."""
    words = ("lintian", "--allow-root", "--fail-on", "none", "--tag-display-limit", "0")
    said = execute(*words, *packages, seconds=600).stdout
    return [line for line in said.splitlines() if line.startswith("E:")]


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(("streamfs", "libstream"), id="programs"),
        pytest.param(("classifierd", "streamfs-lab", "streamfs-doc"), id="daemon"),
        pytest.param(("python3-libstream", "streamfs-source"), id="more", marks=pytest.mark.long),
    ],
)
def test_lintian_finds_no_errors(packages: Path, names: tuple[str, ...]) -> None:
    if shutil.which("lintian") is None:
        pytest.skip("lintian is not installed")
    assert errors_of(*(next(packages.glob(f"{name}_*.deb")) for name in names)) == []


def test_an_installation_keeps_to_its_folder_and_prefix(tmp_path: Path) -> None:
    words = ["cmake", "--install", str(BUILD), "--prefix", "/opt/elsewhere"]
    environment = {**os.environ, "DESTDIR": str(tmp_path)}
    subprocess.run(words, env=environment, check=True, capture_output=True, timeout=120)
    assert [each.name for each in tmp_path.iterdir()] == ["opt"]
    at = tmp_path / "opt/elsewhere"
    for name in ("bin/streamfs", "bin/ssd-sim", "sbin/mkfs.streamfs", "lib/systemd/system"):
        assert (at / name).exists(), name
    assert execute(at / "bin/streamctl", "--version").returncode == 0
