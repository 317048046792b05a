#!/bin/bash
# Why `spawn` counts more loops than the fork stressor of stress-ng: takes the difference apart. In turn, ROUNDS times for
# SECONDS (whole ones) each: forks in C (fork.c, gcc -O2) whose child leaves at once; whose child makes the calls of one
# of stress-ng before it leaves, without setsid and with it; the first and the last with the libraries of stress-ng
# preloaded, which each fork has to copy the mappings of; stress-ng; `spawn`. Prints the median of the forks per second by the
# clock, and of the CPU time per fork, which depends less on what else runs.
#
#   benches/spawn/run.sh [ROUNDS [SECONDS [COMMAND-PREFIX...]]]
set -euo pipefail

rounds=${1:-10}
seconds=${2:-1}
shift $(($# < 2 ? $# : 2))
prefix=("$@")
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

gcc -O2 -Wall -o "$scratch/fork" "$here/fork.c"
libraries=$(ldd "$(command -v stress-ng)" | awk '/=> \// && !/libc\.so/ { print $3 }' | tr '\n' ' ')
cd "$here/../.."
cargo build --release --quiet --package kduel-workloads --example trial
trial=${CARGO_TARGET_DIR:-target}/release/examples/trial
TIMEFORMAT='%U %S'

# Runs a command, and adds the forks per second that it prints and the microseconds of CPU time per fork to the file $1.
measure() {
    local file=$1
    shift
    { time "${prefix[@]}" "$@" >"$scratch/output" 2>&1; } 2>"$scratch/time"
    sed -n 's/.*"rate":\[\([^]]*\)\].*/\1/p; s/.*\] fork *[0-9]* *[0-9.]* *[0-9.]* *[0-9.]* *\([0-9.]*\) .*/\1/p
        /^[0-9.]*$/p' "$scratch/output" |
        awk -v seconds="$seconds" '
            NR == FNR { cpu_s = $1 + $2; next }
            { print $1, cpu_s * 1e6 / ($1 * seconds) }' "$scratch/time" - >>"$scratch/$file"
}

for _ in $(seq "$rounds"); do
    measure 1 "$scratch/fork" plain "$seconds"
    measure 2 "$scratch/fork" calls "$seconds"
    measure 3 "$scratch/fork" session "$seconds"
    measure 4 env LD_PRELOAD="$libraries" "$scratch/fork" plain "$seconds"
    measure 5 env LD_PRELOAD="$libraries" "$scratch/fork" session "$seconds"
    measure 6 stress-ng --fork 1 --fork-max 1 --metrics --temp-path "$scratch" --timeout "${seconds}s"
    measure 7 "$trial" spawn 1 "runtime=$seconds"
done

median() {
    cut -d ' ' -f "$1" "$scratch/$2" | sort -g |
        awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}
echo "                                              forks/s   CPU us"
row=0
for name in "C" "C, child makes the calls but setsid" "C, child makes the calls" \
    "C with stress-ng's libraries" "C with both" "stress-ng" "spawn"; do
    row=$((row + 1))
    printf '%-42s %10.0f %8.1f\n' "$name" "$(median 1 $row)" "$(median 2 $row)"
done
