#!/usr/bin/env bash
# Runs software that this project did not write on the software GPU: Debian's rocminfo, HSA runtime and
# HIP 5.2.3. The programs under hip/ and rocr.c are ours; the same binaries run on hardware.
#
# ROCm 5.2.3 wants the kernel of its time: it makes save areas without the debugger's part, which
# Linux 6.12 refuses, so everything here runs with the profile of Linux 6.1.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
work=$target/peers
place=release
[ -e "$target/$place/libkfd_model.so" ] || place=debug
probe=$target/$place/kfd-probe
mkdir -p "$work"
export KFD_MODEL_KERNEL=6.1

run() { # preset, seconds, program...
    local preset=$1 seconds=$2
    shift 2
    "$probe" run --model "$preset" --timeout "$seconds" -- "$@"
}

fail() { echo "$*" >&2; exit 1; }

expect() { # what, text, pattern
    grep -qE "$3" <<<"$2" || fail "$1: no line like '$3' in:
$2"
}

rocminfo_lists() {
    local from=$SECONDS preset text
    for preset in gfx900 gfx906 gfx908 gfx90a; do
        text=$(run $preset 60 rocminfo 2>&1) || fail "rocminfo on $preset: $text"
        expect "rocminfo on $preset" "$text" "^  Name: +$preset"
        expect "rocminfo on $preset" "$text" 'Done'
    done
    for preset in gfx942 gfx1100; do # later than 5.2.3: no agent, and it says so
        # With 6.12: Linux 6.1 does not show gfx942 at all.
        text=$(KFD_MODEL_KERNEL=6.12 run $preset 60 rocminfo 2>&1) || true
        expect "rocminfo on $preset" "$text" 'Agent creation failed'
        ! grep -qE "^  Name: +gfx" <<<"$text" || fail "rocminfo lists $preset"
    done
    echo "rocminfo: passed in $((SECONDS - from)) s"
}

rocr_rounds() {
    local from=$SECONDS preset
    gcc -O1 -Wall -o "$work/rocr" "$here/rocr.c" -lhsa-runtime64
    for preset in gfx906 gfx90a; do
        clang-15 -x cl -cl-std=CL2.0 -target amdgcn-amd-amdhsa -mcpu=$preset -O1 -nogpulib \
            -o "$work/add_one.$preset" "$here/add_one.cl"
        expect "rocr on $preset" "$(run $preset 300 "$work/rocr" "${ROCR_ROUNDS:-100}" "$work/add_one.$preset" 2>&1)" 'rounds: passed'
    done
    # Two processes at once, each with a machine of its own.
    run gfx906 300 "$work/rocr" 5 "$work/add_one.gfx906" >"$work/one" 2>&1 & local one=$!
    run gfx90a 300 "$work/rocr" 5 "$work/add_one.gfx90a" >"$work/two" 2>&1 & local two=$!
    wait $one || fail "$(cat "$work/one")"
    wait $two || fail "$(cat "$work/two")"
    echo "HSA runtime: passed in $((SECONDS - from)) s"
}

hip_programs() {
    local from=$SECONDS preset program text sdma
    for preset in gfx906 gfx90a; do
        mkdir -p "$work/$preset"
        for program in compute streams module services; do
            [ "$work/$preset/$program" -nt "$here/hip/$program.cpp" ] ||
                hipcc --offload-arch=$preset -O1 -o "$work/$preset/$program" "$here/hip/$program.cpp"
        done
        hipcc --genco --offload-arch=$preset -DDEVICE_PART -O1 -o "$work/$preset/module.co" "$here/hip/module.cpp"
        for sdma in 1 0; do
            export HSA_ENABLE_SDMA=$sdma
            for program in compute streams "module $work/$preset/module.co" "services malloc"; do
                # shellcheck disable=SC2086 # the words are arguments
                text=$(run $preset 60 "$work/$preset/"$program 2>&1) || fail "$program on $preset, SDMA $sdma: $text"
                expect "$program on $preset, SDMA $sdma" "$text" ': passed$'
            done
        done
        unset HSA_ENABLE_SDMA
        text=$(run $preset 60 "$work/$preset/services" printf 2>/dev/null | sort)
        local wanted block thread
        wanted=$(for block in 0 1; do for thread in 0 1 2; do
            printf 'thread %d of block %d says hello,  %d.%d0, 123456789abc\n' $thread $block $((thread / 2)) $((thread % 2 * 5))
        done; done; echo 'printf: passed')
        diff <(sort <<<"$wanted") <(echo "$text") || fail "printf on $preset differs"
        # The assertion of four threads ends the program by abort.
        text=$(run $preset 60 "$work/$preset/services" assert 2>&1) && fail "an assertion on $preset passed: $text"
        [ "$(grep -c 'Device-side assertion' <<<"$text")" = 4 ] || fail "assertion on $preset: $text"
    done
    echo "HIP: passed in $((SECONDS - from)) s"
}

rocminfo_lists
rocr_rounds
hip_programs
