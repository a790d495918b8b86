# Installs Debian packages without starting the services that they bring. Source it after lib.sh.
# shellcheck shell=bash

# missing_packages <package>...: prints those that are not installed.
missing_packages() {
  local -A installed=()
  local name status
  while read -r name status; do
    [[ $status == installed ]] && installed[$name]=1
  done < <(dpkg-query -W -f '${Package} ${db:Status-Status}\n' \
    "$@" 2>/dev/null || true)
  for name in "$@"; do
    [[ -n ${installed[$name]:-} ]] || say "$name"
  done
}

# add_for_now <mode> <file> <line>...: makes a file with our mark. Leaves a file of somebody else alone.
add_for_now() {
  local mark='# scripts/setup of streamfs made this file, and removes it when apt has ended.'
  ! { [[ -e $2 ]] && ! grep -qsF "$mark" "$2"; } || return 0
  mkdir -p "${2%/*}"
  install -m "$1" <(printf '%s\n' "${@:3:1}" "$mark" "${@:4}") "$2"
  ADDED+=("$2")
}

# apt_install <package>...: run by root.
# Debian's postgresql makes a cluster and starts it, and its etcd starts, unless two files forbid it;
# tests and benches start servers of their own. A background process removes the files as soon as no process
# holds the pipe HOLD: this shell and apt inherit it, so the files are removed even when the shell is killed.
apt_install() {
  local ADDED=() HOLD remover code=0
  add_for_now 644 /etc/postgresql-common/createcluster.d/streamfs-setup.conf '' 'create_main_cluster = false'
  add_for_now 755 /usr/sbin/policy-rc.d '#!/bin/sh' 'exit 101'
  exec {HOLD}> >(trap '' INT TERM HUP && cat >/dev/null; rm -f -- "${ADDED[@]}")
  remover=$!
  DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install "$@" || code=$?
  exec {HOLD}>&-
  wait "$remover"
  [[ $code -eq 0 ]] || return "$code"
  [[ " $* " != *" etcd-server "* ]] || update-rc.d etcd disable
}

# install_packages <package>...: those that are missing.
install_packages() {
  local missing
  mapfile -t missing < <(missing_packages "$@")
  [[ ${#missing[@]} -eq 0 ]] && return
  say "Installing ${#missing[@]} packages: ${missing[*]}"
  as_root "refresh apt's lists" apt-get -qq update
  as_root "install packages with apt" bash -c "$(declare -f add_for_now apt_install); apt_install \"\$@\"" \
    apt_install "${missing[@]}" >"$BUILD/apt.log" 2>&1 ||
    die "apt could not install them: see build/apt.log"
}
