#!/usr/bin/env bash
# The integration tests on the production path: kfd::sys::Linux with real descriptors and real mmap,
# where the preload library stands in for the kernel. preload.sh PRESET [TEST ARGUMENTS]
#
# The tests are those that run on hardware. What they need of a kernel is built first:
# cargo build -p kfd-model-preload; cargo test -p kfd-tests --no-run
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
library=$target/release/libkfd_model.so
[ -e "$library" ] || library=$target/debug/libkfd_model.so
[ -e "$library" ] || { echo "libkfd_model.so is missing: cargo build --release -p kfd-model-preload" >&2; exit 1; }
# cargo names the file; the newest one is the one just built.
binary=$(find "$target/debug/deps" -maxdepth 1 -name 'device-*' -executable -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d' ' -f2)
preset=$1
shift
cd "$root/tests"
# The driver checks the offsets that the kernel returns, so KFD's own are handed out.
exec env KFD_TEST_DEVICE=hardware LD_PRELOAD="$library" KFD_MODEL="$preset" KFD_MODEL_OFFSETS=kfd \
    "$binary" --quiet "$@"
