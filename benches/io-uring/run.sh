#!/bin/sh
# Sets `io-uring target=nop` beside the same loop in C (nop.c, gcc -O2): both in turn, ROUNDS times, SECONDS each. Prints
# the median and the most of the operations per second of each, and the ratio Rust over C.
#
#   benches/io-uring/run.sh [ROUNDS [SECONDS]]
set -eu

rounds=${1:-15}
seconds=${2:-0.5}
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

gcc -O2 -Wall -o "$scratch/nop" "$here/nop.c"
cd "$here/../.."
cargo build --release --quiet --package kduel-workloads --example trial
trial=${CARGO_TARGET_DIR:-target}/release/examples/trial

# The middle and the largest of the numbers on standard input.
summary() {
    sort -g | awk '{ v[NR] = $1 } END { m = NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2; print m, v[NR] }'
}

: >"$scratch/c"
: >"$scratch/rust"
for _ in $(seq "$rounds"); do
    "$scratch/nop" "$seconds" >>"$scratch/c"
    "$trial" io-uring 1 "runtime=$seconds" | sed 's/.*"iops":\[\([^]]*\)\].*/\1/' >>"$scratch/rust"
done
echo "$(summary <"$scratch/c") $(summary <"$scratch/rust")" | awk '{
    printf "C %.0f/s (at most %.0f), Rust %.0f/s (%.0f), Rust/C %.3f (%.3f)\n", $1, $2, $3, $4, $3 / $1, $4 / $2
}'
