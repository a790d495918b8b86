# Installs the conformance tests that others wrote into build/conformance. Source it after lib.sh.
# shellcheck shell=bash

readonly CONFORMANCE=$BUILD/conformance
readonly CONFORMANCE_CRATES=(pjdfstest@0.2.2 fsx@0.3.2)
readonly CONFORMANCE_RUST=1.85 # the oldest cargo that builds them

# Cargo in the PATH, or where rustup puts it.
find_cargo() {
  local place
  for place in "$(command -v cargo || true)" "${CARGO_HOME:-$HOME/.cargo}/bin/cargo" \
    /usr/local/cargo/bin/cargo; do
    [[ -x $place ]] && printf '%s\n' "$place" && return
  done
  return 1
}

is_new_enough() { [[ $(printf '%s\n' "$CONFORMANCE_RUST" "$1" | sort -V | head -n1) == "$CONFORMANCE_RUST" ]]; }

# candidate <package>: the version apt would install.
candidate() { apt-cache policy "$1" 2>/dev/null | awk '/Candidate:/ && $2 != "(none)" {print $2}'; }

# Debian 13's cargo will do. Debian 12's is too old, but it has a newer one for its browsers.
install_cargo() {
  local package version
  for package in cargo cargo-web; do
    version=$(candidate "$package")
    [[ -n $version ]] && is_new_enough "$version" || continue
    as_root "install $package with apt" env DEBIAN_FRONTEND=noninteractive \
      apt-get -qq -y --no-install-recommends install "$package" >"$BUILD/apt.log" 2>&1 ||
      die "apt could not install $package: see build/apt.log"
    return
  done
  die "the conformance tests need cargo $CONFORMANCE_RUST or newer (https://rustup.rs); apt has none"
}

# Loads that only --long puts on a mount.
install_everyday() {
  [[ -z $(command -v stress-ng) || -z $(command -v dbench) ]] || return 0
  as_root "install stress-ng and dbench with apt" env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq -y --no-install-recommends install stress-ng dbench >"$BUILD/apt.log" 2>&1 ||
    die "apt could not install stress-ng and dbench: see build/apt.log"
}

# Installs a browser for the report's page, for --long and for scripts/pictures.
install_browser() {
  [[ -z $(command -v chromedriver) ]] || return 0
  as_root "install chromium with apt" env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq -y --no-install-recommends install chromium chromium-driver >"$BUILD/apt.log" 2>&1 ||
    die "apt could not install chromium: see build/apt.log"
}

# install_crate <name> <version>
install_crate() {
  local cargo version log=$BUILD/conformance-$1.log
  [[ $("$CONFORMANCE/bin/$1" --version 2>/dev/null) == "$1 $2" ]] && return
  cargo=$(find_cargo) || { install_cargo && cargo=$(find_cargo); }
  version=$("$cargo" --version | awk '{print $2}')
  is_new_enough "$version" ||
    die "the conformance tests need cargo $CONFORMANCE_RUST or newer (https://rustup.rs); $cargo is $version"
  say "Installing $1 $2 into build/conformance"
  # Not optimized: it is compiled on every new machine, and runs for seconds.
  "$cargo" install --debug --quiet --locked --root "$CONFORMANCE" --target-dir "$CONFORMANCE/target" \
    --version "$2" "$1" >"$log" 2>&1 || die "cargo could not install $1 $2: see $log"
}

install_conformance() {
  local crate
  for crate in "${CONFORMANCE_CRATES[@]}"; do install_crate "${crate%@*}" "${crate#*@}"; done
  rm -rf "$CONFORMANCE/target"
}
