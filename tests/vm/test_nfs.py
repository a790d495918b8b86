"""A mount exported by knfsd: a client's files outlive the daemon behind the export.

Server and client are the guest, over its loopback. NFS version 3 has no state but file handles.
"""

from collections.abc import Callable, Iterator

import pytest
from tests.vm.guest import Setup
from tests.vm.machine import Machine

pytestmark = pytest.mark.long

CLIENT = "/mnt/nfs"
OPTIONS = "vers=3,nolock,hard,proto=tcp,mountproto=tcp,port=2049,mountport=20048,acregmax=1"
LINES = 100
END_SECONDS = 300.0
LOOPBACK = """
import fcntl, socket, struct
flags = struct.pack("16sh", b"lo", 1)  # IFF_UP
fcntl.ioctl(socket.socket(), 0x8914, flags)  # SIOCSIFFLAGS
"""
# Writes lines to a file that it keeps open, each durable before the next.
WRITER = """
import os, sys, time
fd = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
for line in range(int(sys.argv[2])):
    os.write(fd, b"%d\\n" % line)
    os.fsync(fd)
    time.sleep(.1)
os.rename(sys.argv[1], sys.argv[1] + ".done")
"""


@pytest.fixture(scope="module")
def server(machine: Machine) -> Iterator[Machine]:
    """Give the guest all that NFS needs, but no threads that serve it yet."""
    machine.run("modprobe", "-a", "nfsd", "nfs", "nfsv3")
    machine.run("python3", "-c", LOOPBACK)
    machine.run("mkdir", "-p", CLIENT, "/run/rpcbind", "/var/lib/nfs")
    machine.run("mount", "-t", "nfsd", "nfsd", "/proc/fs/nfsd")
    machine.run("rpcbind")
    machine.run("rpc.mountd", "--port", "20048")
    yield machine
    machine.run("bash", "-c", "kill $(pidof rpc.mountd rpcbind)", check=False)


@pytest.fixture
def exported(server: Machine) -> Iterator[Setup]:
    """A new filesystem, mounted, exported, and mounted again by NFS."""
    setup = Setup(server, "block")
    try:
        setup.mkfs()
        setup.mount()
        server.run("exportfs", "-o", "rw,no_root_squash,fsid=1", f"*:{setup.point}")
        server.run("rpc.nfsd", "4")
        server.run("mount", "-t", "nfs", "-o", OPTIONS, f"127.0.0.1:{setup.point}", CLIENT)
        yield setup
    finally:
        server.run("umount", "-f", "-l", CLIENT, check=False)
        server.run("rpc.nfsd", "0", check=False)
        server.run("exportfs", "-ua", check=False)
        setup.end()


def stop(setup: Setup) -> None:
    setup.unmount()


def kill(setup: Setup) -> None:
    setup.machine.run("bash", "-c", "kill -9 $(pidof streamfs)")
    setup.machine.run("umount", "-l", setup.point)


def lines_of(setup: Setup, path: str) -> list[int]:
    return [int(line) for line in setup.machine.run("cat", path).out.split()]


def wait_for(setup: Setup, test: str) -> None:
    script = f"until {test}; do sleep .1; done"
    setup.machine.run("timeout", str(END_SECONDS), "bash", "-c", script, seconds=END_SECONDS)


@pytest.mark.parametrize("end", [stop, kill])
def test_a_client_goes_on_when_the_daemon_is_restarted(
    exported: Setup, end: Callable[[Setup], None]
) -> None:
    run = exported.machine.run
    run("mkdir", "-p", f"{CLIENT}/a/b")
    name = "a/b/file"
    run("bash", "-c", f"echo before > {CLIENT}/a/kept && sync {CLIENT}/a/kept")
    exported.machine.start("block", "python3", "-c", WRITER, f"{CLIENT}/{name}", str(LINES))
    wait_for(exported, f"[ -s {exported.point}/{name} ]")
    run("rpc.nfsd", "0")  # as `systemctl stop nfs-server`: the client waits
    run("exportfs", "-f")
    assert 0 < len(lines_of(exported, f"{exported.point}/{name}")) < LINES
    end(exported)
    exported.mount()
    run("rpc.nfsd", "4")
    wait_for(exported, f"[ -e {CLIENT}/{name}.done ]")
    assert run("cat", f"{CLIENT}/a/kept").out == "before\n"
    assert lines_of(exported, f"{CLIENT}/{name}.done") == list(range(LINES))
    assert lines_of(exported, f"{exported.point}/{name}.done") == list(range(LINES))
