"""Stages of scripts/test: which of them run, and what the closing line claims."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from includes import closure, source_files
from leaks import LEFT_CODE

ROOT = Path(__file__).resolve().parents[2]

SCHEDULE = """
fixture(made BEHIND COMMAND note made)
fixture(never-made BEHIND COMMAND false)
stage(lint "gate;long;quick" "lint of all" COMMAND note lint)
stage(unit "gate;long" "unit tests" NEEDS made COMMAND note unit)
stage(formulas "gate;lab" "tests of the laboratory" BEHIND COMMAND note formulas)
stage(changes "none;lab" "tests during which a file changes" COMMAND change_lab)
stage(soak "long" "a soak" COMMAND note soak)
stage(fails "none" "one that fails" COMMAND false)
stage(blocked "none" "one whose fixture fails" NEEDS never-made COMMAND note blocked)
stage(disk "quick;lab" "one of the laboratory that skips a test" COMMAND without_disk)
stage(rootless "none" "one that needs root" COMMAND skip "no root")
stage(forbidden "none" "one whose program exits with EX_NOPERM" COMMAND sh -c "exit 77")
stage(racy "none" "one with a race" COMMAND true)
gate_test(racy-again ALONE COMMAND second_attempt)
stage(front "none" "one that takes time" COMMAND in_front)
stage(front-too "none" "one that takes time" COMMAND in_front)
stage(behind "none" "one that leaves time" BEHIND COMMAND behind)
stage(hangs "none" "one that never ends" COMMAND hang)
stage(hangs-behind "none" "one that never ends" BEHIND COMMAND hang)
"""

STAGES = """
note() { say "$1" >>"$STREAMFS_RAN"; }
skip() { say "$1" >>"$STREAMFS_SKIPPED"; exit 77; }
without_disk() { say "no disk" >>"$STREAMFS_SKIPPED"; note diskless; }
second_attempt() { say test_of_time >"$STREAMFS_NOTES/second-attempts"; }
change_lab() { mkdir lab && touch lab/formula.cc; }
# Two of these fail together; each waits for a look at the priority of the one behind.
in_front() {
  mkdir "$STREAMFS_NOTES/here"
  until [[ -e $STREAMFS_NOTES/seen ]]; do sleep 0.05; done
  rmdir "$STREAMFS_NOTES/here"
  rm "$STREAMFS_NOTES/seen"
}
priority() { grep -o "nice .*" /proc/$$/autogroup; }
behind() {
  for _ in 1 2; do
    until [[ -d $STREAMFS_NOTES/here ]]; do sleep 0.05; done
    note "$(priority) in $TMPDIR"
    touch "$STREAMFS_NOTES/seen"
    until [[ ! -e $STREAMFS_NOTES/seen ]]; do sleep 0.05; done
  done
  until [[ $(priority) == "nice 0" ]]; do sleep 0.05; done
}
hang() { setsid --fork sleep 300; note "$$ $STREAMFS_NOTES"; exec sleep 300; }
"""


class Gate:
    """A checkout with stages of its own, and what its last run did."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ran = folder / "ran"
        for name in ("scripts/test", "scripts/stage", "scripts/lib.sh", "tests/gate/CMakeLists.txt",
                     ".ci/leaks.py"):  # fmt: skip
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
        (folder / "scripts/setup").write_text("#!/bin/sh\n")
        (folder / "scripts/setup").chmod(0o755)
        (folder / "scripts/stages.sh").write_text(STAGES)
        (folder / "tests/gate/stages.cmake").write_text(SCHEDULE)
        (folder / "build").mkdir()
        (folder / "build/venv").symlink_to(sys.prefix)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        self.ran.unlink(missing_ok=True)
        environment = os.environ | {
            "STREAMFS_RAN": str(self.ran),
            "XDG_CACHE_HOME": str(self.folder / "cache"),
        }
        for name in ("STREAMFS_AGAIN", "STREAMFS_LONG"):
            environment.pop(name, None)
        return subprocess.Popen(
            [self.folder / "scripts/test", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
            start_new_session=True,
        )

    def run(self, *arguments: str, code: int = 0) -> str:
        process = self.start(*arguments)
        try:
            printed, _ = process.communicate(timeout=60)
        finally:
            process.kill()
        assert process.returncode == code, printed
        return printed

    def closing_line(self, *arguments: str, code: int = 0) -> str:
        return self.run(*arguments, code=code).splitlines()[-1]

    def stamps(self) -> list[Path]:
        return list((self.folder / "cache").glob("*/*"))

    def noted(self) -> list[str]:
        return self.ran.read_text().splitlines() if self.ran.exists() else []


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path)


def test_the_whole_gate_passed(gate: Gate) -> None:
    assert gate.closing_line() == "All passed."
    assert sorted(gate.noted()) == ["formulas", "lint", "made", "unit"]


def test_a_part_of_the_gate_is_not_called_all(gate: Gate) -> None:
    assert gate.closing_line("--quick") == "Passed: not the whole gate; 1 skipped."
    assert sorted(gate.noted()) == ["diskless", "lint"]


def test_a_stage_that_is_named_brings_its_fixtures(gate: Gate) -> None:
    assert gate.closing_line("unit", "soak") == "Passed: not the whole gate."
    assert sorted(gate.noted()) == ["made", "soak", "unit"]


def test_what_was_skipped_or_repeated_is_counted(gate: Gate) -> None:
    printed = gate.run("rootless", "racy")
    assert "1 no root" in printed
    assert "1 test_of_time" in printed
    assert printed.endswith("Passed: not the whole gate; 1 skipped; 1 only at a second attempt.\n")


def test_a_failure_is_named_and_the_others_run(gate: Gate) -> None:
    assert gate.closing_line("fails", "soak", code=1) == "test: failed: fails"
    assert gate.noted() == ["soak"]


def test_an_exit_code_of_77_without_a_reason_is_no_skip(gate: Gate) -> None:
    assert gate.closing_line("forbidden", code=1) == "test: failed: forbidden"


def test_a_stage_whose_fixture_fails_is_not_run(gate: Gate) -> None:
    assert gate.closing_line("blocked", "soak", code=1) == "test: failed: never-made blocked"
    assert gate.noted() == ["soak"]


def test_an_unknown_stage_runs_nothing(gate: Gate) -> None:
    printed = gate.run("lint", "typo", code=2)
    assert "no stage is called typo; --list prints their names" in printed
    assert not gate.noted()


def test_the_list_names_stages_and_their_first_group(gate: Gate) -> None:
    assert "lint         gate       lint of all\n" in gate.run("--list")


def test_stages_in_front_follow_each_other_and_one_runs_behind_them(gate: Gate) -> None:
    gate.run("front", "front-too", "behind")
    first, second = gate.noted()
    assert re.search(r"^nice 19 in .*/behind$", first)
    assert second == first


def test_a_stage_of_the_laboratory_that_passed_waits_for_a_change(gate: Gate) -> None:
    def runs(*arguments: str) -> bool:
        gate.run(*arguments)
        return "formulas" in gate.noted()

    assert runs()
    assert not runs()
    assert runs("formulas")
    (gate.folder / "lab").mkdir()
    (gate.folder / "lab/formula.cc").write_text("")
    assert runs()
    assert not runs()


def test_the_stamp_of_a_stage_counts_what_the_stage_skipped(gate: Gate) -> None:
    first = gate.closing_line("--quick")
    assert "diskless" in gate.noted()
    assert gate.closing_line("--quick") == first == "Passed: not the whole gate; 1 skipped."
    assert "diskless" not in gate.noted()


def test_a_stage_during_which_a_file_changes_has_no_stamp(gate: Gate) -> None:
    gate.run("changes")
    assert not gate.stamps()
    gate.run("formulas")
    assert gate.stamps()


def test_a_stage_whose_programs_were_built_amid_a_change_has_no_stamp(gate: Gate) -> None:
    lab = gate.folder / "lab"
    (gate.folder / "scripts/setup").write_text(
        f"#!/bin/sh\nmkdir {lab} && touch {lab}/formula.cc\n"
    )
    gate.run("formulas")
    assert not gate.stamps()


def test_the_stamp_covers_what_tests_of_the_laboratory_include() -> None:
    text = (ROOT / "scripts/lib.sh").read_text()
    found = re.search(r"LAB_FILES=\((.*?)\)", text, re.DOTALL)
    assert found
    covered = found[1].split()
    for name in covered:
        assert (ROOT / name).exists(), name
    linked = ("base", "learning", "pmem", "ssd", "trace", "lab", "tests/figures", "tests/unit/lab")
    for source in source_files(ROOT):
        if any(source.is_relative_to(folder) for folder in linked):
            for path in closure(ROOT, source):
                assert any(path.is_relative_to(name) for name in covered), f"{source}: {path}"


# The integration stage with one failed test in pytest's cache, where $3 stands for pytest's run.
INTEGRATION = """
set -e
source scripts/lib.sh
source scripts/stages.sh
VENV=$1 BUILD=$2 STREAMFS_NOTES=$2
python_tests() {
  mkdir -p "$BUILD/pytest-cache/v/cache"
  say '{"test_of_time": true}' >"$BUILD/pytest-cache/v/cache/lastfailed"
  watched sh -c "$command"
}
command=$3
integration_tests
"""


@pytest.mark.parametrize(
    ("run", "code"),
    [("exit 1", 0), ("exit 2", 2), ("exit 3", 3), ("setsid sleep 300 & exit 1", LEFT_CODE)],
)
def test_only_failed_tests_have_a_second_attempt(tmp_path: Path, run: str, code: int) -> None:
    command = ["bash", "-c", INTEGRATION, "bash", sys.prefix, str(tmp_path), run]
    done = subprocess.run(command, cwd=ROOT, check=False, timeout=60)
    assert done.returncode == code
    again = tmp_path / "again"
    assert (again.read_text() if again.exists() else "") == ("" if code else "test_of_time\n")


class Hanging(NamedTuple):
    """A run amid two stages that never end."""

    process: subprocess.Popen[str]
    stages: list[Path]  # in /proc
    folder: Path

    def leaves_nothing(self) -> bool:
        return not any(path.exists() for path in self.stages)


@pytest.fixture
def hanging(gate: Gate) -> Iterator[Hanging]:
    process = gate.start("hangs", "hangs-behind")
    deadline = time.monotonic() + 30
    while len(noted := gate.noted()) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    stages = [Path("/proc", line.split()[0]) for line in noted]
    yield Hanging(process, stages, Path(noted[0].split()[1]))
    process.kill()
    process.communicate(timeout=30)


def test_a_terminated_run_leaves_nothing(hanging: Hanging) -> None:
    hanging.process.terminate()
    hanging.process.wait(timeout=30)
    assert hanging.leaves_nothing()
    assert not hanging.folder.exists()


def test_a_second_run_in_a_checkout_is_refused(gate: Gate, hanging: Hanging) -> None:
    assert "another run is under way" in gate.closing_line("lint", code=1)
    assert hanging.process.poll() is None
    hanging.process.terminate()
    hanging.process.wait(timeout=30)
    assert gate.closing_line("lint") == "Passed: not the whole gate."


def test_ctrl_c_ends_the_stages(hanging: Hanging) -> None:
    os.killpg(hanging.process.pid, signal.SIGINT)
    hanging.process.wait(timeout=30)
    assert hanging.leaves_nothing()
    assert hanging.process.returncode == 128 + signal.SIGINT
    assert not hanging.folder.exists()


def test_a_killed_run_ends_its_stages(hanging: Hanging) -> None:
    hanging.process.kill()
    hanging.process.communicate(timeout=30)  # until nothing holds its output
    assert hanging.leaves_nothing()
    shutil.rmtree(hanging.folder)
