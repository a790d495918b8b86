"""The contest on the simulator's workloads."""

from __future__ import annotations

import pytest

from classifierd.contest import Contest, Device
from classifierd.contexts import VStream
from classifierd.records import Records, from_bytes
from classifierd.traces import telemetry
from streamfs_lab import _lab
from streamfs_lab.policies import learned
from streamfs_lab.replay import Device as Simulated
from streamfs_lab.replay import prefilled, waf_of, workload_of
from streamfs_lab.workloads import WORKLOADS

LIVE = 16_384


def bare(name: str, pages: int, live: int = LIVE) -> Records:
    """A workload of ssd-sim as requests without labels."""
    data, starts_full = _lab.generated(name, live, pages, 1)
    raw = from_bytes(data).copy()
    raw["vstream"] = 0
    return prefilled(raw) if starts_full else raw


def test_nosep_serves_in_the_last_pstream_until_something_is_copied() -> None:
    fill = telemetry(bare("fio4", LIVE))
    contest = Contest(2 * LIVE, Device(2 * LIVE, 8))
    for tags, serving, _ in contest.run(fill[: len(fill) // 2]):
        assert serving == "nosep"
        assert (tags["nosep"] == 7).all()


def test_what_a_device_that_is_not_full_will_cost_is_known_before() -> None:
    """While half of it lives, nothing is copied; once all of it lives, a candidate is chosen."""
    served = [
        serving
        for _, serving, _ in Contest(2 * LIVE, Device(2 * LIVE, 8)).run(
            telemetry(bare("fio4", 5 * LIVE))
        )
    ]
    assert (served[0], served[-1] == "nosep") == ("nosep", False)


def test_the_life_table_begins_where_contexts_tell_writes_apart() -> None:
    raw, vstreams = WORKLOADS["log-tail-mix"](LIVE, 1, 4 * LIVE)  # too little to copy anything
    for known, begins in ((vstreams, "life-table"), ([VStream(0)], "nosep")):
        served = learned(workload_of(raw, known, 8)).served
        assert {name for name, epochs in served.items() if epochs} == {begins}


@pytest.mark.parametrize("name", ["rocksdb-levels", "sequential", "fio4"])
def test_what_is_learned_is_never_worse_than_no_separation(name: str) -> None:
    # A switch costs copies, and some workloads switch late, so the run must be long enough.
    pages = 10 * LIVE
    raw = WORKLOADS[name](pages, 1, LIVE)[0] if name in WORKLOADS else bare(name, pages)
    workload = workload_of(raw, [VStream(0)], 8)
    found = learned(workload)
    served = found.served
    assert sum(served.values()) > 8
    device = Simulated()
    ours = waf_of(workload, "tags", device, found.tags["learned"], found.releases["learned"])
    none = waf_of(workload, "nosep", device)
    assert ours <= none + 0.01
    if name == "fio4":
        assert served["nosep"] < sum(served.values()) / 2
        assert ours < 0.7 * none, "and here it is worth it"
