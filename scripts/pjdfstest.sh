# Installs pjdfstest, the POSIX conformance tests, into build/pjdfstest. Source it after lib.sh.
# shellcheck shell=bash

readonly PJDFSTEST_VERSION=0.2.2
readonly PJDFSTEST_RUST=1.85 # the oldest cargo that builds it

# Cargo in the PATH, or where rustup puts it.
find_cargo() {
  local place
  for place in "$(command -v cargo || true)" "${CARGO_HOME:-$HOME/.cargo}/bin/cargo" \
    /usr/local/cargo/bin/cargo; do
    [[ -x $place ]] && printf '%s\n' "$place" && return
  done
  return 1
}

is_new_enough() { [[ $(printf '%s\n' "$PJDFSTEST_RUST" "$1" | sort -V | head -n1) == "$PJDFSTEST_RUST" ]]; }

# Debian 13's cargo will do, Debian 12's is too old.
install_cargo() {
  local candidate
  candidate=$(apt-cache policy cargo 2>/dev/null | awk '/Candidate:/ {print $2}')
  [[ -n $candidate && $candidate != '(none)' ]] && is_new_enough "$candidate" ||
    die "the conformance tests need cargo $PJDFSTEST_RUST or newer (https://rustup.rs); apt has ${candidate:-none}"
  as_root "install cargo with apt" env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq -y --no-install-recommends install cargo >"$BUILD/apt.log" 2>&1 ||
    die "apt could not install cargo: see build/apt.log"
}

install_pjdfstest() {
  local cargo version root=$BUILD/pjdfstest
  [[ $("$root/bin/pjdfstest" --version 2>/dev/null) == "pjdfstest $PJDFSTEST_VERSION" ]] && return
  cargo=$(find_cargo) || { install_cargo && cargo=$(find_cargo); }
  version=$("$cargo" --version | awk '{print $2}')
  is_new_enough "$version" ||
    die "the conformance tests need cargo $PJDFSTEST_RUST or newer (https://rustup.rs); $cargo is $version"
  say "Installing pjdfstest $PJDFSTEST_VERSION into build/pjdfstest"
  "$cargo" install --quiet --locked --root "$root" --target-dir "$root/target" \
    --version "$PJDFSTEST_VERSION" pjdfstest >"$BUILD/pjdfstest.log" 2>&1 ||
    die "cargo could not install pjdfstest $PJDFSTEST_VERSION: see build/pjdfstest.log"
  rm -rf "$root/target"
}
