#!/usr/bin/env bash
# Compares the software KFD with the real one, call by call: `transcript.c` runs in a virtual machine
# with a stock Debian kernel, amdgpu and no GPU, and under the preload library. The two transcripts
# must be the same, but for what `differences.txt` names with its reason.
#
# Then kfd-probe and the driver's example run in the same virtual machine, if static builds of them
# are given: check.sh [KFD_PROBE VECTOR_ADD]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=${CARGO_TARGET_DIR:-$root/target}/conformance
library=${KFD_MODEL_PRELOAD:-}
for place in release debug; do
    [ -n "$library" ] || library=$(ls "${CARGO_TARGET_DIR:-$root/target}/$place/libkfd_model.so" 2>/dev/null || true)
done
[ -n "$library" ] || { echo "libkfd_model.so is missing: cargo build --release -p kfd-model-preload" >&2; exit 1; }
mkdir -p "$work"
gcc -O1 -Wall -Wextra -Werror -o "$work/transcript" "$here/transcript.c" -lpthread
gcc -O1 -static -o "$work/transcript.static" "$here/transcript.c" -lpthread

programs=("$work/transcript.static")
[ $# -lt 1 ] || programs+=("$1 devices --hardware" "$1 --json devices --hardware" "$1 doctor --hardware")
# It opens the device before it looks at the code object, of which any file will do.
[ $# -lt 2 ] || programs+=("$2 /init")

# The part of the output of a virtual machine that belongs to a program.
part() { sed -n "/^=== begin $2\$/,/^=== end $2,/p" "$1" | sed '1d;$d'; }
status() { sed -n "s/^=== end $2, status //p" "$1"; }

# Line by line; a line that differs must be named in differences.txt.
compare() { # release real model
    python3 - "$@" "$here/differences.txt" <<'PYTHON'
import re, sys
release, real, model, known = sys.argv[1:]
allowed = [line.rstrip("\n").split("\t") for line in open(known) if line.strip() and line[0] != "#"]
allowed = [(re.compile(pattern), reason) for where, pattern, reason in allowed if where == release]
real, model = open(real).read().splitlines(), open(model).read().splitlines()
bad, used = 0, set()
for number in range(max(len(real), len(model))):
    a = real[number] if number < len(real) else "(no line)"
    b = model[number] if number < len(model) else "(no line)"
    if a == b:
        continue
    reasons = [index for index, (pattern, _) in enumerate(allowed) if pattern.search(a)]
    used.update(reasons)
    if not reasons:
        bad += 1
        print(f"Linux {release}: {a}\n       model: {b}")
for index, (pattern, _) in enumerate(allowed):
    if index not in used:
        bad += 1
        print(f"differences.txt names {pattern.pattern!r} for {release}, but there is none")
print(f"{release}: {len(real)} lines of the kernel's, {bad} differences without a reason")
sys.exit(bad != 0)
PYTHON
}

failed=0
for release in 6.1 6.12; do
    "$here/vm.sh" "$release" "$work/vm.$release" "${programs[@]}"
    part "$work/vm.$release" 1 >"$work/real.$release"
    env LD_PRELOAD="$library" KFD_MODEL=none KFD_MODEL_MODE=600 KFD_MODEL_KERNEL="$release" \
        timeout 60 "$work/transcript" >"$work/model.$release" 2>&1 || true
    compare "$release" "$work/real.$release" "$work/model.$release" || failed=1
    [ $# -ge 1 ] || continue
    # 6: KFD works but shows no GPU that can be used.
    for number in 2 3 4; do
        [ $number -le ${#programs[@]} ] || continue
        found=$(status "$work/vm.$release" $number)
        if [ "$found" != 6 ]; then
            echo "$release: ${programs[$((number - 1))]} exits with $found, not with 6:" >&2
            part "$work/vm.$release" $number >&2
            failed=1
        fi
    done
    grep -q 'no GPU' <(part "$work/vm.$release" 2) || { echo "$release: devices does not say that there is no GPU" >&2; failed=1; }
    if [ $# -ge 2 ]; then
        part "$work/vm.$release" 5
        grep -qi 'no.* GPU' <(part "$work/vm.$release" 5) || { echo "$release: vector_add does not say that there is no GPU" >&2; failed=1; }
    fi
done
exit $failed
