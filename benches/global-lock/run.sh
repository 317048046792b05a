#!/bin/sh
# Sets `global-lock lock=tas` beside the same loop in C (tas.c, gcc -O2): both in turn, ROUNDS times, with 1 and with
# 2 threads. Prints for each the median and the least of the seconds for TOTAL sections, and the ratio Rust over C.
#
#   benches/global-lock/run.sh [ROUNDS [TOTAL]]
set -eu

rounds=${1:-50}
total=${2:-2000000}
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

gcc -O2 -Wall -pthread -o "$scratch/tas" "$here/tas.c"
cd "$here/../.."
cargo build --release --quiet --package kduel-workloads --example trial
trial=${CARGO_TARGET_DIR:-target}/release/examples/trial

# The middle and the least of the numbers on standard input.
summary() {
    sort -g | awk '{ v[NR] = $1 } END { m = NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2; print m, v[1] }'
}

echo "threads  C median (least)       Rust median (least)    Rust/C median (least)"
for threads in 1 2; do
    : >"$scratch/c"
    : >"$scratch/rust"
    for _ in $(seq "$rounds"); do
        "$scratch/tas" "$threads" "$total" >>"$scratch/c"
        "$trial" global-lock "$threads" "total=$total" | sed 's/.*"time":\[\([^]]*\)\].*/\1/' >>"$scratch/rust"
    done
    echo "$threads $(summary <"$scratch/c") $(summary <"$scratch/rust")" |
        awk '{ printf "%7d  %.4f s (%.4f s)    %.4f s (%.4f s)    %.3f (%.3f)\n", $1, $2, $3, $4, $5, $4 / $2, $5 / $3 }'
done
