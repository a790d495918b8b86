"""The header compiles anywhere; the libraries export what they promise, and need little."""

import re
import shutil
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


@pytest.mark.parametrize("standard", ["c++11", "c++17", "c++20", "c++2b"])
def test_the_cplusplus_header_compiles_alone(standard: str, tmp_path: Path) -> None:
    source = tmp_path / "a.cc"
    source.write_text(
        "#include <libstream.hpp>\n#include <libstream.hpp>\n"
        "int main() {\n"
        '  try { libstream::VStream::named("a/b"); return 1; } catch (std::system_error&) {}\n'
        "  return libstream::VStream::for_seconds(60).tag(-1).error() ? 0 : 1;\n}\n"
    )
    warnings = ["-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-pedantic-errors", "-Werror"]
    include = f"-I{ROOT / 'libstream/include'}"
    link = [f"-L{LIB}", "-lstream", f"-Wl,-rpath,{LIB}"]
    program = tmp_path / "a"
    done = run("c++", f"-std={standard}", *warnings, include, "-o", program, source, *link)
    assert done.status == 0, done.err
    assert run(program).status == 0


# The parts of the ABI that programs compile in: sizes, places of fields, values.
ABI_PROGRAM = r"""
#include <libstream.h>
#include <stddef.h>
#include <stdio.h>
#define AT(type, field) printf(" " #field " %zu", offsetof(struct type, field))
int main(void) {
  printf("stream_vstream %zu", sizeof(struct stream_vstream));
  AT(stream_vstream, number), AT(stream_vstream, name);
  printf("\nstream_info %zu", sizeof(struct stream_info));
  AT(stream_info, vstream), AT(stream_info, pstream), AT(stream_info, life);
  AT(stream_info, lifetime_bytes), AT(stream_info, name);
  printf("\nstream_device %zu", sizeof(struct stream_device));
  AT(stream_device, pstreams), AT(stream_device, takes_labels), AT(stream_device, mechanism);
  printf("\nresults %d %d %d lives %d %d %d %d %d %d name %d\n", STREAM_HONOURED,
         STREAM_NOT_STREAMFS, STREAM_PASSED_ON, STREAM_LIFE_NOT_SET, STREAM_LIFE_NONE,
         STREAM_LIFE_SHORT, STREAM_LIFE_MEDIUM, STREAM_LIFE_LONG, STREAM_LIFE_EXTREME,
         STREAM_NAME_MAX);
  return 0;
}
"""


def test_the_abi_is_the_one_written_down(tmp_path: Path) -> None:
    """A change of libstream/abi.txt is a change of the ABI: lines may come, none may change."""
    source = tmp_path / "abi.c"
    source.write_text(ABI_PROGRAM)
    include = f"-I{ROOT / 'libstream/include'}"
    assert run("cc", include, "-o", tmp_path / "abi", source).status == 0
    header = (ROOT / "libstream/include/libstream.h").read_text()
    functions = re.findall(r"^((?:int|const char\*) stream_\w+\([^;]*\));", header, re.MULTILINE)
    found = run(tmp_path / "abi").out + "".join(
        f"{line}\n" for line in sorted(re.sub(r"\s+", " ", each) for each in functions)
    )
    assert found == (ROOT / "libstream/abi.txt").read_text()


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
    assert len(names) == 28
    assert exported(PRELOAD) == names == names_in(ROOT / "libstream/preload.map")


@pytest.mark.parametrize("library", ["libstream.so", "libstream_preload.so"])
def test_nothing_allocates_or_locks(library: str) -> None:
    used = {line.split()[1] for line in run("nm", "-D", "-u", LIB / library).out.splitlines()}
    names = {name.split("@")[0] for name in used}
    forbidden = re.compile(r".*(alloc|pthread|mtx_|call_once|free$|strdup|asprintf|setlocale)")
    assert not {name for name in names if forbidden.match(name)}
    assert run("readelf", "-d", LIB / library).out.count("(NEEDED)") == 1


@pytest.mark.parametrize(("library", "own"), [("libstream.so", 0), ("libstream_preload.so", 1)])
def test_no_constructor_runs_but_the_one_that_reads_profiles(library: str, own: int) -> None:
    """Beside the one that gcc's crtbegin.o puts into every library."""
    sections = run("readelf", "-W", "-S", LIB / library).out
    found = re.search(r"\.init_array\s+INIT_ARRAY\s+\w+ \w+ (\w+)", sections)
    assert found is not None
    assert int(found.group(1), 16) == 8 * (1 + own)


def test_the_preload_library_is_small(tmp_path: Path) -> None:
    run("strip", "-o", tmp_path / "stripped.so", PRELOAD)
    assert (tmp_path / "stripped.so").stat().st_size <= PRELOAD_SIZE_MAX


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The prefix of an installation."""
    prefix = tmp_path_factory.mktemp("prefix")
    done = run("cmake", "--install", BIN.parent / "libstream", "--prefix", prefix)
    assert done.status == 0, done.err
    return prefix


def test_cmake_finds_what_was_installed(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(user LANGUAGES C)\n"
        "find_package(libstream 0.1 REQUIRED)\n"
        f"add_executable(user {ROOT}/docs/examples/libstream_label.c)\n"
        "target_link_libraries(user libstream::stream)\n"
    )
    build = tmp_path / "build"
    made = run("cmake", "-S", tmp_path, "-B", build, f"-DCMAKE_PREFIX_PATH={installed}")
    assert made.status == 0, made.err
    assert run("cmake", "--build", build).status == 0
    done = run(build / "user", tmp_path / "log")
    assert done.out == "no streamfs here: written all the same\n"
    assert (tmp_path / "log").read_text() == "an order\n"


def test_python_finds_what_was_installed(installed: Path) -> None:
    library = next(installed.rglob("libstream.so.0"))
    env = {"PYTHONPATH": str(installed / "lib/python3/dist-packages"), "LIBSTREAM": str(library)}
    script = "import libstream; print(libstream.version(), libstream.query('/'))"
    assert re.fullmatch(r"\d+\.\d+\.\d+ None\n", run("python3", "-c", script, env=env).out)


def test_manual_pages_name_all_there_is(installed: Path) -> None:
    pages = {page.name: page.read_text() for page in (installed / "share/man").rglob("*.[135]")}
    assert set(pages) == {"libstream.3", "stream-run.1", "streamfs-profiles.5"}
    for name in names_in(ROOT / "libstream/libstream.map"):
        assert f"{name}(" in pages["libstream.3"], name
    options = set(re.findall(r"--([a-z]+)", run(BIN / "stream-run", "--help").out))
    told = set(re.findall(r"\\-\\-([a-z]+)", pages["stream-run.1"]))
    assert told == options
    profiles = {path.stem for path in (installed / "share/streamfs/profiles").iterdir()}
    assert profiles == {path.stem for path in (ROOT / "libstream/profiles").glob("*.toml")}
    for profile in profiles:
        assert f".BR {profile} " in pages["streamfs-profiles.5"], profile
    parser = (ROOT / "libstream/profile.c").read_text()
    for key in re.findall(r'\{"(\w+)", STREAM_TOML', parser):
        assert f".BI {key} " in pages["streamfs-profiles.5"], key


@pytest.mark.parametrize("page", ["libstream.3", "stream-run.1", "streamfs-profiles.5"])
def test_manual_pages_are_well_formed(page: str) -> None:
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    done = run("groff", "-man", "-Tutf8", "-ww", "-z", ROOT / "libstream/man" / page)
    assert (done.status, done.err) == (0, "")


def test_pkg_config_finds_what_was_installed(installed: Path) -> None:
    tmp_path = installed
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
