#!/usr/bin/env bash
# Counts the user instructions of one dispatch and of one satisfied wait with callgrind, and fails
# when one is over its budget: 200 each, as AMD's bare packet and doorbell take 161, its wait on a
# satisfied signal 191, its HIP launch 3,550. A kernel with hidden arguments has 256 bytes more to write.
set -euo pipefail
cd "$(dirname "$0")/../.."
status=0
totals=() # instructions of a thousand, by name

built() { # bench, further options
    # The software GPU stands still and is not counted: it need not be fast.
    local bench=$1
    shift
    cargo bench --quiet --config 'profile.bench.package.kfd-model.opt-level=1' \
        -p kfd-tests --bench "$bench" "$@" --no-run --message-format=json |
        sed -n 's/.*"executable":"\([^"]*\/'"$bench"'-[^"]*\)".*/\1/p' | tail -n 1
}

measure() { # executable, then name:budget ...
    local bench=$1 measured name budget total each
    shift
    [ -x "$bench" ] || { echo "the bench was not built" >&2; exit 1; }
    for measured in "$@"; do
        name=${measured%:*} budget=${measured#*:}
        total=$(KFD_BENCH_COUNT=1 valgrind --tool=callgrind --collect-atstart=no --toggle-collect="*$name*" \
            --callgrind-out-file=/dev/null "$bench" 2>&1 | sed -n 's/.*Collected : \([0-9]*\).*/\1/p')
        [ -n "$total" ] && [ "$total" -gt 0 ] || { echo "$name was not counted" >&2; exit 1; }
        each=$((total / 1000))
        totals+=("$name:$total")
        echo "$name: $each instructions (budget $budget)"
        [ "$each" -le "$budget" ] || status=1
    done
}

measure "$(built dispatch)" plain_dispatch:200 hidden_dispatch:500 satisfied_wait:200
# Through a stream, arguments packed and checked; AMD's HIP takes 3,550 for a launch, 4,480 for an event
# and a wait for it, 515 for an idle synchronisation.
streams=(stream_launch_plain:300 stream_launch_hidden:400 pm4_launch_plain:350
    event_record_and_wait:600 empty_synchronize:100)
totals=()
measure "$(built streams)" "${streams[@]}"
with=("${totals[@]}") totals=()
# The same with services (printf, malloc) not compiled in: not one instruction less.
echo "without services:"
measure "$(built streams --no-default-features)" "${streams[@]}"
if [ "${with[*]}" != "${totals[*]}" ]; then
    echo "services cost something: ${with[*]} with them, ${totals[*]} without" >&2
    status=1
fi
# Copies and fills of 1 MiB through a stream: ranges and overlap checked, planned, in its order.
measure "$(built copies)" copy_by_engine:2400 copy_by_kernel:1200 fill_by_kernel:1100
exit $status
