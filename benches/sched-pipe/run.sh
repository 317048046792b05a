#!/bin/sh
# Sets `sched-pipe` beside the same work in C (pipe.c, gcc -O2): both in turn, ROUNDS times, with processes and with
# threads. Where perf is installed, `perf bench sched pipe` runs in turn with them. Prints for each the median and the
# least of the microseconds per round trip, and the ratios.
#
#   benches/sched-pipe/run.sh [ROUNDS [LOOPS [COMMAND-PREFIX...]]]
#
# A prefix such as `taskset -c 0` puts both tasks on one CPU, which takes the scheduler's choice of CPUs out of it.
set -eu

rounds=${1:-30}
loops=${2:-50000}
shift $(($# < 2 ? $# : 2))
prefix=$*
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

gcc -O2 -Wall -pthread -o "$scratch/pipe" "$here/pipe.c"
cd "$here/../.."
cargo build --release --quiet --package kduel-workloads --example trial
trial=${CARGO_TARGET_DIR:-target}/release/examples/trial

# The middle and the least of the numbers of the file $1.
summary() {
    sort -g "$1" | awk '{ v[NR] = $1 } END { m = NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2; if (NR) print m, v[1] }'
}

echo "mode     C us (least)       Rust us (least)    Rust/C (least)   perf us (least)    Rust/perf (least)"
for mode in process thread; do
    for file in c rust perf; do : >"$scratch/$file"; done
    for _ in $(seq "$rounds"); do
        $prefix "$scratch/pipe" "$mode" "$loops" >>"$scratch/c"
        $prefix "$trial" sched-pipe 1 "mode=$mode" "loops=$loops" |
            sed 's/.*"time-per-op":\[\([^]]*\)\].*/\1/' >>"$scratch/rust"
        threaded=
        [ "$mode" = process ] || threaded=--threaded
        if command -v perf >/dev/null; then
            $prefix perf bench sched pipe --loop "$loops" $threaded | awk '/usecs\/op/ { print $1 }' >>"$scratch/perf"
        fi
    done
    echo "$mode $(summary "$scratch/c") $(summary "$scratch/rust") $(summary "$scratch/perf")" | awk '{
        printf "%-7s  %.3f (%.3f)      %.3f (%.3f)      %.3f (%.3f)", $1, $2, $3, $4, $5, $4 / $2, $5 / $3
        if (NF > 6) printf "    %.3f (%.3f)      %.3f (%.3f)", $6, $7, $4 / $6, $5 / $7
        print ""
    }'
done
