# For streamfs, the functions by which xfstests' common/rc handles filesystems with programs of their
# own. Source it after common/rc, whose functions do nothing for FSTYP=fuse.
# STREAMFS_META_<name of a loop device>: its META; STREAMFS_FILE_<name>: the file beneath it.
# shellcheck shell=bash

_streamfs_meta() { local name=STREAMFS_META_${1##*/} && echo "${!name}"; }
_streamfs_file() { local name=STREAMFS_FILE_${1##*/} && echo "${!name}"; }

# _streamfs_mkfs <bytes>: SCRATCH_DEV, as large as that.
_streamfs_mkfs() {
  truncate -s "$1" "$(_streamfs_file "$SCRATCH_DEV")" && losetup -c "$SCRATCH_DEV" &&
    "$STREAMFS_PROGRAMS/mkfs.streamfs" -f --meta "$(_streamfs_meta "$SCRATCH_DEV")" "$SCRATCH_DEV"
}

_scratch_mkfs() {
  _scratch_unmount 2>/dev/null
  _streamfs_mkfs "$STREAMFS_DEVICE_BYTES"
}

_try_scratch_mkfs_sized() {
  [[ $1 -le $STREAMFS_DEVICE_BYTES ]] || _notrun "Scratch device too small"
  _scratch_unmount 2>/dev/null
  _streamfs_mkfs "$1"
}

# _streamfs_check <device> <mountpoint>
_streamfs_check() {
  local mounted=
  [[ $(findmnt -n -o FSTYPE "$2") != fuse.streamfs ]] || { mounted=1 && umount "$2"; }
  "$STREAMFS_PROGRAMS/fsck.streamfs" -n -f --meta "$(_streamfs_meta "$1")" "$1" \
    >"$tmp.fsck" 2>&1 || {
    _log_err "_streamfs_check: fsck of $1: $?"
    cat "$tmp.fsck" >>"$seqres.full"
    return 1
  }
  [[ -z $mounted ]] || mount -t "$FSTYP$FUSE_SUBTYP" "$1" "$2"
}

_check_test_fs() { _streamfs_check "$TEST_DEV" "$TEST_DIR"; }
_check_scratch_fs() { _streamfs_check "$SCRATCH_DEV" "$SCRATCH_MNT"; }
