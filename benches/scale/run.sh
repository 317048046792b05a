#!/bin/sh
# Sets the loops of workloads that count for a time beside the same in C (loops.c, gcc -O2): both in turn, ROUNDS times for
# SECONDS each, with one task. Prints for each the median and the largest of the operations per second, and their
# ratios, Rust over C.
#
#   benches/scale/run.sh [ROUNDS [SECONDS [LOOP...]]]
set -eu

rounds=${1:-20}
seconds=${2:-0.3}
[ $# -gt 2 ] && shift 2 || set -- scale-pthread_mutex2 scale-futex3 scale-page_fault1 scale-pipe1 pipe-throughput \
    syscall-mix spawn context exec-loop
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

gcc -O2 -Wall -pthread -o "$scratch/loops" "$here/loops.c"
cd "$here/../.."
cargo build --release --quiet --package kduel-workloads --example trial
trial=${CARGO_TARGET_DIR:-target}/release/examples/trial

# The middle and the largest of the numbers on standard input.
summary() {
    sort -g | awk '{ v[NR] = $1 } END { m = NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2; print m, v[NR] }'
}

echo "loop                  C median (largest)            Rust median (largest)         Rust/C median (largest)"
for loop; do
    : >"$scratch/c"
    : >"$scratch/rust"
    for _ in $(seq "$rounds"); do
        "$scratch/loops" "$loop" "$seconds" >>"$scratch/c"
        "$trial" "$loop" 1 "runtime=$seconds" warmup=0.1 | sed 's/.*"rate":\[\([^]]*\)\].*/\1/' >>"$scratch/rust"
    done
    echo "$loop $(summary <"$scratch/c") $(summary <"$scratch/rust")" |
        awk '{ printf "%-20s  %12.0f (%12.0f)   %12.0f (%12.0f)   %.3f (%.3f)\n", $1, $2, $3, $4, $5, $4 / $2, $5 / $3 }'
done
