// The recording as it is, gzipped, for recording.cc.
    .section .rodata
    .global kF2fsPhone
    .global kF2fsPhoneEnd
kF2fsPhone:
    .incbin "lab/figures/recorded/f2fs_phone.csv.gz"
kF2fsPhoneEnd:
    .byte 0
    .section .note.GNU-stack, "", %progbits
