"""streamctl setup under a real systemd: it proposes, sets up on yes, and refuses to do it twice."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.systemd.world import BUILD, MEDIA, World, execute, why_not

POINT = "/srv/my data-1"
NAME = r"srv-my\x20data\x2d1"
UNIT = f"streamfs@{NAME}.service"
CONFIG = f"/etc/streamfs{POINT}.conf"
DATA = f"emu:{MEDIA}/ssd"
META = f"{MEDIA}/META"
WORDS = ("streamctl", "setup", "--data", DATA, "--meta", META, POINT)
NO_DEVICE, USAGE, EXISTS, IO = 2, 64, 73, 70


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """On, with an empty SSD, for all tests in their order."""
    folder = tmp_path_factory.mktemp("setup")
    if reason := why_not(folder):
        pytest.skip(reason)
    one = World(folder)
    image = folder / "media/ssd"
    execute(BUILD / "bin/ssd-sim", "create", image, "--size", "64M", "--streams", "4",
            "--op", "0.1")  # fmt: skip
    try:
        one.boot()
        yield one
    finally:
        one.end()


def inside(world: World, path: str) -> Path:
    return Path(f"/proc/{world.init_pid}/root{path}")


def told(world: World, *words: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(world.run(*WORDS, "--json", *words).stdout)
    return answer


def test_a_proposal_changes_nothing(world: World) -> None:
    said = world.run(*WORDS, "--dry-run").stdout
    answer = told(world)
    assert answer["done"] is False
    assert answer["data"]["pstreams"] == 4
    assert answer["meta"]["class"] == "synced"
    assert f"classifierd@{NAME}.service" in answer["units"]
    for each in answer["consequences"]:
        assert each["event"] in said
    assert not inside(world, POINT).exists()
    assert not inside(world, CONFIG).exists()
    assert not (world.folder / "media/META").exists()


def test_without_a_terminal_it_needs_yes_or_dry_run(world: World) -> None:
    done = world.run("sh", "-c", 'exec "$@" </dev/null', "sh", *WORDS, check=False)
    assert done.returncode == USAGE
    assert "--yes" in done.stderr
    assert not inside(world, CONFIG).exists()


def test_a_failed_step_names_what_is_left(world: World) -> None:
    words = ("streamctl", "setup", "--data", DATA, "--meta", "/proc/META", "--yes", "/srv/other")
    done = world.run(*words, check=False)
    assert done.returncode == IO
    assert "step 2 of 4, mkfs.streamfs" in done.stderr
    assert "left to do after it: write /etc/streamfs/srv/other.conf && systemctl" in done.stderr
    assert not inside(world, "/etc/streamfs/srv/other.conf").exists()


def test_another_configuration_is_not_overwritten_unasked(world: World) -> None:
    config = inside(world, CONFIG)
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("DATA=/dev/ng7n1\nMETA=/dev/dax7.0\n")
    done = world.run(*WORDS, "--yes", check=False)
    assert done.returncode == EXISTS
    assert CONFIG in done.stderr
    assert config.read_text() == "DATA=/dev/ng7n1\nMETA=/dev/dax7.0\n"
    assert not (world.folder / "media/META").exists(), "nothing else was done either"


def test_on_yes_it_is_mounted_and_comes_back_at_the_next_boot(world: World) -> None:
    answer = told(world, "--yes", "--force")
    assert answer["done"] is True
    assert world.run("streamfs", "--check-config", CONFIG).stdout == ""
    world.run("mountpoint", POINT)
    for unit in answer["units"]:
        assert world.active(unit), world.journal(unit)
    inside(world, f"{POINT}/file").write_text("kept\n")
    world.power_off()
    world.boot()
    assert inside(world, f"{POINT}/file").read_text() == "kept\n"
    for unit in answer["units"]:
        assert world.active(unit), world.journal(unit)


def test_what_is_set_up_is_not_taken_again(world: World) -> None:
    done = world.run(*WORDS, "--yes", check=False)
    assert done.returncode == EXISTS
    assert "is a mountpoint already" in done.stderr
    world.run("systemctl", "stop", UNIT)
    again = world.run(*WORDS[:-1], "/srv/other", "--yes", check=False)
    assert again.returncode == NO_DEVICE
    assert "holds a streamfs data device" in again.stdout
