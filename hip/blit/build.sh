#!/bin/sh
# Compiles the blit kernels with LLVM 19 for every target, into this directory.
# With --check it writes nothing and fails when the files here are not what the compiler makes.
set -eu
cd "$(dirname "$0")"
clang=${CLANG:-clang-19}
strip=${LLVM_STRIP:-llvm-strip-19}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

status=0
for target in gfx900 gfx906 gfx908 gfx90a gfx942 gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151; do
    file=blit.$target.co
    "$clang" -x cl -cl-std=CL2.0 -target amdgcn-amd-amdhsa -mcpu=$target -mcode-object-version=5 \
        -nogpulib -Wall -Werror -O2 -o "$work/$file" blit.cl
    # Names of sections and compilers serve nobody at run time.
    "$strip" --strip-all --remove-section=.comment "$work/$file"
    if [ "${1:-}" = --check ]; then
        cmp "$work/$file" "$file" || status=1
    else
        cp "$work/$file" "$file"
        chmod 644 "$file"
    fi
done
exit $status
