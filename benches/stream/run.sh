#!/bin/sh
# Sets `stream` beside the same loops in C with OpenMP (stream.c, gcc -O2 -fopenmp): both in turn, ROUNDS times, with 1
# and with 2 threads. gcc would make Copy a call of memcpy, so the C of the first two columns is compiled with
# -fno-tree-loop-distribute-patterns; the last column is Copy as gcc leaves it without. Prints the median and
# the greatest of the best rates in MB/s.
#
#   benches/stream/run.sh [ROUNDS [ELEMENTS [ITERATIONS]]]
set -eu

rounds=${1:-20}
elements=${2:-10000000}
iterations=${3:-10}
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

compile() {
    gcc -O2 -Wall -fopenmp -mcmodel=medium -DELEMENTS="$elements" -DROUNDS="$iterations" "$@" "$here/stream.c"
}
compile -fno-tree-loop-distribute-patterns -o "$scratch/loops"
compile -o "$scratch/memcpy"
cd "$here/../.."
cargo build --release --quiet --package kduel-workloads --example trial
trial=${CARGO_TARGET_DIR:-target}/release/examples/trial

# The median and the greatest of column $1 of the file $2.
summary() {
    awk -v column="$1" '{ print $column }' "$2" | sort -g |
        awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2, v[NR] }'
}

echo "threads  kernel  C MB/s (greatest)    Rust MB/s (greatest)   Rust/C (greatest)   C with memcpy MB/s (greatest)"
for threads in 1 2; do
    for file in loops memcpy rust; do : >"$scratch/$file.out"; done
    for _ in $(seq "$rounds"); do
        OMP_NUM_THREADS=$threads "$scratch/loops" >>"$scratch/loops.out"
        "$trial" stream "$threads" "elements=$elements" "iterations=$iterations" |
            sed 's/.*"add":\[\([^]]*\)\].*"copy":\[\([^]]*\)\].*"scale":\[\([^]]*\)\].*"triad":\[\([^]]*\)\].*/\2 \3 \1 \4/' \
                >>"$scratch/rust.out"
        OMP_NUM_THREADS=$threads "$scratch/memcpy" >>"$scratch/memcpy.out"
    done
    column=0
    for kernel in Copy Scale Add Triad; do
        column=$((column + 1))
        other=
        [ $kernel = Copy ] && other=$(summary $column "$scratch/memcpy.out")
        echo "$threads $kernel $(summary $column "$scratch/loops.out") $(summary $column "$scratch/rust.out") $other" |
            awk '{
                printf "%7d  %-6s %7.0f (%7.0f)    %7.0f (%7.0f)      %.3f (%.3f)", $1, $2, $3, $4, $5, $6, $5 / $3, $6 / $4
                if (NF > 6) printf "       %7.0f (%7.0f)", $7, $8
                print ""
            }'
    done
done
