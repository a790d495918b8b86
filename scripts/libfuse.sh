# build_libfuse: libfuse with io_uring into build/deps, static, from Debian's own source package.
# Debian's binaries are built without io_uring. scripts/setup sources this. It never fails the set-up:
# without the pinned version it tries the newest of the suite, then leaves the distribution's.
# shellcheck shell=bash

LIBFUSE_VERSION=3.18.3-1
LIBFUSE_SUITE=forky
LIBFUSE_SHA256="\
bcd19582c5e30f7fe45dd86a5540e998590aa01903afc7ebcbeea6c8ac5421ee  fuse3_3.18.3.orig.tar.gz
c562192287e9ab78656e3ba1faf2cf837cbb0b775f62b97ba1f9993e7eb596e4  fuse3_3.18.3-1.debian.tar.xz"
LIBFUSE_PATCH=$ROOT/third_party/libfuse-3.18.3-uring-async-reply.patch

# A deb-src entry of its own in a private apt directory: the machine's apt stays as it is.
# A frozen mirror's index is past its date; the signature and our checksums hold all the same.
libfuse_apt() {
  apt-get -qq -o Acquire::Check-Valid-Until=false -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$1/parts" \
    -o "Dir::State::lists=$1/lists" -o "Dir::Cache=$1/cache" -o APT::Sandbox::User=root "${@:2}"
}

# The mirror the machine already uses for Debian itself (not security, not a third party's).
debian_mirror() {
  local uri
  uri=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
    grep -E '/debian/?$' | head -n 1) || true
  say "${uri:-http://deb.debian.org/debian}"
}

libfuse_prepare_apt() {
  mkdir -p "$1"/{parts,lists/partial,cache/archives/partial}
  cat >"$1/parts/libfuse.sources" <<EOF
Types: deb-src
URIs: $(debian_mirror)
Suites: $LIBFUSE_SUITE
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
EOF
  libfuse_apt "$1" update
}

# Into the current directory. The pinned version must match the checksums; a newer one has apt's
# signature check alone.
libfuse_download() {
  if libfuse_apt "$1" --download-only source "fuse3=$LIBFUSE_VERSION" 2>/dev/null; then
    sha256sum --quiet -c - <<<"$LIBFUSE_SHA256"
  else
    say "libfuse $LIBFUSE_VERSION is gone from $LIBFUSE_SUITE; taking the newest there."
    libfuse_apt "$1" --download-only source fuse3
  fi
}

libfuse_patch() {
  if patch --dry-run -s -p0 -d "$1" <"$LIBFUSE_PATCH" >/dev/null; then
    patch -s -p0 -d "$1" <"$LIBFUSE_PATCH"
  else
    say "The libfuse patch does not apply to this version; building it as it is."
  fi
}

libfuse_compile() {
  meson setup "$1/out" "$1/source" --prefix="$2" --libdir=lib --buildtype=release \
    -Ddefault_library=static -Dexamples=true -Dtests=false -Duseroot=false -Dutils=false
  ninja -C "$1/out" lib/libfuse3.a
  rm -rf "$2"
  meson install -C "$1/out" --no-rebuild
  tar -C "$1" -czf "$2/libfuse-source.tar.gz" source  # as it was built: the source package ships it
  # bench/meta measures it beside streamfs, and goes without where it cannot be built.
  ninja -C "$1/out" example/passthrough_hp && install -Dt "$2/bin" "$1/out/example/passthrough_hp" ||
    say "passthrough_hp could not be built"
}

libfuse_steps() {
  set -euo pipefail
  local work=$1
  cd "$work"
  libfuse_prepare_apt "$work/apt" 2>"$BUILD/libfuse.log"
  libfuse_download "$work/apt"
  dpkg-source --no-check -x fuse3_*.dsc source >/dev/null
  libfuse_patch source
  libfuse_compile "$work" "$BUILD/deps" >>"$BUILD/libfuse.log" 2>&1
}

build_libfuse() {
  local work
  work=$(mktemp -d "$BUILD/libfuse.XXXXXX")
  # A child shell, so that set -e holds inside although the result is tested here.
  if bash -c 'source "$1"; source "$2"; libfuse_steps "$3"' _ \
    "$ROOT/scripts/lib.sh" "$ROOT/scripts/libfuse.sh" "$work"; then
    say "libfuse $(PKG_CONFIG_PATH=$BUILD/deps/lib/pkgconfig pkg-config --modversion fuse3)" \
      "with io_uring built into build/deps"
  else
    say "Could not build libfuse (see build/libfuse.log): using the distribution's, without io_uring." \
      "Remove build/.setup/libfuse to try again."
    rm -rf "$BUILD/deps"
  fi
  rm -rf "$work"
}
