"""The header compiles anywhere; the libraries export what they promise, and need little."""

import re
from pathlib import Path

import pytest
from tests.integration.libstream.harness import LIB, PRELOAD, preload_functions, run
from tests.integration.pairs import BIN, ROOT

PRELOAD_SIZE_MAX = 64 * 1024


@pytest.mark.parametrize(
    ("compiler", "standard"),
    [("cc", s) for s in ("c89", "c99", "c11", "c17", "c2x")]
    + [("c++", s) for s in ("c++98", "c++11", "c++20", "c++2b")],
)
def test_the_header_compiles_alone_in_every_standard(
    compiler: str, standard: str, tmp_path: Path
) -> None:
    source = tmp_path / ("a.c" if compiler == "cc" else "a.cc")
    source.write_text(
        "#include <libstream.h>\n#include <libstream.h>\n"
        "int main(void) {\n"
        "  struct stream_vstream stream;\n"
        '  return stream_open(&stream, "a") == 0 && stream_hint_fd(0, STREAM_LIFE_SHORT) < 2\n'
        "             ? 0 : 1;\n}\n"
    )
    program = tmp_path / "a"
    warnings = ["-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-pedantic-errors", "-Werror"]
    include = f"-I{ROOT / 'libstream/include'}"
    link = [f"-L{LIB}", "-lstream", f"-Wl,-rpath,{LIB}"]
    done = run(compiler, f"-std={standard}", *warnings, include, "-o", program, source, *link)
    assert done.status == 0, done.err
    assert run(program).status == 0


def exported(library: Path) -> set[str]:
    """Return the symbols a library defines for others, without version nodes."""
    lines = run("nm", "-D", "--defined-only", library).out.splitlines()
    return {line.split()[2] for line in lines if line.split()[1] != "A"}


def names_in(export_map: Path) -> set[str]:
    text = export_map.read_text()
    block = text[text.index("global:") + len("global:") : text.index("local:")]
    assert re.search(r"local:\s*\*;", text)
    return set(re.findall(r"(\w+);", block))


def test_the_library_exports_its_map_and_the_map_is_the_header() -> None:
    names = names_in(ROOT / "libstream/libstream.map")
    assert exported(LIB / "libstream.so") == {f"{name}@@LIBSTREAM_0.1" for name in names}
    header = (ROOT / "libstream/include/libstream.h").read_text()
    assert names == set(re.findall(r"^(?:int|const char\*) (stream_\w+)\(", header, re.MULTILINE))


def test_the_preload_library_exports_what_it_stands_in_for_and_nothing_else() -> None:
    names = preload_functions()
    assert len(names) == 26
    assert exported(PRELOAD) == names == names_in(ROOT / "libstream/preload.map")


@pytest.mark.parametrize("library", ["libstream.so", "libstream_preload.so"])
def test_nothing_allocates_or_locks(library: str) -> None:
    used = {line.split()[1] for line in run("nm", "-D", "-u", LIB / library).out.splitlines()}
    names = {name.split("@")[0] for name in used}
    forbidden = re.compile(r".*(alloc|pthread|mtx_|call_once|free$|strdup|asprintf|setlocale)")
    assert not {name for name in names if forbidden.match(name)}
    assert run("readelf", "-d", LIB / library).out.count("(NEEDED)") == 1


def test_the_preload_library_is_small(tmp_path: Path) -> None:
    run("strip", "-o", tmp_path / "stripped.so", PRELOAD)
    assert (tmp_path / "stripped.so").stat().st_size <= PRELOAD_SIZE_MAX


def test_pkg_config_finds_what_was_installed(tmp_path: Path) -> None:
    done = run("cmake", "--install", BIN.parent / "libstream", "--prefix", tmp_path)
    assert done.status == 0, done.err
    folders = [path.parent for path in tmp_path.rglob("libstream.pc")]
    assert len(folders) == 1
    text = next(tmp_path.rglob("libstream.pc")).read_text()
    assert re.search(r"^Version: \d+\.\d+\.\d+$", text, re.MULTILINE)
    env = {"PKG_CONFIG_PATH": str(folders[0])}
    flags = run(
        "pkg-config", f"--define-variable=prefix={tmp_path}", "--libs", "libstream", env=env
    )
    assert "-lstream" in flags.out
    assert (tmp_path / "bin/stream-run").exists()
