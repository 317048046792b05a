#!/bin/bash
# Why processes of kduel's hackbench, and of rt-tests', are faster than those of `perf bench sched messaging`: every
# process of perf inherits perf's address space and tears it down, inside the measured time. Counts the mappings and the
# private memory of a process of either, and runs in turn: rt-tests as it is, rt-tests with as many mappings and as much memory
# as perf has, and perf. Prints the median of the seconds that each printed.
#
#   benches/hackbench/run.sh [ROUNDS [GROUPS]]
set -euo pipefail

rounds=${1:-20}
groups=${2:-1}
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
gcc -O2 -Wall -shared -fPIC -o "$scratch/mappings.so" "$here/mappings.c"

# Mappings and KiB of private memory of the last process that `$@` started.
space() {
    # A group of its own, since neither ends its children when it is ended.
    setsid "$@" > /dev/null 2>&1 &
    local parent=$! child=
    sleep 0.2
    child=$(tr ' ' '\n' < "/proc/$parent/task/$parent/children" | grep -m1 .)
    echo "$(wc -l < "/proc/$child/maps") $(awk '/^RssAnon/ { print $2 }' "/proc/$child/status")"
    kill -9 -- "-$parent"
    wait "$parent" 2> /dev/null || true
}
read -r hackbench_maps hackbench_kib < <(space hackbench -g "$groups" -l 1000000)
read -r perf_maps perf_kib < <(space perf bench sched messaging -g "$groups" -l 1000000)
echo "a process of hackbench has $hackbench_maps mappings and $hackbench_kib KiB of its own, one of perf $perf_maps and $perf_kib KiB"

export MAPPINGS=$((perf_maps - hackbench_maps)) KIB=$((perf_kib - hackbench_kib))
for _ in $(seq "$rounds"); do
    hackbench -g "$groups" | awk '/^Time/ { print $2 }' >> "$scratch/plain"
    LD_PRELOAD=$scratch/mappings.so hackbench -g "$groups" | awk '/^Time/ { print $2 }' >> "$scratch/mapped"
    perf bench sched messaging -g "$groups" 2> /dev/null | awk '/Total time/ { print $3 }' >> "$scratch/perf"
done
median() {
    sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}
echo "hackbench               $(median < "$scratch/plain") s"
echo "hackbench so enlarged   $(median < "$scratch/mapped") s"
echo "perf                    $(median < "$scratch/perf") s"
