"""Man pages and completion: made from the programs' own command lines, well formed, installed."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.integration.pairs import BIN, ROOT, run

MANUAL = BIN.parent / "manual"
PROGRAMS = ("streamfs", "mkfs.streamfs", "fsck.streamfs", "mount.streamfs", "streamctl", "ssd-sim")
PAGES = {
    "streamfs.5", "streamfs.7", "streamfs.8", "mkfs.streamfs.8", "fsck.streamfs.8",
    "mount.streamfs.8", "streamctl.8", "ssd-sim.1", "classifierd.8",
    "streamfs-lab.1",
}  # fmt: skip


@pytest.fixture(scope="module")
def manual() -> Path:
    """The folder the build made; fresh ones where it was built without."""
    if not (MANUAL / "man").is_dir():
        pytest.skip("built without man pages (sanitizers)")
    return MANUAL


def pages() -> list[Path]:
    """Ours and libstream's."""
    return sorted([*(MANUAL / "man").glob("*.[1-8]"), *(ROOT / "libstream/man").glob("*.[1-8]")])


def test_all_pages_are_there(manual: Path) -> None:
    assert PAGES - {path.name for path in (manual / "man").iterdir()} == set()


def test_no_page_has_anything_that_groff_or_mandoc_complains_of(manual: Path) -> None:
    assert manual
    for page in pages():
        done = run("groff", "-man", "-ww", "-Tutf8", "-z", page)
        assert done.stderr == "", page
        if shutil.which("mandoc"):
            lint = run("mandoc", "-Tlint", "-Wwarning", page, check=False)
            said = [
                line
                for line in lint.stdout.splitlines()
                if "referenced manual not found" not in line and "missing date" not in line
            ]
            assert said == [], page


def words_of(command: dict[str, object], above: tuple[str, ...] = ()) -> list[str]:
    """Every option and subcommand of a described program."""
    out: list[str] = []
    for option in command["options"]:  # type: ignore[attr-defined]
        out += option["names"]
    for each in command["commands"]:  # type: ignore[attr-defined]
        out += [each["name"], *words_of(each, (*above, each["name"]))]
    return out


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_page_and_completion_know_all_that_help_knows(manual: Path, name: str) -> None:
    described = json.loads(run(BIN / name, "--describe-command").stdout)
    help_text = run(BIN / name, "--help").stdout
    (page,) = (manual / "man").glob(f"{name}.[18]")
    text = re.sub(r"\x1b\[[0-9;]*m|.\x08", "", run("man", "-l", page).stdout)
    for kind, file in (("bash", name), ("zsh", f"_{name}"), ("fish", f"{name}.fish")):
        completion = (manual / kind / file).read_text()
        for word in words_of(described):
            assert word.lstrip("-") in completion, (kind, word)
    for option in described["options"]:
        for word in option["names"]:
            assert word in help_text
            assert word in text
    for command in described["commands"]:
        assert command["name"] in text
    assert "EXIT STATUS" in text or name == "ssd-sim"


def complete(manual: Path, *words: str) -> list[str]:
    """The completions that bash offers for the last of these words."""
    script = (
        'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); '
        '"$(complete -p "$1" | sed "s/.*-F \\([^ ]*\\).*/\\1/")"; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = run("bash", "-c", script, "bash", str(manual / "bash" / words[0]), *words)
    return [line for line in done.stdout.splitlines() if line]


def test_bash_offers_commands_options_choices_and_files(manual: Path, tmp_path: Path) -> None:
    assert complete(manual, "streamctl", "iost") == ["iostat"]
    assert {"start", "stop", "status"} <= set(complete(manual, "streamctl", "scrub", ""))
    assert complete(manual, "streamctl", "scrub", "start", "--w") == ["--wait"]
    assert "--wait" not in complete(manual, "streamctl", "scrub", "stop", "--")
    assert complete(manual, "mkfs.streamfs", "--mean") == ["--mean-file-size"]
    (tmp_path / "a file").touch()
    assert complete(manual, "mkfs.streamfs", "--meta", f"{tmp_path}/a") == [f"{tmp_path}/a file"]
    assert "own" in complete(manual, "ssd-sim", "create", "--gc", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_right_for_its_shell(manual: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    for file in sorted((manual / shell).iterdir()):
        assert run(shell, "-n", file).stderr == ""


def test_fish_offers_subcommands(manual: Path, tmp_path: Path) -> None:
    if shutil.which("fish") is None:
        pytest.skip("no fish here")
    script = f"source {manual}/fish/streamctl.fish; complete -C 'streamctl scr'"
    home = {**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    done = subprocess.run(
        ["fish", "-N", "-c", script], capture_output=True, text=True, check=True, env=home
    )
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["scrub"]


def test_all_of_it_is_installed(manual: Path, tmp_path: Path) -> None:
    assert manual
    env = {**os.environ, "DESTDIR": str(tmp_path)}
    words = ["cmake", "--install", str(BIN.parent), "--prefix", "/usr", "--component", "core"]
    run(*words, env=env)
    share = tmp_path / "usr/share"
    for page in PAGES:
        assert (share / f"man/man{page[-1]}" / page).is_file(), page
    for file in (
        "bash-completion/completions/streamctl",
        "zsh/vendor-completions/_streamctl",
        "fish/vendor_completions.d/streamctl.fish",
    ):
        assert (share / file).is_file()
    assert (tmp_path / "usr/lib/udev/rules.d/65-streamfs.rules").is_file()
