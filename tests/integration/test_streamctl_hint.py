"""streamctl hint: labels as lsattr(1) and chattr(1) treat attributes."""

import json
import os
import socket
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from tests.integration.pairs import BIN, Mount, Pair, run

FOREIGN, NO_DEVICE, USAGE, NOT_PERMITTED = 65, 66, 64, 77
NOBODY = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
XATTR = "user.streamfs.vstream"


def hint(*words: str | Path, before: tuple[str, ...] = ()) -> CompletedProcess[str]:
    """Run streamctl hint, whatever becomes of it."""
    return run(*before, BIN / "streamctl", "hint", *words, check=False)


def told(*words: str | Path) -> list[dict[str, Any]]:
    """The objects that streamctl hint prints as JSON, one a line."""
    done = hint("--json", *words)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def label(path: Path) -> str:
    """The label as everybody may read it."""
    return os.getxattr(path, XATTR).decode()


@pytest.fixture
def tree(mounted: Mount) -> Path:
    """d/a, d/.hidden, d/link -> a, d/pipe, d/sub/b."""
    top = mounted / "d"
    (top / "sub").mkdir(parents=True)
    for name in ("a", ".hidden", "sub/b"):
        (top / name).write_text("x")
    (top / "link").symlink_to("a")
    os.mkfifo(top / "pipe")
    return top


def test_a_label_is_said_by_name_or_number_shown_and_taken_back(tree: Path) -> None:
    a, b = tree / "a", tree / "sub/b"
    assert hint("--name", "mine", a, b).returncode == 0
    assert label(a) == label(b) == "mine"
    assert [(row["path"], row["name"], row["said"]) for row in told(a, b)] == [
        (str(a), "mine", True),
        (str(b), "mine", True),
    ]
    assert hint("--number", "77", a).stdout.startswith(f"{a}: vStream 77,")
    assert hint("--clear", a).returncode == 0
    assert not told(a)[0]["said"]
    assert told(b)[0]["said"]


def test_a_directory_labels_what_is_made_in_it_later_and_with_r_what_is_there(tree: Path) -> None:
    assert hint("--name", "logs", tree).returncode == 0
    (tree / "new").write_text("x")
    assert label(tree / "new") == "logs"
    assert not told(tree / "a")[0]["said"]
    done = hint("-R", "--name", "all", tree)
    assert done.stdout == f"{tree}: 6 files and directories labelled\n"
    assert {label(tree / name) for name in ("a", ".hidden", "sub", "sub/b", "new")} == {"all"}
    assert hint("-R", "--clear", tree).stdout == f"{tree}: 6 files and directories cleared\n"
    (tree / "later").write_text("x")
    assert not any(row["said"] for row in told("-l", "-R", "-a", tree))


def test_a_listing_is_of_what_is_in_a_directory_as_lsattrs(tree: Path) -> None:
    hint("--name", "logs", tree / "sub")
    hint("--name", "mine", tree / "a")
    rows = [line.split() for line in hint("-l", tree).stdout.splitlines()]
    assert [(row[0], row[1], row[-1]) for row in rows if row[-1] != str(tree / "pipe")] == [
        ("s-", "mine", str(tree / "a")),
        ("sd", "logs", str(tree / "sub")),
    ]

    def listed(*options: str) -> set[str]:
        return {row["path"].removeprefix(str(tree)) for row in told("-l", *options, tree)}

    assert listed() == {"/a", "/sub"}
    assert listed("-a") == {"/a", "/sub", "/.hidden"}
    assert listed("-d") == {""}
    assert listed("-R") == {"/a", "/sub", "/sub/b"}
    assert listed("-R", "-a") == {"/a", "/sub", "/sub/b", "/.hidden"}
    assert [row["path"] for row in told("-l", tree / "a")] == [str(tree / "a")]


def test_other_mounts_are_not_entered_and_links_followed_only_when_named(
    tree: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "o").write_text("x")
    (tree / "sub/out").symlink_to(outside)
    assert hint("-R", "--name", "all", tree).returncode == 0
    assert hint("--name", "linked", tree / "link").returncode == 0
    assert label(tree / "a") == "linked"
    run("mount", "--bind", outside, tree / "sub")
    try:
        assert hint("-R", "--name", "again", tree).returncode == 0
    finally:
        run("umount", tree / "sub")
    assert label(tree / "sub/b") == "all"


def test_what_has_no_label_is_said_clearly_and_the_rest_is_done(tree: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        folder = os.open(tree, os.O_DIRECTORY)
        bound.bind(f"/proc/self/fd/{folder}/s")
        os.close(folder)
        done = hint("--name", "mine", tree / "pipe", tree / "s", tree / "gone", tree / "a", "/dev")
    assert done.returncode == FOREIGN
    pipe, sock, gone, foreign = done.stderr.splitlines()
    assert pipe == f"streamctl: {tree}/pipe is a pipe: only files and directories have labels"
    assert sock == f"streamctl: {tree}/s is a socket: only files and directories have labels"
    assert gone.startswith(f"streamctl: {tree}/gone: No such file or directory")
    assert foreign == "streamctl: /dev is not on a streamfs"
    assert label(tree / "a") == "mine"


@pytest.mark.parametrize("name", ["", "a/b", "123", "x" * 32, "a\tb"])
def test_what_cannot_name_a_vstream_is_refused_before_anything_is_done(
    tree: Path, name: str
) -> None:
    done = hint("--name", name, tree / "a")
    assert done.returncode == USAGE
    assert "name" in done.stderr
    assert not told(tree / "a")[0]["said"]


def test_options_that_exclude_each_other_are_refused(tree: Path) -> None:
    for words in (
        ("--name", "a", "--number", "5"),
        ("--name", "a", "--clear"),
        ("--list", "--clear"),
        ("--number", "0"),
        ("--number", "65536"),
        ("-a",),
    ):
        assert hint(*words, tree / "a").returncode == USAGE, words


def test_only_who_may_write_a_file_may_label_it(tree: Path) -> None:
    tree.parent.chmod(0o755)
    done = hint("--name", "theirs", tree / "a", before=NOBODY)
    assert done.returncode in (NOT_PERMITTED, NO_DEVICE), done
    assert not told(tree / "a")[0]["said"]


def test_a_mount_that_takes_no_labels_says_so(pair: Pair) -> None:
    mount = pair.mount("placement=learned")
    (mount / "a").write_text("x")
    done = hint("--name", "mine", mount / "a")
    assert done.returncode != 0
    assert "takes no labels (placement=learned or off)" in done.stderr


def test_a_mount_whose_filesystem_is_gone_says_so(mounted: Mount) -> None:
    (mounted / "a").write_text("x")
    mounted.process.kill()
    mounted.process.wait(30)
    done = hint("--name", "mine", mounted / "a")
    assert done.returncode == NO_DEVICE
    assert "the filesystem that was mounted there is gone" in done.stderr
