# The commands of the gate's stages (tests/gate/stages.cmake). scripts/stage sources it after lib.sh.
# shellcheck shell=bash
#
# A command prints what it finds and returns whether it passed. `skip` ends it where this machine
# cannot do it. $TMPDIR is a folder of this run's own.
source "$ROOT/scripts/conformance.sh"
source "$ROOT/scripts/libfuse.sh"
source "$ROOT/scripts/vm.sh"

skip() {
  say "skipped: $1"
  say "$1" >>"$STREAMFS_SKIPPED"
  exit 77
}

# long_or <words> <words with --long>
long_or() { [[ -z ${STREAMFS_LONG:-} ]] && say "$1" || say "$2"; }

python() { "$VENV/bin/python" "$@"; }
watched() { python .ci/leaks.py "$@"; }

# logged <name> <command>...: writes build/NAME.log; prints it, without progress, if the command fails.
logged() {
  local log=$BUILD/$1.log
  "${@:2}" >"$log" 2>&1 || { grep -v '^\[' "$log" && return 1; }
}

configure() { logged "$1" cmake --preset "$1"; }

build() {
  configure "$1"
  logged "$1" cmake --build --preset "$1"
}

# release_program <target>: one of the release preset's that is built only when asked for. Only tests
# behind call it, so one build of the folder runs at a time.
release_program() { logged "$1" cmake --build "$BUILD/release" --target "$1"; }

# ctest_preset <preset> <option>...
# CMakePresets.json leaves tests of a single thread out of the thread sanitizer's preset. The thread
# sanitizer needs an address space without randomization.
ctest_preset() {
  local plain=() log=$BUILD/ctest-$1.log code=0
  [[ $1 != tsan ]] || ! setarch -R true 2>/dev/null || plain=(setarch -R)
  watched "${plain[@]}" ctest --preset "$1" -j "$(nproc)" "${@:2}" >"$log" 2>&1 || code=$?
  if [[ $code -eq 0 ]]; then grep 'tests passed' "$log"; else grep -v ' Passed ' "$log"; fi
  sed -nE 's/^.*Test +#[0-9]+: ([^ ]+) .*\*\*\*Skipped.*/\1/p' "$log" >>"$STREAMFS_SKIPPED"
  return "$code"
}

# Crash tests take minutes, so only --long runs them without a sanitizer.
plain_tests() {
  local some=(-LE crash)
  [[ -z ${STREAMFS_LONG:-} ]] || some=()
  ctest_preset dev "${some[@]}"
}

# A folder that promises tests and has none is a mistake, not a pass.
check_test_folders() {
  local folder bad=0
  for folder in tests/unit/*/ tests/crash/ tests/figures/; do
    [[ -d $folder ]] || continue
    [[ -n $(find "$folder" -name '*_test.*' -o -name 'test_*.py') ]] && continue
    say "$folder has no tests" && bad=1
  done
  return $bad
}

# The figures of the papers, simulated at a small size.
figures() {
  release_program figures_test
  watched "$BUILD/release/bin/figures_test" --gtest_brief=1
}

# All sequences of up to two operations, and a sample of those of three.
crash_sequences() {
  release_program sequences
  "$BUILD/release/bin/sequences" --length 3 --draw "$(long_or 200 30000)" --jobs "$(nproc)"
}

# META and DATA cut together: all sequences of up to two operations, and samples of longer ones and
# with META kept twice.
joint_cuts() {
  release_program joint
  "$BUILD/release/bin/joint" --length "$(long_or 3 4)" --draw "$(long_or 300 20000)" \
    --twice "$(long_or 60 4000)" --jobs "$(nproc)"
}

# A flush or a write of DATA fails. The gate draws positions; --long runs the first 5,000 of each.
fault_sweep() {
  local sweep=("$BUILD/release/bin/fault_sweep" --jobs "$(nproc)")
  release_program fault_sweep
  if [[ -z ${STREAMFS_LONG:-} ]]; then
    "${sweep[@]}" --flushes 2000 --writes 4000 --draw 100
    "${sweep[@]}" --flushes 2000 --writes 4000 --draw 30 --persistent
  else
    "${sweep[@]}" --flushes 5000 --writes 5000
    "${sweep[@]}" --flushes 5000 --writes 5000 --draw 1000 --persistent
  fi
}

# The disk of these tests links nothing of streamfs. The second run shows that a disk that ignores
# flushes is found out.
power_cuts() {
  [[ $(id -u) -eq 0 ]] || skip "power cuts need root to mount disks"
  watched "$VENV/bin/python" -m tests.powercut.cuts --cuts "$(long_or 36 2000)"
  watched "$VENV/bin/python" -m tests.powercut.cuts --lie data
}

# Half a minute for each target with a fixed seed. --long runs 50 million executions in all, keeps their
# inputs for the next time, and demands that the inputs reach 85 % of the lines of fuse-fs/meta.
fuzz() {
  local corpus=$BUILD/fuzz-corpus
  if [[ -z ${STREAMFS_LONG:-} ]]; then
    rm -rf "$BUILD/asan/corpus"
    python tests/fuzz/campaign.py --seconds 30 --seed 1 "$BUILD/asan"
    return
  fi
  build fuzz
  build fuzz-fast
  build fuzz-coverage
  python tests/fuzz/campaign.py --executions 50M --fast "$BUILD/fuzz-fast" --corpus "$corpus" \
    "$BUILD/fuzz"
  python tests/fuzz/coverage.py --least 85 "$BUILD/fuzz-coverage" "$BUILD/fuzz/seeds" "$corpus"
}

pytest() { watched "$VENV/bin/python" -m pytest -q -p pytest_fuse "$@"; }

python_tests() {
  local marks=(-m "not long")
  [[ -z ${STREAMFS_LONG:-} ]] || marks=()
  pytest "${marks[@]}" "$@"
}

# Every folder of pytest files that has no stage of its own.
other_python_tests() {
  local folders
  [[ -z ${STREAMFS_LONG:-} ]] || install_browser
  mapfile -t folders < <(find tests classifierd -name 'test_*.py' ! -path 'tests/integration/*' \
    ! -path 'tests/vm/*' ! -path 'tests/packages/*' -printf '%h\n' | sort -u)
  python_tests "${folders[@]}"
}

# The Python tests that a quick run has time for, beside lab/python.
quick_python_tests() { pytest -m "not long" classifierd/tests tests/lint; }

# Integration tests wait for programs and clocks, so a busy machine can fail a correct one. Up to three
# failed tests are left to integration_again, unless pytest failed otherwise (any exit code but 1), or
# something was left behind (the exit code of .ci/leaks.py).
integration_tests() {
  local cache=$BUILD/pytest-cache/v/cache/lastfailed code=0
  rm -f "$cache"
  python_tests tests/integration || code=$?
  [[ $code -eq 1 ]] || return "$code"
  python -c 'import json, sys; print(*json.load(open(sys.argv[1])), sep="\n")' "$cache" \
    >"$STREAMFS_NOTES/again"
  [[ $(wc -l <"$STREAMFS_NOTES/again") -le 3 ]] || { rm "$STREAMFS_NOTES/again" && return 1; }
}

# Repeats with nothing beside them the tests that failed. The closing line counts those that pass then,
# because each has a race, in the test or in the code.
integration_again() {
  local failed
  [[ -s $STREAMFS_NOTES/again ]] || return 0
  mapfile -t failed <"$STREAMFS_NOTES/again"
  python_tests "${failed[@]}"
  mv "$STREAMFS_NOTES/again" "$STREAMFS_NOTES/second-attempts"
}

# Names each file once; `build/venv/bin/clang-format -i FILE` mends it.
format_check() {
  local output
  output=$(git ls-files -z --cached --others --exclude-standard '*.cc' '*.h' '*.c' |
    xargs -0 -r "$VENV/bin/clang-format" --dry-run -Werror -ferror-limit=1 2>&1) && return 0
  sed -nE 's/^([^ :]+):[0-9:]+ error: .*/\1 is not formatted/p; /^[^ :]+: /p' <<<"$output" | sort -u
  return 1
}

# The packages have settings of their own, so mypy checks each from its own folder.
python_lint() {
  local folder
  "$VENV/bin/ruff" check -q --cache-dir "$BUILD/ruff-cache" .
  "$VENV/bin/ruff" format -q --check --cache-dir "$BUILD/ruff-cache" .
  "$VENV/bin/mypy" .ci tests bench
  for folder in classifierd lab/python; do
    (cd "$folder" && "$VENV/bin/mypy" --cache-dir "$BUILD/mypy-cache/$folder")
  done
}

# pjdfstest and fsx, each on a mount of its own.
conformance() {
  [[ $(id -u) -eq 0 ]] || skip "conformance tests need root to change users"
  install_conformance
  watched "$VENV/bin/python" -m tests.conformance.pjdfstest "$CONFORMANCE/bin/pjdfstest"
  watched "$VENV/bin/python" -m tests.conformance.fsx "$CONFORMANCE/bin/fsx" "$(long_or 20000 1000000)"
}

# The public xfstests, built in a checkout of the version that tests/conformance/xfstests.toml names.
xfstests() {
  [[ -n ${STREAMFS_XFSTESTS:-} ]] || skip "STREAMFS_XFSTESTS does not name a built checkout of xfstests"
  watched "$VENV/bin/python" -m tests.conformance.xfstests "$STREAMFS_XFSTESTS"
}

# A real Linux with an FDP SSD and NVDIMMs. Needs a network once, for QEMU and for making its guest.
virtual_machine() {
  [[ -z ${STREAMFS_LONG:-} ]] || install_vm_f2fs
  python_tests tests/vm
}

# The packages on bare Debian systems, which mmdebstrap makes. Needs root and a network; fails without them.
packages() {
  vm_install_tools
  pytest tests/packages
}

# stress-ng, dbench, git, and the build of streamfs itself on a mount.
everyday() {
  [[ $(id -u) -eq 0 ]] || skip "stress-ng needs root"
  install_everyday
  watched "$VENV/bin/python" -m tests.conformance.everyday
}

tidy() {
  local quick=(--quick)
  [[ -z ${STREAMFS_LONG:-} ]] || quick=()
  python .ci/clang_tidy.py "${quick[@]}" "$BUILD/dev" "$BUILD/tidy-cache"
}
