#!/bin/bash
# What a section of sys-threads takes with one thread: in kduel, in sysbench, and in C with the C library's sched_yield() and
# with the bare system call; all in turn, ROUNDS times. Prints the median and the least nanoseconds of each.
#
#   benches/sys-threads/run.sh [ROUNDS]
set -euo pipefail

rounds=${1:-15}
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
gcc -O2 -Wall -pthread -o "$scratch/sections" "$here/sections.c"
cd "$here/../.."
cargo build --release --quiet --package kduel-workloads --example trial
trial=${CARGO_TARGET_DIR:-target}/release/examples/trial

# An event is a thousand sections.
for _ in $(seq "$rounds"); do
    "$trial" sys-threads 1 runtime=1 | sed 's/.*"rate":\[\([^]]*\)\].*/\1/' | awk '{ print 1e6 / $1 }' >>"$scratch/kduel"
    sysbench threads --threads=1 --time=1 run |
        awk '/total time:/ { sub("s", "", $3); time = $3 } /total number of events:/ { print time * 1e6 / $5 }' >>"$scratch/sysbench"
    "$scratch/sections" library >>"$scratch/library"
    "$scratch/sections" bare >>"$scratch/bare"
done
printf '%-36s %9s %9s\n' "ns per section" median least
while read -r file what; do
    sort -g "$scratch/$file" | awk -v what="$what" \
        '{ v[NR] = $1 } END { m = NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2; printf "%-36s %9.2f %9.2f\n", what, m, v[1] }'
done <<END
kduel kduel
sysbench sysbench
library C, sched_yield() of the library
bare C, bare system call
END
