#!/bin/bash
# What the mean call of several wakers takes: in kduel, in perf, and in C as kduel does it and with one thing changed each; all
# in turn, ROUNDS times. A waker whose woken threads get its CPU before it is back takes many times as long as another, so the
# mean is one of few large values: prints the mean, and how far the true one may be from it (95 %).
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

# Those of perf, which unwinding looks through.
libraries=$(ldd "$(readlink -f "$(command -v perf)")" | awk '$3 ~ /^\// && $3 !~ /libc\.so/ { print $3 }' | paste -sd:)
c() { "$scratch/wake" "$threads" "$wakers" "$repeat" "${@:2}" >>"$scratch/$1"; }

for _ in $(seq "$rounds"); do
    "$trial" futex-wake-parallel "$threads" "nwakers=$wakers" "repeat=$repeat" |
        sed 's/.*"latency":\[\([^]]*\)\].*/\1/' | tr , '\n' | awk '{ sum += $1 } END { print sum / NR }' >>"$scratch/kduel"
    perf bench -r "$repeat" futex wake-parallel -t "$threads" -w "$wakers" -s |
        sed -n 's/.* in \([0-9.]*\) ms.*/\1/p' >>"$scratch/perf"
    c as $((8 << 20)) before return
    LD_PRELOAD=$libraries c laden $((8 << 20)) before return
    c exit $((8 << 20)) before exit
    LD_PRELOAD=$libraries c exit-laden $((8 << 20)) before exit
    c themselves $((8 << 20)) themselves return
    c small $((256 << 10)) before return
done
printf '%-44s %8s %8s\n' "ms per call" mean +-
while read -r file what; do
    awk -v what="$what" '{ sum += $1; squares += $1 * $1 } END {
        mean = sum / NR
        variance = (squares - NR * mean * mean) / (NR - 1)
        printf "%-44s %8.4f %8.4f\n", what, mean, 1.96 * sqrt(variance / NR) }' "$scratch/$file"
done <<END
kduel kduel
perf perf
as C, as kduel does it
laden C, with perf's libraries loaded
exit C, whose threads end by pthread_exit()
exit-laden C, with both
themselves C, whose waiters bind themselves to their CPU
small C, with stacks of 256 KiB
END
