#!/bin/bash
# The work of futex-hash with one thread beside the same in C (x86-64, gcc -O2), both in turn, ROUNDS times; and why it is
# faster than perf's: the call through the C library beside the inlined one.
#
#   benches/futex-hash/run.sh [ROUNDS]
set -euo pipefail

rounds=${1:-20}
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
gcc -O2 -Wall -pthread -o "$scratch/syscalls" "$here/syscalls.c"
cd "$here/../.."
cargo build --release --quiet --package kduel-workloads --example trial
trial=${CARGO_TARGET_DIR:-target}/release/examples/trial

for _ in $(seq "$rounds"); do
    "$scratch/syscalls" inlined >> "$scratch/c"
    "$trial" futex-hash 1 runtime=0.4 semantics=strict | sed 's/.*"rate":\[\([^]]*\)\].*/\1/' |
        awk '{ print 1e9 / $1 }' >> "$scratch/rust"
done
summary() {
    sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2, v[1] }'
}
echo "$(summary < "$scratch/c") $(summary < "$scratch/rust")" |
    awk '{ printf "ns per call, median (least): C %.1f (%.1f), Rust %.1f (%.1f), Rust/C %.3f (%.3f)\n", $1, $2, $3, $4, $3 / $1, $4 / $2 }'
"$scratch/syscalls"
