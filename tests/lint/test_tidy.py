"""The promises of .ci/tidy.py about includes and imports."""

from pathlib import Path

import pytest
from tidy import FLOORS, floor_of, include_errors, main


def write(root: Path, path: str, text: str = "") -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def errors_of(root: Path, source: str, target: str) -> list[str]:
    write(root, target)
    write(root, source, f'#pragma once\n#include "{target}"\n')
    return list(include_errors(root))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("base/types.h", "pmem/region.h"),
        ("pmem/region.cc", "ssd/nand.h"),
        ("ssd/gc.cc", "fuse-fs/blockdev/device.h"),
        ("fuse-fs/meta/journal.cc", "fuse-fs/data/epoch.h"),
        ("fuse-fs/data/epoch.h", "fuse-fs/frontend/session.h"),
        ("fuse-fs/pair/pair.cc", "fuse-fs/data/filesystem.h"),
        ("fuse-fs/frontend/session.cc", "tests/support/fake.h"),
    ],
)
def test_an_upward_include_is_an_error(tmp_path: Path, source: str, target: str) -> None:
    (error,) = errors_of(tmp_path, source, target)
    assert error.startswith(f"{source}:2: ")
    assert target in error


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("fuse-fs/meta/mirror.cc", "fuse-fs/blockdev/device.h"),
        ("fuse-fs/placement/router.cc", "fuse-fs/meta/layout.h"),
        ("fuse-fs/data/epoch.cc", "lab/replay/replay.h"),
        ("ssd/gc.cc", "lab/replay/replay.h"),
        ("fuse-fs/pair/pair.cc", "fuse-fs/placement/placement.h"),
        ("fuse-fs/pair/pair.cc", "fuse-fs/nvme/command.h"),
        ("base/clock.cc", "libstream/include/libstream.h"),
        ("libstream/hint.c", "base/types.h"),
        ("fuse-fs/frontend/session.cc", "classifierd/native/core.h"),
        ("classifierd/native/core.cc", "lab/replay/replay.h"),
        ("lab/python/src_core/views.cc", "classifierd/native/core.h"),
    ],
)
def test_an_include_of_a_neighbour_is_an_error(tmp_path: Path, source: str, target: str) -> None:
    assert len(errors_of(tmp_path, source, target)) == 1


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("fuse-fs/tools/mkfs_main.cc", "fuse-fs/meta/layout.h"),
        ("fuse-fs/placement/router.cc", "fuse-fs/blockdev/device.h"),
        ("ssd/victim/greedy.cc", "ssd/block.h"),
        ("libstream/hint.c", "base/wire/hint_ioctl.h"),
        ("classifierd/native/core.cc", "ssd/ssd.h"),
        ("lab/replay/replay.cc", "ssd/ssd.h"),
        ("tests/unit/meta/journal_test.cc", "fuse-fs/tools/shared.h"),
    ],
)
def test_a_downward_include_is_allowed(tmp_path: Path, source: str, target: str) -> None:
    assert errors_of(tmp_path, source, target) == []


@pytest.mark.parametrize(
    "text",
    [
        "import streamfs_lab\n",
        "import json, streamfs_lab.cli\n",
        "from streamfs_lab import replay\n",
        "def f() -> None:\n    from streamfs_lab.replay import compare\n",
    ],
)
def test_the_daemon_may_not_import_the_lab(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, "classifierd/src/classifierd/cli.py", text)
    assert main([str(tmp_path)]) == 1
    assert "classifierd may not import streamfs_lab" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("classifierd/src/classifierd/cli.py", 'importlib.import_module("streamfs_lab.cli")\n'),
        ("classifierd/src/classifierd/cli.py", "from . import streamfs_lab\n"),
        ("lab/python/src/streamfs_lab/cli.py", "from classifierd import records\n"),
        ("bench/learner.py", "from streamfs_lab.workloads import WORKLOADS\n"),
    ],
)
def test_other_imports_are_allowed(tmp_path: Path, source: str, text: str) -> None:
    write(tmp_path, source, text)
    assert main([str(tmp_path)]) == 0


def test_an_include_that_is_no_path_from_the_root_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, "pmem/region.h")
    write(tmp_path, "pmem/region.cc", '#include "region.h"\n')
    assert len(list(include_errors(tmp_path))) == 1


def test_the_exit_code_tells_a_bad_tree_from_a_good_one(tmp_path: Path) -> None:
    write(tmp_path, "pmem/region.h")
    write(tmp_path, "pmem/region.cc", '#include "pmem/region.h"\n')
    assert main([str(tmp_path)]) == 0
    write(tmp_path, "base/types.h", '#include "pmem/region.h"\n')
    assert main([str(tmp_path)]) == 1


def test_a_long_function_is_reported_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = "  work();\n" * 80
    write(tmp_path, "pmem/long.cc", f"namespace a {{\n\nvoid long_one() {{\n{body}}}\n\n}}\n")
    assert main([str(tmp_path)]) == 0
    assert "pmem/long.cc:3: function of 82 lines" in capsys.readouterr().out


def test_a_function_starts_at_its_head_even_if_that_has_two_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = "int looks(int a,\n          int b) {\n  do {\n"
    tail = "  } while (more());\n}\n"
    write(tmp_path, "pmem/short.cc", head + tail + "void other() {\n" + "  work();\n" * 67 + "}\n")
    write(tmp_path, "pmem/long.cc", head + "    work();\n" * 80 + tail)
    assert main([str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "short.cc" not in shown
    assert "pmem/long.cc:1: function of 85 lines" in shown


def test_every_floor_of_the_project_is_known() -> None:
    root = Path(__file__).resolve().parents[2]
    folders = [path.parent.relative_to(root) for path in root.glob("*/CMakeLists.txt")]
    folders += [path.parent.relative_to(root) for path in root.glob("fuse-fs/*/CMakeLists.txt")]
    unknown = {str(f) for f in folders if floor_of(f"{f}/x.h") is None}
    unknown -= {"fuse-fs", "systemd"}  # no code of their own
    assert unknown == set()
    assert len(folders) > len(FLOORS) / 2


def test_a_long_table_of_constants_is_no_function(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "    1,\n" * 80
    text = f"const std::array kOne = {{\n{rows}}};\nconstexpr int kTwo[] = {{\n    1, 2}};\n"
    write(tmp_path, "pmem/table.cc", text + "void work() {}\n" * 80 + "}\n")
    assert main([str(tmp_path)]) == 0
    assert "table.cc" not in capsys.readouterr().out
