#!/bin/bash
# Sets `sched-pipe` beside the same work in C (pipe.c, gcc -O2) and, where it is installed, `perf bench sched pipe`: all
# in turn, ROUNDS times, with processes and with threads. Prints the median of the microseconds per round trip by the
# clock, and of the CPU time of the whole program per round trip, which does not depend on what else runs; and the
# ratios to ours.
#
#   benches/sched-pipe/run.sh [ROUNDS [LOOPS [COMMAND-PREFIX...]]]
#
# A prefix such as `taskset -c 0` puts both tasks on one CPU, which takes the scheduler's choice of CPUs out of it.
set -euo pipefail

rounds=${1:-30}
loops=${2:-100000}
shift $(($# < 2 ? $# : 2))
prefix=("$@")
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

gcc -O2 -Wall -pthread -o "$scratch/pipe" "$here/pipe.c"
cd "$here/../.."
cargo build --release --quiet --package kduel-workloads --example trial
trial=${CARGO_TARGET_DIR:-target}/release/examples/trial
TIMEFORMAT='%U %S'

# Runs a command and adds the microseconds per round trip that it prints, and those of CPU time, to the file $1.
measure() {
    local file=$1
    shift
    { time "${prefix[@]}" "$@" >"$scratch/output"; } 2>"$scratch/time"
    {
        sed -n 's/.*"time-per-op":\[\([^]]*\)\].*/\1/p; s/ *\([0-9.]*\) usecs\/op/\1/p; /^[0-9.]*$/p' "$scratch/output" |
            grep . | head -1
        awk -v loops="$loops" 'END { print ($1 + $2) * 1e6 / loops }' "$scratch/time"
    } | paste - - >>"$scratch/$file"
}

# The median of column $1 of the file $2, if there is one.
median() {
    [ ! -s "$scratch/$2" ] || cut -f "$1" "$scratch/$2" | sort -g |
        awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

echo "mode     time       Rust us   C us    Rust/C    perf us   Rust/perf"
for mode in process thread; do
    rm -f "$scratch"/{c,rust,perf}
    threaded=()
    [ $mode = process ] || threaded=(--threaded)
    for _ in $(seq "$rounds"); do
        measure c "$scratch/pipe" $mode "$loops"
        measure rust "$trial" sched-pipe 1 mode=$mode "loops=$loops"
        ! command -v perf >/dev/null || measure perf perf bench sched pipe --loop "$loops" "${threaded[@]}"
    done
    column=0
    for time in clock CPU; do
        column=$((column + 1))
        echo "$mode $time $(median $column rust) $(median $column c) $(median $column perf)" | awk '{
            printf "%-7s  %-8s  %7.3f %7.3f   %.3f", $1, $2, $3, $4, $3 / $4
            if (NF > 4) printf "    %7.3f     %.3f", $5, $3 / $5
            print ""
        }'
    done
done
