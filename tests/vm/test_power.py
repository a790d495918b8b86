"""The power is cut in the middle of a workload: what was promised is there at the next boot."""

import os
import random
import time

from tests.vm.guest import PAYLOAD, TRANSPORTS, Setup
from tests.vm.machine import SETUPS, Machine

PROMISES = f"{PAYLOAD}/tests/integration/promises.py"
CUTS = 20 if os.environ.get("STREAMFS_LONG") else 2
WORK_SECONDS = (4.0, 10.0)
PROMISED_SECONDS = 120.0
DOMAINS = ("cpu", "mem-ctrl")  # the machine comes back with these, in turns
MEDIA = {"cpu": "cpu_cache", "mem-ctrl": "memory_controller, clwb"}


def begin(machine: Machine, setups: list[Setup], seed: int) -> None:
    """Work on all set-ups until each has been promised something."""
    before = {setup.name: machine.notes(setup.name).stat().st_size for setup in setups}
    for setup in setups:
        machine.start(setup.name, "python3", PROMISES, "work", setup.point, str(seed))
    deadline = time.monotonic() + PROMISED_SECONDS
    while any(machine.notes(n).stat().st_size == size for n, size in before.items()):
        assert time.monotonic() < deadline, machine.run("cat", "/tmp/started").out
        time.sleep(0.1)


def check(machine: Machine, setup: Setup, option: str) -> int:
    """Fsck, mount, and look at everything that was ever promised; how many promises it was."""
    setup.assert_sound()
    setup.mount(option)
    notes = machine.notes(setup.name).read_text()
    said = machine.run("python3", PROMISES, "check", setup.point, text=notes)
    status = setup.status()
    assert status["meta_class"] == "persistent"
    assert status["meta_medium"].endswith(MEDIA[machine.persistence]), status["meta_medium"]
    assert status["checksum_errors"] == 0
    return int(said.out)


def test_nothing_promised_is_lost_in_power_cuts(machine: Machine) -> None:
    """Both set-ups at once, so each cut is one of either; ADR, eADR and transports in turns."""
    seed = random.SystemRandom().randrange(1, 10**6)
    print(f"seed {seed}")  # noqa: T201
    dice = random.Random(seed)
    options = [*TRANSPORTS.values()]  # the first mounts are over io_uring, the default here
    setups = [Setup(machine, name) for name in SETUPS]
    for setup in setups:
        setup.mkfs()
        setup.mount()
    promises = dict.fromkeys(SETUPS, 0)
    for cut in range(CUTS):
        begin(machine, setups, seed + cut)
        time.sleep(dice.uniform(*WORK_SECONDS))
        for setup in setups:
            assert setup.status()["intent_log"]["fsyncs"] > 0, "the intent log took nothing"
        machine.cut()
        machine.persistence = DOMAINS[cut % len(DOMAINS)]
        machine.boot()
        for setup in setups:
            setup.power_on()
            now = check(machine, setup, options[cut % len(options)])
            assert now > promises[setup.name], "nothing was promised, so nothing was checked"
            promises[setup.name] = now
    print(f"{CUTS} cuts, promises kept: {promises}")  # noqa: T201
    for setup in setups:
        setup.unmount()
        setup.assert_sound()
