#!/bin/sh
# Sets the work of a request of `schbench` beside the same in C (multiply.c, gcc -O2): both in turn, ROUNDS times, SECONDS
# each, with three footprints. Prints for each the median and the least of the shortest requests, and the ratio Rust over C.
#
#   benches/schbench/run.sh [ROUNDS [SECONDS]]
set -eu

rounds=${1:-10}
seconds=${2:-1}
operations=5
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

gcc -O2 -Wall -o "$scratch/multiply" "$here/multiply.c" -lm
cd "$here/../.."
cargo build --release --quiet --package kduel-workloads --example trial
trial=${CARGO_TARGET_DIR:-target}/release/examples/trial

# The middle and the least of the numbers on standard input.
summary() {
    sort -g | awk '{ v[NR] = $1 } END { m = NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2; print m, v[1] }'
}

echo "KiB   C median (least)          Rust median (least)       Rust/C median (least)"
for kib in 16 256 1024; do
    : >"$scratch/c"
    : >"$scratch/rust"
    for _ in $(seq "$rounds"); do
        "$scratch/multiply" "$kib" "$operations" "$seconds" >>"$scratch/c"
        "$trial" schbench 1 message-threads=1 calibrate=on sleep-us=0 warmup=0.05 "operations=$operations" \
            "cache-footprint-kb=$kib" "runtime=$seconds" | sed 's/.*"request-min":\[\([^]]*\)\].*/\1/' >>"$scratch/rust"
    done
    echo "$kib $(summary <"$scratch/c") $(summary <"$scratch/rust")" |
        awk '{ printf "%4d  %.1f us (%.1f us)    %.1f us (%.1f us)    %.3f (%.3f)\n", $1, $2, $3, $4, $5, $4 / $2, $5 / $3 }'
done
