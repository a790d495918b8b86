// The recording as it is, gzipped, for recording.cc.
    .section .rodata
    .global streamfs_f2fs_phone
    .global streamfs_f2fs_phone_end
streamfs_f2fs_phone:
    .incbin "emulator/figures/recorded/f2fs_phone.csv.gz"
streamfs_f2fs_phone_end:
    .byte 0
    .section .note.GNU-stack, "", %progbits
