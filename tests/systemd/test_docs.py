"""The commands in docs/OPERATIONS.md and docs/TUNING.md work, in their order, under a real systemd.

A block follows a comment that says `run`, or `not run:` and why. An emulated SSD stands in for the
NVMe namespace that the text names, a file for the persistent memory.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.systemd.world import BUILD, MEDIA, ROOT, World, execute, why_not

SSD = ("--size", "64M", "--streams", "4", "--op", "0.1")
IN_PLACE_OF = {"/dev/ng0n1": f"emu:{MEDIA}/ssd", "/dev/dax0.0": f"{MEDIA}/META", "sudo ": ""}
PAGES = ("OPERATIONS", "TUNING", "FAQ")
FENCE = re.compile(
    r"(?:<!-- (?P<mark>.*?) -->\n)?```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.M | re.S
)


@dataclass(frozen=True)
class Block:
    """Some commands of a page."""

    page: str
    line: int
    mark: str
    text: str

    @property
    def commands(self) -> str:
        """The commands to run: with the test's devices in place of the named ones."""
        text = self.text
        for name, instead in IN_PLACE_OF.items():
            text = text.replace(name, instead)
        return text


def blocks(page: str) -> Iterator[Block]:
    """Yield the shell commands of a page."""
    text = (ROOT / "docs" / f"{page}.md").read_text()
    for found in FENCE.finditer(text):
        if found["kind"] == "sh":
            line = text.count("\n", 0, found.start()) + 1
            yield Block(page, line, found["mark"] or "", found["text"])


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """On, with an SSD and nothing on it."""
    folder = tmp_path_factory.mktemp("docs")
    if reason := why_not(folder):
        pytest.skip(reason)
    world = World(folder)
    image = folder / "media/ssd"
    execute(BUILD / "bin/ssd-sim", "create", image, *SSD)
    try:
        world.boot()
        yield world
    finally:
        world.end()


def run(world: World, block: Block) -> None:
    """Run a block; a failure names its place."""
    script = f"cd /srv; set -euo pipefail\n{block.commands}"
    done = world.run("bash", "-c", script, check=False)
    where = f"docs/{block.page}.md:{block.line}"
    assert done.returncode == 0, f"{where}\n{block.commands}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("page", PAGES)
def test_each_block_says_whether_it_runs_or_why_not(page: str) -> None:
    for block in blocks(page):
        assert re.fullmatch(r"run|not run: .{10,}", block.mark), f"{page}.md:{block.line}"


def test_the_commands_work_in_their_order(machine: World) -> None:
    operations = [block for block in blocks("OPERATIONS") if block.mark == "run"]
    assert len(operations) >= 12
    for block in operations:
        run(machine, block)
    inside = Path(f"/proc/{machine.init_pid}/root/srv")
    assert (inside / "backup/file").read_text() == "precious\n"
    machine.run("mount", "/srv/data")
    assert (inside / "data/file").read_text() == "precious\n"
    for block in blocks("TUNING"):
        if block.mark == "run":
            run(machine, block)
    machine.power_off()
