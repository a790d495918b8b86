"""The Debian packages: installed, used and purged in a copy of this machine's system."""

import shutil
from pathlib import Path

import pytest
from tests.systemd.world import BUILD, ROOT, World, execute, why_not

LIBFUSE = ROOT / "build/deps"

USE = """
set -e
dpkg --force-unsafe-io -i /media/debs/*.deb >/dev/null
test "$(dpkg-query -W -f '${Status}' streamfs libstream)" = \
  "install ok installedinstall ok installed"
id classifierd >/dev/null
test -d /run/streamfs
cd /srv
mkdir mnt
ssd-sim create /srv/ssd --size 64M --streams 4 --op 0.1 >/dev/null
mkfs.streamfs --meta /srv/META emu:/srv/ssd >/dev/null
mount -t streamfs -o meta=/srv/META emu:/srv/ssd /srv/mnt
echo kept >/srv/mnt/file
streamctl sync /srv/mnt
streamctl trim /srv/mnt
umount /srv/mnt
fsck.streamfs -n -f --meta /srv/META emu:/srv/ssd >/dev/null
mount -t fuse.streamfs -o meta=/srv/META emu:/srv/ssd /srv/mnt
cat /srv/mnt/file
umount /srv/mnt
fsck.streamfs -n -f --meta /srv/META emu:/srv/ssd >/dev/null
mkdir -p /etc/streamfs/srv /var/lib/classifierd
stream-run -- true
dpkg --force-unsafe-io --remove streamfs >/dev/null
test -d /etc/streamfs
test ! -e /usr/bin/streamctl
dpkg --force-unsafe-io --purge streamfs libstream streamfs-source >/dev/null
test ! -e /etc/streamfs
find /usr /etc -xdev -newer /media/debs/since -name '*stream*' -print
"""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages of the release build."""
    folder = tmp_path_factory.mktemp("packages")
    configuration = BUILD / "CPackConfig.cmake"
    execute("cpack", "--config", configuration, "-B", folder)
    return folder


def test_a_package_says_what_it_needs(packages: Path) -> None:
    core, library = (next(packages.glob(f"{name}_*.deb")) for name in ("streamfs", "libstream"))
    needs = execute("dpkg-deb", "-f", core, "Depends").stdout
    for name in ("libc6", "liburing", "libsystemd0", "libblkid1", "libnvme1"):
        assert name in needs
    assert "libc6" in execute("dpkg-deb", "-f", library, "Depends").stdout
    listed = execute("dpkg-deb", "-c", core).stdout
    for path in (
        "/usr/sbin/mount.fuse.streamfs -> mount.streamfs",
        "/usr/sbin/fsck.streamfs",
        "/usr/lib/systemd/system/streamfs@.service",
        "/usr/share/doc/streamfs/copyright",
        "/usr/share/doc/streamfs/README.libfuse.md",
    ):
        assert path in listed


def test_the_programs_can_be_linked_with_another_libfuse(packages: Path, tmp_path: Path) -> None:
    """What is linked statically is LGPL; the shipped source names whichever is given."""
    if not (LIBFUSE / "lib/libfuse3.a").exists():
        pytest.skip("libfuse is the distribution's here, and linked shared")
    execute("dpkg-deb", "-x", next(packages.glob("streamfs-source_*.deb")), tmp_path)
    source = tmp_path / "usr/src/streamfs"
    libfuse = source / "third_party/libfuse-source.tar.gz"
    execute("tar", "-C", tmp_path, "-xf", libfuse)
    # As it was built, our change in it.
    patch = (ROOT / "third_party/libfuse-3.18.3-uring-async-reply.patch").read_text()
    added = [line[1:] for line in patch.splitlines() if line.startswith("+\t")]
    assert all(line in (tmp_path / "source/lib/fuse_uring.c").read_text() for line in added)
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


def test_packages_install_work_and_purge(
    packages: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("system")
    if reason := why_not(folder):
        pytest.skip(reason)
    bare = World(folder, installed=False)
    debs = bare.upper / "media/debs"
    debs.mkdir(parents=True)
    (debs / "since").touch()
    for package in packages.glob("*.deb"):
        (debs / package.name).write_bytes(package.read_bytes())
    said = bare.chrooted("sh", "-c", USE).stdout.splitlines()
    assert said.pop(0).endswith("of free space trimmed")
    assert said.pop(0) == "kept"
    assert said == [], "left behind"
