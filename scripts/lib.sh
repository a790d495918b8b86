# The scripts of this folder and of .ci/ share this. Source it; it runs nothing.
# shellcheck shell=bash

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
BUILD=$ROOT/build
VENV=$BUILD/venv
STAMPS=$BUILD/.setup

say() { printf '%s\n' "$*"; }
die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# as_root <why> <command>...: root only where it is needed, and the reason said when we must ask.
as_root() {
  local why=$1
  shift
  if [[ $(id -u) -eq 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null; then
    say "Root is needed to $why; asking sudo."
    sudo -- "$@"
  else
    die "root is needed to $why, and there is no sudo: run as root: $*"
  fi
}

# hash_of <path>...: one hash over files, and over every source file under folders.
hash_of() {
  { find "$@" -type f ! -path '*/__pycache__/*' ! -path '*/.*_cache/*' ! -path '*.egg-info/*' \
    -print0 2>/dev/null || true; } | sort -z | xargs -0 -r sha256sum | sha256sum | cut -d' ' -f1
}

# Everything that tests of the laboratory depend on (tests/lint/test_gate.py).
LAB_FILES=(CMakeLists.txt CMakePresets.json cmake requirements.lock pyproject.toml base learning pmem ssd
  trace lab classifierd tests/figures tests/unit/lab tests/unit/ssd tests/support tests/CMakeLists.txt
  docs/REPRODUCTION.md docs/examples .ci/leaks.py .ci/pytest_fuse.py scripts/lib.sh scripts/stage
  scripts/stages.sh)
lab_hash() { (cd "$ROOT" && hash_of "${LAB_FILES[@]}"); }

# A stage of set-up is done when its stamp holds the hash of what went into it.
is_stamped() { [[ -f $STAMPS/$1 && $(<"$STAMPS/$1") == "$2" ]]; }
stamp() { printf '%s\n' "$2" >"$STAMPS/$1"; }

# A file that was compiled before, in this checkout or another, is not compiled again; meson asks for
# ccache by itself.
use_ccache() {
  command -v ccache >/dev/null || return 0
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
  export CCACHE_BASEDIR=$ROOT CCACHE_NOHASHDIR=1
}
use_ccache
