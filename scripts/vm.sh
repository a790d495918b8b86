# Installs QEMU and makes the guest that the virtual machine's tests boot. Source it after lib.sh
# and libfuse.sh.
# shellcheck shell=bash

readonly VM_QEMU=10 # bookworm's 7.2 knows no FDP
readonly VM_SUITE=forky
# The guest's packages, beside its kernel.
readonly VM_PACKAGES=nvme-cli,ndctl,e2fsprogs,f2fs-tools,fuse3,kmod,nfs-kernel-server,procps,acl,attr,rsync,udev,python3-pytest
readonly VM_TOOLS=(mmdebstrap fdisk e2fsprogs debian-archive-keyring)
readonly VM_INIT=$ROOT/tests/vm/inside/init
# The kernel for clouds has no F2FS; the other has its drivers as modules, so it boots from a RAM disk.
readonly VM_F2FS_INIT=$ROOT/tests/vm/inside/init-f2fs
readonly VM_F2FS_MODULES=(nvme-auth nvme-keyring nvme-core nvme crc16 mbcache jbd2 ext4 lz4hc_compress f2fs)

# vm_apt_install <package or option>...
vm_apt_install() {
  as_root "install $* with apt" env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq -y --no-install-recommends install "$@" >"$BUILD/apt.log" 2>&1 ||
    die "apt could not install $*: see build/apt.log (without a network the virtual machine cannot be set up)"
}

vm_qemu_major() { { qemu-system-x86_64 --version || true; } 2>/dev/null | sed -nE "1s/.*version ([0-9]+).*/\1/p"; }

vm_candidate_major() {
  apt-cache policy "$@" qemu-system-x86 2>/dev/null | sed -nE 's/.*Candidate: ([0-9]+:)?([0-9]+).*/\2/p'
}

# The suite of newer packages for this release, in a file of its own.
vm_add_backports() {
  local VERSION_CODENAME=''
  # shellcheck source=/dev/null
  source /etc/os-release
  local file=/etc/apt/sources.list.d/streamfs-backports.sources
  say "Adding $VERSION_CODENAME-backports to apt's sources, as $file"
  as_root "add $VERSION_CODENAME-backports to apt's sources" tee "$file" >/dev/null <<END
Types: deb
URIs: $(debian_mirror)
Suites: $VERSION_CODENAME-backports
Components: main
Check-Valid-Until: no
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
END
  as_root "refresh apt's lists" apt-get -qq update
}

vm_install_qemu() {
  local major suite=()
  major=$(vm_qemu_major)
  [[ ${major:-0} -lt $VM_QEMU ]] || return 0
  say "Installing QEMU"
  as_root "refresh apt's lists" apt-get -qq update || die "the virtual machine needs QEMU $VM_QEMU, and apt has no network"
  major=$(vm_candidate_major)
  if [[ ${major:-0} -lt $VM_QEMU ]]; then
    suite=(-t "$(. /etc/os-release && say "$VERSION_CODENAME")-backports")
    [[ $(vm_candidate_major "${suite[@]}") -ge $VM_QEMU ]] 2>/dev/null || vm_add_backports
  fi
  vm_apt_install "${suite[@]}" qemu-system-x86
  major=$(vm_qemu_major)
  [[ ${major:-0} -ge $VM_QEMU ]] || die "the virtual machine needs QEMU $VM_QEMU or newer; here is ${major:-none}"
}

vm_install_tools() {
  local missing
  mapfile -t missing < <(vm_missing "${VM_TOOLS[@]}")
  [[ ${#missing[@]} -eq 0 ]] || vm_apt_install "${missing[@]}"
}

vm_missing() {
  local name
  for name in "$@"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null || true) == installed ]] || say "$name"
  done
}

# vm_make_system <folder>: a minimal system with the newest kernel that the suite has for clouds: drivers
# for all that is used here are built in, so that it boots without an initial RAM disk.
# A frozen mirror's index is past its date; the signature holds all the same.
vm_make_system() {
  mmdebstrap --quiet --variant=minbase --mode=root --skip=cleanup/reproducible \
    --aptopt='Acquire::Check-Valid-Until "false"' --aptopt='APT::Install-Recommends "false"' \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' --include="$VM_PACKAGES" \
    --dpkgopt=force-unsafe-io \
    --customize-hook='set -e
      version=$(APT_CONFIG=$MMDEBSTRAP_APT_CONFIG apt-cache --names-only search \
        "^linux-binary-[0-9].*-cloud-amd64$" | cut -d" " -f1 | sort -V | tail -n 1)
      test -n "$version"
      version=${version#linux-binary-}
      chroot "$1" apt-get -qq -y install "linux-binary-$version" "linux-modules-$version"
      chroot "$1" depmod "$version"' \
    "$VM_SUITE" "$1" "deb $(debian_mirror) $VM_SUITE main"
}

# vm_make_images <system> <folder>: the kernel and a disk that it finds by its partition's name.
vm_make_images() {
  mv "$1"/usr/lib/modules/*/vmlinuz "$2/vmlinuz"
  rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt
  install -m 755 "$VM_INIT" "$1/init"
  mkdir -p "$1/payload"
  truncate -s 1200M "$2/root.img"
  printf 'label: gpt\nstart=2048, name=vmroot\n' | sfdisk -q "$2/root.img"
  mkfs.ext4 -q -O ^has_journal -d "$1" -E offset=1048576 "$2/root.img" 1197M
}

# vm_make_guest <folder>: run as root.
vm_make_guest() {
  set -euo pipefail
  local system
  system=$(mktemp -d "$1.system.XXXXXX")
  # shellcheck disable=SC2064  # now, because the name is local
  trap "rm -rf --one-file-system '$system'" EXIT
  mkdir -p "$1"
  vm_make_system "$system/root"
  vm_make_images "$system/root" "$1"
  chmod a+r "$1"/*
}

# vm_make_f2fs <folder>: the kernel, and a RAM disk with what it needs to find the guest's disk.
vm_make_f2fs() {
  set -euo pipefail
  local system module found
  system=$(mktemp -d "$1.system.XXXXXX")
  # shellcheck disable=SC2064  # now, because the name is local
  trap "rm -rf --one-file-system '$system'" EXIT
  mmdebstrap --quiet --variant=extract --mode=root --skip=cleanup/reproducible \
    --aptopt='Acquire::Check-Valid-Until "false"' --include=busybox-static \
    --extract-hook='set -e
      export APT_CONFIG=$MMDEBSTRAP_APT_CONFIG
      version=$(apt-cache --names-only search "^linux-binary-[0-9.]+[+]deb[0-9]+-amd64$" |
        cut -d" " -f1 | sort -V | tail -n 1)
      test -n "$version"
      version=${version#linux-binary-}
      cd "$1" && apt-get -qq download "linux-binary-$version" "linux-modules-$version"
      for package in ./*.deb; do dpkg-deb -x "$package" .; done' \
    "$VM_SUITE" "$system/root" "deb $(debian_mirror) $VM_SUITE main"
  found=$(echo "$system"/root/usr/lib/modules/*)
  mkdir -p "$1" "$system/disk"/{bin,lib,dev,proc,sys,root}
  cp "$system/root/usr/bin/busybox" "$system/disk/bin"
  install -m 755 "$VM_F2FS_INIT" "$system/disk/init"
  printf '%s\n' "${VM_F2FS_MODULES[@]}" >"$system/disk/lib/order"
  for module in "${VM_F2FS_MODULES[@]}"; do
    xz -dc "$(find "$found/kernel" -name "$module.ko.xz")" >"$system/disk/lib/$module.ko"
  done
  cp "$found/vmlinuz" "$1/vmlinuz"
  (cd "$system/disk" && find . | bin/busybox cpio -o -H newc 2>/dev/null | gzip -1) >"$1/initrd.gz"
  chmod a+r "$1"/*
}

# In build/vm-f2fs, for the long tests only: it takes 130 MB from the network.
install_vm_f2fs() {
  local key
  key=$(hash_of "$ROOT/scripts/vm.sh" "$VM_F2FS_INIT")
  [[ -s $BUILD/vm-f2fs/initrd.gz ]] && is_stamped vm-f2fs "$key" && return
  say "Making the kernel with F2FS for the virtual machine in build/vm-f2fs"
  rm -rf "$BUILD/vm-f2fs"
  as_root "make the kernel with F2FS" bash -c 'source "$1/lib.sh"; source "$1/libfuse.sh"; source "$1/vm.sh"; vm_make_f2fs "$2"' \
    _ "$ROOT/scripts" "$BUILD/vm-f2fs" >"$BUILD/vm-f2fs.log" 2>&1 ||
    die "the kernel with F2FS could not be made (it takes a network, once): see build/vm-f2fs.log"
  stamp vm-f2fs "$key"
}

# QEMU, and what makes the guest.
install_vm_programs() {
  vm_install_qemu
  vm_install_tools
}

# In build/vm, made anew when what it is made of has changed.
make_vm_guest() {
  local key
  key=$(hash_of "$ROOT/scripts/vm.sh" "$VM_INIT")
  [[ -s $BUILD/vm/root.img && -s $BUILD/vm/vmlinuz ]] && is_stamped vm "$key" && return
  say "Making the virtual machine's guest in build/vm"
  rm -rf "$BUILD/vm"
  as_root "make the guest's system" bash -c 'source "$1/lib.sh"; source "$1/libfuse.sh"; source "$1/vm.sh"; vm_make_guest "$2"' \
    _ "$ROOT/scripts" "$BUILD/vm" >"$BUILD/vm.log" 2>&1 ||
    die "the guest could not be made (it takes a network, once): see build/vm.log"
  stamp vm "$key"
}

# The workstation's packages: systemd, and what streamfs, its daemon and the walk of OPERATIONS use.
readonly VM_WORKSTATION_PACKAGES=systemd-sysv,udev,kmod,ndctl,fuse3,procps,sqlite3,python3
readonly VM_WORKSTATION_INSIDE=(workstation.service workstation)

# vm_make_workstation <guest> <folder>: a disk with systemd and this machine's release of Debian, so that
# the programs and classifierd run in it as packages would, and the guest's kernel modules.
vm_make_workstation() {
  set -euo pipefail
  local system VERSION_CODENAME='' file
  system=$(mktemp -d "$2.system.XXXXXX")
  # shellcheck disable=SC2064  # now, because the name is local
  trap "rm -rf --one-file-system '$system'" EXIT
  # shellcheck source=/dev/null
  source /etc/os-release
  mkdir -p "$2"
  mmdebstrap --quiet --variant=minbase --mode=root --skip=cleanup/reproducible \
    --aptopt='Acquire::Check-Valid-Until "false"' --aptopt='APT::Install-Recommends "false"' \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt=force-unsafe-io --include="$VM_WORKSTATION_PACKAGES" \
    "$VERSION_CODENAME" "$system/root" "deb $(debian_mirror) $VERSION_CODENAME main"
  debugfs -R "rdump /usr/lib/modules $system/root/usr/lib" "$1/root.img?offset=1048576"
  rm -rf "$system/root"/var/lib/apt/lists/* "$system/root"/var/cache/apt
  for file in "${VM_WORKSTATION_INSIDE[@]}"; do
    install -m 755 "$ROOT/tests/vm/inside/$file" "$system/root/usr/lib/systemd/system/"
  done
  chmod 644 "$system/root/usr/lib/systemd/system/workstation.service"
  systemctl --root="$system/root" -q enable workstation.service
  systemctl --root="$system/root" -q mask getty.target serial-getty@.service systemd-timesyncd.service apt-daily.timer \
    apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer ndctl-monitor.service
  mkdir -p "$system/root/payload"
  truncate -s 1G "$2/root.img"
  printf 'label: gpt\nstart=2048, name=vmroot\n' | sfdisk -q "$2/root.img"
  mkfs.ext4 -q -d "$system/root" -E offset=1048576 "$2/root.img" 1021M
  chmod a+r "$2"/*
}

# In build/vm-workstation, made anew when what it is made of has changed.
make_vm_workstation() {
  local key
  key=$(hash_of "$ROOT/scripts/vm.sh" "${VM_WORKSTATION_INSIDE[@]/#/$ROOT/tests/vm/inside/}")
  [[ -s $BUILD/vm-workstation/root.img ]] && is_stamped vm-workstation "$key" && return
  say "Making the workstation's disk in build/vm-workstation"
  rm -rf "$BUILD/vm-workstation"
  as_root "make the workstation's system" bash -c 'source "$1/lib.sh"; source "$1/libfuse.sh"; source "$1/vm.sh"; vm_make_workstation "$2" "$3"' \
    _ "$ROOT/scripts" "$BUILD/vm" "$BUILD/vm-workstation" >"$BUILD/vm-workstation.log" 2>&1 ||
    die "the workstation could not be made (it takes a network, once): see build/vm-workstation.log"
  stamp vm-workstation "$key"
}
