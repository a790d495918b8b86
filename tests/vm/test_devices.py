"""Facts that only a real controller and real NVDIMMs show: where writes land, what META is."""

import re
from pathlib import Path

import pytest
from tests.vm.guest import DAX_FOLDER, PMEM, TRANSPORTS, Setup
from tests.vm.machine import HANDLES, RECLAIM_UNIT_BYTES

LABELS = HANDLES - 1  # and files that have none
UNIT_BYTES = 64 << 10
WRITE_LABELLED = """
cd $0
mkdir $1
setfattr -n user.streamfs.vstream -v label$1 $1
head -c $2 /dev/urandom >$1/f
sync $1/f
"""
COPY_IN = """
cd $0
tar -C /payload -cf - tests lib | tar -xf -
cp /payload/bin/streamctl big
ln big link
mv tests moved
"""
COMPARE = """
cd $0
diff -r /payload/tests moved
diff -r /payload/lib lib
cmp /payload/bin/streamctl link
"""


def write_labelled(setup: Setup) -> list[int]:
    """A file of a different size for each label, on DATA when this returns; the sizes."""
    sizes = [(2 + label) * UNIT_BYTES for label in range(LABELS)]
    for label, size in enumerate(sizes):
        setup.machine.run("bash", "-ec", WRITE_LABELLED, setup.point, str(label), str(size))
    return sizes


def test_each_vstream_lands_on_its_own_reclaim_unit_handle(setup: Setup) -> None:
    setup.mkfs("--no-meta-log")  # which would share the last handle
    before = setup.writable()
    assert len(before) == HANDLES
    setup.mount()
    sizes = write_labelled(setup)
    setup.unmount()
    setup.assert_sound()
    pairs = zip(before, setup.writable(), strict=True)
    landed = [(b - a) % RECLAIM_UNIT_BYTES for b, a in pairs]
    assert setup.device()["pstreams"] == HANDLES
    # Data without a label, the filesystem's own blocks included, stays on the first.
    assert sorted(landed[1:]) == sizes, landed
    assert landed[0] > 0


def test_meta_is_persistent_and_lines_are_written_back_to_the_memory_controller(
    setup: Setup,
) -> None:
    setup.mount()
    status = setup.status()
    assert status["meta_class"] == "persistent"
    mapped = {"passthrough": "devdax", "block": "DAX file"}[setup.name]
    assert status["meta_medium"] == f"{mapped}, memory_controller, clwb"


@pytest.mark.parametrize("setup", ["passthrough"], indirect=True)
def test_a_devdax_device_is_as_large_as_sysfs_says(setup: Setup) -> None:
    setup.mount()
    told = setup.machine.run("cat", f"/sys/bus/dax/devices/{Path(setup.meta).name}/size").out
    assert setup.growth()["before"]["meta_bytes"] == int(told)


@pytest.mark.parametrize("setup", ["block"], indirect=True)
def test_a_file_without_dax_is_not_taken_for_persistent(setup: Setup) -> None:
    """The same file system, its pages cached: MAP_SYNC is refused, and that is seen."""
    run = setup.machine.run
    run("umount", DAX_FOLDER)
    run("mount", "-o", "dax=never", PMEM, DAX_FOLDER)
    try:
        setup.mount()
        assert setup.status()["meta_class"] == "synced"
        setup.unmount()
        setup.assert_sound()
    finally:
        run("umount", DAX_FOLDER)
        setup.power_on()


UDEV = """
mkdir -p /run/udev/rules.d
cp /payload/65-streamfs.rules /run/udev/rules.d
udevadm test --action=add "$(udevadm info --query=path --name="$0")" 2>&1
"""


@pytest.mark.parametrize("setup", ["passthrough"], indirect=True)
def test_fstab_can_wait_for_both_devices(setup: Setup) -> None:
    """systemd knows only those character devices that a rule of udev tags."""
    for device in (setup.data.removeprefix("nvme:fdp:"), setup.meta):
        said = setup.machine.run("sh", "-ec", UDEV, device).out
        assert re.search(r"\bTAGS=:systemd:|: tag: .*systemd", said), said


def test_contents_are_there_after_a_remount(setup: Setup) -> None:
    """The content is written over one kernel transport and read over the other, each once."""
    ways = list(TRANSPORTS.items())
    if setup.name == "block":
        ways.reverse()
    for (transport, option), script in zip(ways, (COPY_IN, COMPARE), strict=True):
        setup.mount(option)
        assert setup.status()["kernel_transport"] == transport
        setup.machine.run("bash", "-ec", script, setup.point)
        setup.unmount()
        setup.assert_sound()
