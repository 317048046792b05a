#!/bin/bash
# What the mean call of several wakers takes: in kduel, in perf, and in C with stacks of two sizes; all in turn, ROUNDS times.
# A waker whose woken threads get its CPU before it is back takes many times as long as another, so the mean is one of few
# large values: prints the mean, and how far the true one may be from it (95 %).
#
#   benches/futex-wake-parallel/run.sh [ROUNDS [WAKERS [THREADS]]]
set -euo pipefail

rounds=${1:-40}
wakers=${2:-4}
threads=${3:-32}
repeat=20
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
gcc -O2 -Wall -pthread -o "$scratch/wake" "$here/wake.c"
cd "$here/../.."
cargo build --release --quiet --package kduel-workloads --example trial
trial=${CARGO_TARGET_DIR:-target}/release/examples/trial

for _ in $(seq "$rounds"); do
    "$trial" futex-wake-parallel "$threads" "nwakers=$wakers" "repeat=$repeat" |
        sed 's/.*"latency":\[\([^]]*\)\].*/\1/' | tr , '\n' | awk '{ sum += $1 } END { print sum / NR }' >>"$scratch/kduel"
    perf bench -r "$repeat" futex wake-parallel -t "$threads" -w "$wakers" -s |
        sed -n 's/.* in \([0-9.]*\) ms.*/\1/p' >>"$scratch/perf"
    "$scratch/wake" "$threads" "$wakers" "$repeat" $((8 << 20)) >>"$scratch/large"
    "$scratch/wake" "$threads" "$wakers" "$repeat" $((256 << 10)) >>"$scratch/small"
done
printf '%-28s %8s %8s\n' "ms per call" mean +-
while read -r file what; do
    awk -v what="$what" '{ sum += $1; squares += $1 * $1 } END {
        mean = sum / NR
        variance = (squares - NR * mean * mean) / (NR - 1)
        printf "%-28s %8.4f %8.4f\n", what, mean, 1.96 * sqrt(variance / NR) }' "$scratch/$file"
done <<END
kduel kduel
perf perf
large C, stacks of 8 MiB
small C, stacks of 256 KiB
END
