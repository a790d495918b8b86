"""bench/maintain: what is compared with what, and which targets hold."""

from pathlib import Path

import pytest
from bench.foreground import Noticed
from bench.suites import maintain
from bench.table import Row


def device(speed: float = 100.0, nand: float = 2.0, erases: float = 50.0) -> maintain.Device:
    return maintain.Device(speed, 12.0, 900.0, nand, erases, 1.0)


def point(utilisation: float, burst: str, nand: float, speed: float = 300.0) -> maintain.Point:
    return maintain.Point(utilisation, burst, 2.0, False, device(speed, nand), device())


def figures(rows: list[Row]) -> dict[str, Row]:
    return {each.name: each for each in rows}


def test_small_bursts_on_a_full_device_have_the_sources_figure_as_target() -> None:
    points = [point(0.9, "2M", 2.02), point(0.7, "2M", 2.0), point(0.9, "16M", 2.2, speed=110)]
    found = figures(list(maintain.point_rows(points)))
    fast = found["90 % full, uniform, bursts of 2M, idle 2 s: writes"]
    assert (fast.value, fast.met) == (3.0, True)
    assert found["70 % full, uniform, bursts of 2M, idle 2 s: writes"].target is None
    assert found["90 % full, uniform, bursts of 16M, idle 2 s: writes"].met is None


def test_the_worst_point_decides_about_nand_bytes() -> None:
    points = [point(0.9, "2M", 2.02), point(0.9, "16M", 2.2)]
    worst = figures(list(maintain.point_rows(points)))["NAND bytes with idle work ÷ without, worst"]
    assert worst.value == pytest.approx(1.1)
    assert worst.met is False
    assert "16M" in worst.unit


def test_a_trim_that_saves_erases_makes_it_live_longer() -> None:
    kinds = {"none": device(50, erases=100), "misaligned": device(100, erases=80),
             "joined": device(120, erases=70), "aligned": device(150, erases=50)}  # fmt: skip
    found = figures(list(maintain.trim_rows(kinds)))
    assert found["aligned trims ÷ none: random writes"].value == 3.0
    assert found["aligned trims ÷ none: lifetime"].value == 2.0
    assert found["aligned trims ÷ misaligned: lifetime"].value == pytest.approx(1.6)


def test_what_a_mount_notices_is_that_with_maintenance_over_that_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def noticed(_work: Path, _bursts: int, *, maintained: bool) -> Noticed:
        return Noticed(50.0, 130.0 if maintained else 100.0, 103 if maintained else 100)

    monkeypatch.setattr(maintain, "noticed", noticed)
    rows = list(maintain.on_a_mount(tmp_path, quick=True))
    label = "a mount, bursts of 1 MiB"
    found = {row.name: (row.value, row.met) for row in rows}
    assert found[f"{label}: p99 of writes with maintenance ÷ without"] == (1.3, False)
    assert found[f"{label}: NAND bytes with maintenance ÷ without"] == (1.03, True)


@pytest.mark.parametrize("utilisation", [0.9, 0.97])
def test_small_bursts_find_free_blocks_for_few_nand_bytes(
    tmp_path: Path, utilisation: float
) -> None:
    full = ("--utilisation", utilisation)
    words = ("--size", "256M", "--write", "1G", "idle", *full, "--burst", "2M", "--idle", 2.0)
    on, off = (
        maintain.device(maintain.simulate(tmp_path / "ssd", *words, *more))
        for more in ((), ("--off",))
    )
    point = maintain.Point(utilisation, "2M", 2.0, False, on, off)
    assert point.speed >= maintain.BACKGROUND
    assert point.nand <= maintain.NAND_MOST
