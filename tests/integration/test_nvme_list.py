"""streamctl device lists a machine's NVMe devices: a made /sys, and answers to Identify.

The rest is libnvme's, the one that is installed.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.integration.pairs import BIN, run

DEVICES_C = Path(__file__).parent / "nvme/devices.c"
GIB = 1 << 30
# /sys is a file system of its own to the command.
IN_SYS = 'mount -t tmpfs none /sys && cp -r "$0"/. /sys && exec env LD_PRELOAD="$1" "${@:2}"'


class Sys:
    """A /sys to be."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "sys"
        (self.root / "class/nvme").mkdir(parents=True)
        (self.root / "class/nvme-subsystem").mkdir()
        self.preload = folder / "devices.so"
        run("cc", "-O1", "-Wall", "-Wextra", "-shared", "-fPIC", "-o", self.preload, DEVICES_C)

    def put(self, path: str, **attributes: str) -> None:
        """Make a folder with files in it."""
        folder = self.root / path
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in attributes.items():
            (folder / name).write_text(text + "\n")

    def controller(self, number: int, subsystem: int, **attributes: str) -> None:
        """Make a controller of a subsystem."""
        told = {"transport": "pcie", "address": f"0000:0{number}:00.0", "state": "live"}
        told |= {"model": f"Model {subsystem}", "serial": f"S{subsystem}", "firmware_rev": "1.0"}
        nqn = f"nqn.2026-01.test:{subsystem}"
        self.put(f"class/nvme/nvme{number}", subsysnqn=nqn, **(told | attributes))
        self.put(f"class/nvme-subsystem/nvme-subsys{subsystem}", subsysnqn=nqn)
        self.put(f"class/nvme-subsystem/nvme-subsys{subsystem}/nvme{number}")

    def say(self, *words: str, check: bool = True) -> str:
        """The output of streamctl device on such a machine."""
        command = [str(BIN / "streamctl"), "device", *words]
        inside = ["bash", "-ec", IN_SYS, str(self.root), str(self.preload), *command]
        done = run("unshare", "--mount", *inside, check=check)
        return done.stdout if done.returncode == 0 else done.stderr

    def listed(self) -> list[dict[str, Any]]:
        """The same for programs."""
        told: list[dict[str, Any]] = json.loads(self.say("--json"))["subsystems"]
        return told


@pytest.fixture
def sys(tmp_path: Path) -> Sys:
    """A machine without devices."""
    if os.geteuid() != 0 or run("unshare", "--mount", "true", check=False).returncode != 0:
        pytest.skip("a /sys of one's own takes root and mount namespaces")
    return Sys(tmp_path)


def test_a_machine_without_nvme_is_told_what_else_data_can_be(sys: Sys) -> None:
    assert sys.listed() == []
    assert "emu:PATH" in sys.say()
    (sys.root / "class/nvme").rmdir()  # no driver either
    assert sys.listed() == []
    assert "needs a device" in sys.say("--probe", check=False)


def test_every_namespace_is_named_with_what_keeps_it_from_being_data(sys: Sys) -> None:
    for number in range(4):
        sys.controller(number, number)
        sys.put(f"class/nvme/nvme{number}/nvme{number}n1")
    sys.put("block/nvme1n1/nvme1n1p1", partition="1")
    told = sys.listed()
    assert [each["subsystem"] for each in told] == [f"nvme-subsys{n}" for n in range(4)]
    assert [(each["fdp"], each["directives"]) for each in told] == [(True, True)] + 3 * [
        (False, False)
    ]
    first = told[0]
    assert (first["model"], first["serial"], first["firmware"]) == ("Model 0", "S0", "1.0")
    assert first["nqn"] == "nqn.2026-01.test:0"
    path = {"controller": "nvme0", "transport": "pcie", "address": "0000:00:00.0", "state": "live"}
    assert first["controllers"] == [path]
    assert first["namespaces"] == [
        {
            "generic": "/dev/ng0n1",
            "block": "/dev/nvme0n1",
            "namespace": 1,
            "capacity_bytes": GIB,
            "block_bytes": 4096,
            "metadata_bytes": 0,
            "obstacle": None,
            "paths": [path | {"access": None}],
        }
    ]
    obstacles = [each["namespaces"][0]["obstacle"] for each in told]
    assert obstacles == [
        None,
        "partitioned (nvme1n1p1): a partition's block device can be used",
        "in use",
        "formatted with 512 + 8 bytes a block, data and metadata",
    ]
    text = sys.say()
    assert "nvme-subsys0 Model 0, serial S0, firmware 1.0; FDP, directives" in text
    assert "  /dev/ng3n1 (block device /dev/nvme3n1): 1.0 GiB in blocks of 512 bytes; form" in text
    assert "no FDP, no directives" in text


def test_of_a_multipath_namespace_every_path_is_named_with_its_state(sys: Sys) -> None:
    tcp = {"transport": "tcp", "address": "traddr=10.0.0.1,trsvcid=4420"}
    sys.controller(1, 0, **tcp)
    sys.controller(3, 0, **(tcp | {"state": "connecting"}))
    for number, access in ((1, "optimized"), (3, "inaccessible")):
        sys.put(f"class/nvme/nvme{number}/nvme0c{number}n1", ana_state=access)
        sys.put(f"class/nvme/nvme{number}/nvme0c{number}n2", ana_state="change")  # another's
    sys.put("class/nvme-subsystem/nvme-subsys0/nvme0n1")
    (told,) = sys.listed()
    (space,) = told["namespaces"]
    assert space["generic"] == "/dev/ng0n1"
    seen = [(p["controller"], p["state"], p["access"]) for p in space["paths"]]
    assert seen == [("nvme1", "live", "optimized"), ("nvme3", "connecting", "inaccessible")]
    assert space["paths"][0]["address"] == "traddr=10.0.0.1,trsvcid=4420"
    assert "through nvme3 (tcp traddr=10.0.0.1,trsvcid=4420), connecting" in sys.say()


def test_a_namespace_that_cannot_be_opened_is_said_to_be_missing(sys: Sys) -> None:
    """Debian 12's libnvme leaves it out."""
    sys.controller(8, 8, state="dead")
    sys.put("class/nvme/nvme8/nvme8n1")
    (told,) = sys.listed()
    assert told["controllers"][0]["state"] == "dead"
    assert told["namespaces"] == []
    assert "no namespace that can be opened" in sys.say()
