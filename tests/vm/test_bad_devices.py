"""A kernel's own devices in bad states: refused with a sentence, or used in a way that is left."""

import re
import time

import pytest
from tests.vm.guest import Setup
from tests.vm.machine import HANDLES, LBA_BYTES, SSD_BYTES

KEPT = "cd $0 && head -c 300000 /dev/urandom >kept && sync kept && cksum <kept"
CKSUM = "cksum <$0/kept"
# Writes and reads until something fails; says what, and whether names can still be read.
UNTIL_IT_FAILS = """
cd $0
for i in $(seq 2000); do
  head -c 100000 /dev/urandom >new 2>/tmp/said && sync new 2>>/tmp/said || break
done
cat /tmp/said
touch mark
stat kept >/dev/null && echo names
"""
DEGRADED_SECONDS = 30.0
GONE = "for i in $(seq 80); do pgrep -x streamfs >/dev/null || exit 0; sleep 1; done; exit 1"
# While it writes and reads, with an eye on each error.
BUSY = """
cd $0
for i in $(seq 60); do
  head -c 1000000 /dev/urandom >file$((i % 8))
  sync file$((i % 8))
  cmp file$((i % 8)) file$((i % 8))
done
echo all
"""
# An entry of an MBR, from the first MiB on, 64 MiB.
PARTITION = """
import struct, sys
mbr = bytearray(512)
struct.pack_into("<8xII", mbr, 446, 2048, 131072)
mbr[450], mbr[510], mbr[511] = 0x83, 0x55, 0xAA
open(sys.argv[1], "r+b").write(mbr)
"""
# --long looks at the effect on Linux's own block layer, too.
COMMANDS_FIRST = pytest.mark.parametrize(
    "setup", ["passthrough", pytest.param("block", marks=pytest.mark.long)], indirect=True
)
RESETS = "sleep 0.3; for i in 1 2 3 4 5; do echo 1 >$0/reset_controller; sleep 0.4; done"


def test_libnvme_tells_every_namespace_and_the_way_to_it(setup: Setup) -> None:
    (seen,) = [each for each in setup.devices() if each["serial"] == setup.name]
    assert seen["fdp"] is True
    (controller,) = seen["controllers"]
    assert controller["transport"] == "pcie"
    assert controller["state"] == "live"
    (space,) = seen["namespaces"]
    assert space["block"] == setup.namespace
    assert space["capacity_bytes"] == SSD_BYTES
    assert space["block_bytes"] == LBA_BYTES[setup.name]
    assert space["obstacle"] is None
    told = setup.device()
    assert told["topology"]["nqn"] == seen["nqn"]
    assert [path["controller"] for path in told["topology"]["paths"]] == [controller["controller"]]
    setup.mount()
    (seen,) = [each for each in setup.devices() if each["serial"] == setup.name]
    assert seen["namespaces"][0]["obstacle"] == "in use"


@pytest.mark.parametrize("setup", ["passthrough"], indirect=True)
def test_a_partitioned_namespace_is_refused_for_its_character_device(setup: Setup) -> None:
    run = setup.machine.run
    run("python3", "-c", PARTITION, setup.namespace)
    run("blockdev", "--rereadpt", setup.namespace)
    try:
        words = ["mkfs.streamfs", "-f", "--meta", setup.meta, setup.data]
        refused = run(*words, check=False)
        assert refused.code != 0
        assert f"is partitioned ({setup.namespace[5:]}p1)" in refused.err, refused.err
        part = f"{setup.namespace}p1"
        assert "a partition has no write streams" in run("streamctl", "device", part).out
    finally:
        run("dd", "if=/dev/zero", f"of={setup.namespace}", "bs=512", "count=1", "conv=fsync")
        run("blockdev", "--rereadpt", setup.namespace)


def test_with_io_uring_disabled_the_rest_serves_and_status_says_why(setup: Setup) -> None:
    run = setup.machine.run
    run("sysctl", "-q", "kernel.io_uring_disabled=2")
    try:
        setup.mount()
        status = setup.status()
        why = "io_uring is disabled here (sysctl kernel.io_uring_disabled = 2)"
        assert why in status["device_transport"], status["device_transport"]
        assert status["kernel_transport"] == "/dev/fuse"
        assert why in status["kernel_transport_reason"], status["kernel_transport_reason"]
        if setup.name == "passthrough":  # a command says its placement, whichever way it goes
            assert status["device_transport"].startswith("ioctl, one command at a time")
            assert status["pstreams"] == HANDLES
        else:
            assert status["device_transport"].startswith("system calls")
            assert status["pstreams"] == 1
            assert "need io_uring" in status["device_mechanism_reason"]
        kept = run("bash", "-ec", KEPT, setup.point).out
        setup.unmount()
        setup.assert_sound()
        setup.mount()
        assert run("bash", "-ec", CKSUM, setup.point).out == kept
    finally:
        run("sysctl", "-q", "kernel.io_uring_disabled=0")


@pytest.mark.long
def test_nothing_fails_while_the_controller_is_reset(setup: Setup) -> None:
    """The kernel cancels what is in flight; block devices' requests it sends again itself."""
    run = setup.machine.run
    setup.mount()
    kept = run("bash", "-ec", KEPT, setup.point).out
    both = f"({RESETS.replace('$0', '$1')}) & {BUSY} wait"
    said = run("bash", "-ec", both, setup.point, setup.controller).out
    assert said.splitlines()[-1] == "all"
    status = setup.status()
    assert not status["degraded_read_only"], status["degraded_reason"]
    assert run("bash", "-ec", CKSUM, setup.point).out == kept
    setup.unmount()
    setup.assert_sound()


@COMMANDS_FIRST
def test_a_device_that_vanishes_is_an_error_and_a_read_only_mount_never_a_hang(
    setup: Setup,
) -> None:
    run = setup.machine.run
    setup.mount()
    kept = run("bash", "-ec", KEPT, setup.point).out
    address = run("readlink", "-f", f"{setup.controller}/device").out.strip()
    run("bash", "-ec", "echo 1 >$0/remove", address)
    try:
        said = run("bash", "-c", UNTIL_IT_FAILS, setup.point, seconds=60).out
        assert "nput/output error" in said or "Read-only file system" in said, said
        assert said.splitlines()[-1] == "names"
        deadline = time.monotonic() + DEGRADED_SECONDS
        while not setup.status()[
            "degraded_read_only"
        ]:  # with the next flush, which comes by itself
            assert time.monotonic() < deadline, setup.status()
        assert setup.status()["degraded_reason"]
        refused = run("touch", f"{setup.point}/more", check=False)
        assert "Read-only file system" in refused.err
        run("umount", setup.point, check=False, seconds=60)
    finally:
        run("umount", "-l", setup.point, check=False)
        run("bash", "-ec", "echo 1 >/sys/bus/pci/rescan")
        setup.machine.lose_controllers()
        setup.machine.find_controllers()
    # The server that lost its device asks it for half a minute before it lets go of META.
    run("bash", "-ec", GONE, seconds=90)
    setup.mount()
    assert run("bash", "-ec", CKSUM, setup.point).out == kept
    setup.unmount()
    setup.assert_sound()


READ = "echo 3 >/proc/sys/vm/drop_caches; cat $0/kept >/dev/null"
FORMAT_IN_USE = re.compile(r"LBA Format +(\d+) .*\(in use\)")
LOOK_SECONDS = 60.0


@COMMANDS_FIRST
def test_a_namespace_formatted_under_its_mount_is_neither_read_nor_written(setup: Setup) -> None:
    """To blocks of another size, which each command for it would count in."""
    run = setup.machine.run
    told = run("nvme", "id-ns", "-H", setup.namespace).out
    before = FORMAT_IN_USE.search(told)
    assert before, told
    sizes = dict(re.findall(r"LBA Format +(\d+) : Metadata Size: 0 .*?Data Size: (\d+)", told))
    other = next(each for each, size in sizes.items() if size != sizes[before[1]])
    setup.mount()
    run("bash", "-ec", KEPT, setup.point)
    try:
        done = run("nvme", "format", "--force", f"--lbaf={other}", setup.namespace, check=False)
        assert "Success formatting" in done.out + done.err, done  # it goes on to ask for more
        deadline = time.monotonic() + LOOK_SECONDS
        while not setup.status()["degraded_read_only"]:
            run("bash", "-c", UNTIL_IT_FAILS.replace("2000", "3"), setup.point, seconds=60)
            assert time.monotonic() < deadline, setup.status()
        read = run("bash", "-c", READ, setup.point, check=False)
        assert "nput/output error" in read.err, (read, setup.status()["degraded_reason"])
        assert "Read-only" in run("touch", f"{setup.point}/more", check=False).err
        run("umount", setup.point, check=False, seconds=60)
        assert "holds no streamfs" in setup.fsck("-n").err
    finally:
        run("umount", "-l", setup.point, check=False)
        run("nvme", "format", "--force", f"--lbaf={before[1]}", setup.namespace)
