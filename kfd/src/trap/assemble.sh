#!/bin/sh
# Assembles the trap handlers with LLVM 19 for every target they serve and writes words.rs.
# With --check it writes nothing and fails when words.rs is not what the assembler makes.
set -eu
cd "$(dirname "$0")"
mc=${LLVM_MC:-llvm-mc-19}
objcopy=${LLVM_OBJCOPY:-llvm-objcopy-19}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# assemble SOURCE TARGET...: the words of SOURCE, which must be the same for each target.
assemble() {
    source=$1
    shift
    first=$1
    for target in "$@"; do
        "$mc" -triple=amdgcn-amd-amdhsa -mcpu="$target" -filetype=obj "$source" -o "$work/$target.o"
        "$objcopy" -O binary -j .text "$work/$target.o" "$work/$target.bin"
        cmp "$work/$first.bin" "$work/$target.bin" >&2
    done
    od -An -v -tx4 -w32 "$work/$first.bin" | sed 's/ \([0-9a-f]\{4\}\)\([0-9a-f]\{4\}\)/ 0x\1_\2,/g; s/^ /    /'
}

# table NAME SOURCE TARGET...
table() {
    name=$1
    shift
    words=$(assemble "$@")
    shift
    printf '\n/// For %s.\n#[rustfmt::skip]\npub(super) const %s: &[u32] = &[\n%s\n];\n' \
        "$(echo "$*" | sed 's/ /, /g')" "$name" "$words"
}

{
    echo '//! Words of the trap handlers. Made by assemble.sh from gfx9.s and gfx11.s: do not edit.'
    table GFX9 gfx9.s gfx900 gfx902 gfx904 gfx906 gfx908 gfx909 gfx90a gfx90c
    table GFX942 gfx9.s gfx942
    table GFX11 gfx11.s gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152
} > "$work/words.rs"

if [ "${1:-}" = --check ]; then
    diff -u words.rs "$work/words.rs"
else
    cp "$work/words.rs" words.rs
fi
