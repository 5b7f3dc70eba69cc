#!/usr/bin/env bash
# Counts the user instructions of one dispatch and of one satisfied wait with callgrind, and fails
# when one is over its budget: 200 each, as AMD's bare packet and doorbell take 161, its wait on a
# satisfied signal 191, its HIP launch 3,550. A kernel with hidden arguments has 256 bytes more to write.
set -euo pipefail
cd "$(dirname "$0")/../.."
status=0
declare -A counted

built() { # bench, further options
    # The software GPU stands still and is not counted: it need not be fast.
    local bench=$1
    shift
    cargo bench --quiet --config 'profile.bench.package.kfd-model.opt-level=1' \
        -p kfd-tests --bench "$bench" "$@" --no-run --message-format=json |
        sed -n 's/.*"executable":"\([^"]*\/'"$bench"'-[^"]*\)".*/\1/p' | tail -n 1
}

measure() { # executable, then name:budget or name:budget:calls ...
    local bench=$1 measured name budget calls total each
    shift
    [ -x "$bench" ] || { echo "the bench was not built" >&2; exit 1; }
    for measured in "$@"; do
        IFS=: read -r name budget calls <<<"$measured:1000"
        calls=${calls%%:*}
        total=$(KFD_BENCH_COUNT=1 valgrind --tool=callgrind --collect-atstart=no --toggle-collect="*$name*" \
            --callgrind-out-file=/dev/null "$bench" 2>&1 | sed -n 's/.*Collected : \([0-9]*\).*/\1/p')
        [ -n "$total" ] && [ "$total" -gt 0 ] || { echo "$name was not counted" >&2; exit 1; }
        each=$((total / calls))
        counted[$name]=$each
        echo "$name: $each instructions (budget $budget)"
        [ "$each" -le "$budget" ] || status=1
    done
}

launches() { echo "${counted[stream_launch_plain]} ${counted[stream_launch_hidden]} ${counted[pm4_launch_plain]}"; }

measure "$(built dispatch)" plain_dispatch:200 hidden_dispatch:500 satisfied_wait:200
# Through a stream, arguments packed and checked; AMD's HIP takes 3,550 for a launch, 4,480 for an event
# and a wait for it, 515 for an idle synchronisation. The goals for launches are 300, and 350 on PM4; the
# budgets keep what is reached.
streams=(stream_launch_plain:400 stream_launch_hidden:625 pm4_launch_plain:690
    event_record_and_wait:600 empty_synchronize:100)
measure "$(built streams)" "${streams[@]}"
with=$(launches)
# Command buffers: a submission of an indirect buffer takes the same whatever its length; one of packets
# is for a thousand kernels, 60 instructions each.
measure "$(built streams)" submit_ten:500:20 submit_thousand:500:20 pm4_enter_thousand:800:20 \
    change_and_submit:700:20 packets_thousand:60000:20
if [ "${counted[submit_ten]}" -ne "${counted[submit_thousand]}" ]; then
    echo "a submission of 1,000 kernels takes ${counted[submit_thousand]} instructions, of 10 ${counted[submit_ten]}"
    status=1
fi
# The same launches with services (printf, malloc) not compiled in. The compiler lays out and inlines the two
# builds differently, by a few instructions either way: more than one in a hundred is a cost.
echo "without services:"
measure "$(built streams --no-default-features)" "${streams[@]}"
read -ra without <<<"$(launches)"
for count in $with; do
    if [ "$count" -gt $((without[0] + without[0] / 100)) ]; then
        echo "services cost something: $count with them, ${without[0]} without" >&2
        status=1
    fi
    without=("${without[@]:1}")
done
# Copies and fills of 1 MiB through a stream: ranges and overlap checked, planned, in its order.
measure "$(built copies)" copy_by_engine:2400 copy_by_kernel:1200 fill_by_kernel:1100
exit $status
